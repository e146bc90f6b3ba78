"""Checksums of data and the hash of a federation, the same on every platform.

Every array enters a SHA-256 with its name, shape and a fixed little-endian type.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bench.data import Data, Graph, Hypergraph, Images
from bench.federation.types import Client


class _Digest:
    def __init__(self, title: str) -> None:
        self._sha = hashlib.sha256(f"{title}\n".encode())

    def text(self, name: str, value: str) -> None:
        content = value.encode()
        self._sha.update(f"{name} text {len(content)}\n".encode() + content)

    def array(self, name: str, values: NDArray[Any], dtype: str) -> None:
        content = np.ascontiguousarray(values, dtype=dtype)
        self._sha.update(f"{name} {dtype} {content.shape}\n".encode())
        self._sha.update(content.reshape(-1).view(np.uint8).data)

    def integers(self, name: str, values: NDArray[Any]) -> None:
        self.array(name, values, "<i8")

    def hex(self) -> str:
        return self._sha.hexdigest()


def features_checksum(features: sparse.csr_matrix | NDArray[Any]) -> str:
    """SHA-256 of a feature matrix (float32, CSR or dense) or of pixels (uint8)."""
    digest = _Digest("features")
    if isinstance(features, sparse.csr_matrix | sparse.csr_array):
        if not features.has_canonical_format:
            features = features.copy()
            features.sum_duplicates()
        digest.text("shape", str(tuple(int(side) for side in features.shape)))
        digest.integers("indptr", features.indptr)
        digest.integers("indices", features.indices)
        digest.array("data", features.data, "<f4")
    else:
        digest.array("dense", features, "|u1" if features.dtype == np.uint8 else "<f4")
    return digest.hex()


def data_checksum(data: Data, features: str) -> str:
    """SHA-256 of a prepared data set; ``features`` is its features' checksum."""
    digest = _Digest("data")
    digest.text("features", features)
    digest.text("classes", str(data.classes))
    digest.integers("labels", data.labels)
    if isinstance(data, Graph):
        digest.integers("edges", data.edges)
    if isinstance(data, Graph | Hypergraph) and data.hyperedges is not None:
        digest.integers("hyperedge offsets", data.hyperedges.offsets)
        digest.integers("hyperedge members", data.hyperedges.values)
    if isinstance(data, Images) and data.population is not None and data.positions is not None:
        digest.integers("population", data.population)
        digest.integers("positions", data.positions)
    return digest.hex()


def federation_hash(
    dataset: str, scenario: str, classes: int, clients: Sequence[Client], features: str
) -> str:
    """SHA-256 of everything that decides numbers.

    This is: the names, the number of classes, the features' checksum of the whole data set, and for every
    client in order its ids, roles, labels, and edges or hyperedges.
    """
    digest = _Digest("federation 1")
    digest.text("dataset", dataset)
    digest.text("scenario", scenario)
    digest.text("classes", str(classes))
    digest.text("features", features)
    digest.text("clients", str(len(clients)))
    for client in clients:
        digest.integers("ids", client.ids)
        digest.array("roles", client.roles, "|i1")
        digest.integers("labels", client.labels)
        if client.edges is not None:
            digest.integers("edges", client.edges)
        if client.hyperedges is not None:
            digest.integers("hyperedges", client.hyperedges.ids)
            digest.integers("member offsets", client.hyperedges.members.offsets)
            digest.integers("members", client.hyperedges.members.values)
            digest.integers("sizes", client.hyperedges.sizes)
        if client.cross_edges is not None:
            digest.integers("cross edges", client.cross_edges)
    return digest.hex()
