"""Checksums of data and the hash of a federation, the same on every platform."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bench.data import Data, Graph, Images
from bench.federation.types import Client

TEXT, INTEGERS, FLOATS = "text", "<i8", "<f4"
"""How a part is hashed: as text, or as an array of a fixed little-endian type."""

Part = tuple[str, Any, str]
"""A name, a value and how it is hashed."""


def _digest(title: str, parts: Iterable[Part]) -> str:
    """SHA-256 of named parts, hexadecimal. Parts whose value is None are left out."""
    sha = hashlib.sha256(f"{title}\n".encode())
    for name, value, kind in parts:
        if value is None:
            continue
        if kind == TEXT:
            content = str(value).encode()
            sha.update(f"{name} text {len(content)}\n".encode() + content)
        else:
            array = np.ascontiguousarray(value, dtype=kind)
            sha.update(f"{name} {kind} {array.shape}\n".encode())
            sha.update(array.reshape(-1).view(np.uint8).data)
    return sha.hexdigest()


def features_checksum(features: sparse.csr_matrix | NDArray[Any]) -> str:
    """SHA-256 of a feature matrix (float32, CSR or dense) or of pixels (uint8)."""
    if isinstance(features, np.ndarray):
        return _digest("features", [("dense", features, "|u1" if features.dtype == np.uint8 else FLOATS)])
    if not features.has_canonical_format:
        features = features.copy()
        features.sum_duplicates()
    parts = [
        ("shape", tuple(int(side) for side in features.shape), TEXT),
        ("indptr", features.indptr, INTEGERS),
        ("indices", features.indices, INTEGERS),
        ("data", features.data, FLOATS),
    ]
    return _digest("features", parts)


def data_checksum(data: Data, features: str) -> str:
    """SHA-256 of a prepared data set; ``features`` is its features' checksum."""
    parts: list[Part] = [
        ("features", features, TEXT),
        ("classes", data.classes, TEXT),
        ("labels", data.labels, INTEGERS),
    ]
    if isinstance(data, Graph):
        parts.append(("edges", data.edges, INTEGERS))
    if isinstance(data, Images):
        parts += [("population", data.population, INTEGERS), ("positions", data.positions, INTEGERS)]
    elif data.hyperedges is not None:
        parts.append(("hyperedge offsets", data.hyperedges.offsets, INTEGERS))
        parts.append(("hyperedge members", data.hyperedges.values, INTEGERS))
    return _digest("data", parts)


def federation_hash(
    dataset: str, scenario: str, classes: int, clients: Sequence[Client], features: str
) -> str:
    """SHA-256 of everything that decides numbers.

    This is: the names, the number of classes, the features' checksum of the whole data set, and for every
    client in order its ids, roles, labels, and edges or hyperedges.
    """
    parts: list[Part] = [
        ("dataset", dataset, TEXT),
        ("scenario", scenario, TEXT),
        ("classes", classes, TEXT),
        ("features", features, TEXT),
        ("clients", len(clients), TEXT),
    ]
    for client in clients:
        parts.append(("ids", client.ids, INTEGERS))
        parts.append(("roles", client.roles, "|i1"))
        parts.append(("labels", client.labels, INTEGERS))
        parts.append(("edges", client.edges, INTEGERS))
        if client.hyperedges is not None:
            parts.append(("hyperedges", client.hyperedges.ids, INTEGERS))
            parts.append(("member offsets", client.hyperedges.members.offsets, INTEGERS))
            parts.append(("members", client.hyperedges.members.values, INTEGERS))
            parts.append(("sizes", client.hyperedges.sizes, INTEGERS))
        parts.append(("cross edges", client.cross_edges, INTEGERS))
    return _digest("federation 1", parts)
