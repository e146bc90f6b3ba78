"""A federation as one small file, so that others can run on exactly the same clients.

The file is an NPZ archive without pickled objects. ``n`` items over all clients, ``k`` clients:

=================  ================  ==========================================================
array              type and shape    meaning
=================  ================  ==========================================================
``format``         int64             1
``dataset``        text              name of the data set
``scenario``       text              name of the scenario
``partition_seed`` int64             seed of the partition and the split
``split``          float64 ``[3]``   shares of training, validation and test items, percent
``hash``           text              the federation's hash, hexadecimal SHA-256
``provenance``     text              how it was made, JSON
``nodes``          int64 ``[n]``     ids in the prepared data set, client after client
``nodes_offsets``  int64 ``[k+1]``   client ``c`` has ``nodes[nodes_offsets[c]:nodes_offsets[c+1]]``
``labels``         int64 ``[n]``     classes, in the order of ``nodes``
``train_mask``     bool ``[n]``      in the order of ``nodes``; the same for ``val_mask`` and
                                     ``test_mask``; an item is in one of them at most
``edges``          int64 ``[2, m]``  graphs only: positions inside the client, both directions,
                                     sorted by (source, target), client after client
``edges_offsets``  int64 ``[k+1]``   graphs only: client ``c`` has the columns
                                     ``edges_offsets[c]:edges_offsets[c+1]``
=================  ================  ==========================================================

Features, hyperedges and pixels are not in it: they follow from the data set and the ids. For
image data ``nodes`` are the ids of images.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.data import Ragged
from bench.errors import RequestError
from bench.federation import cache, scenarios
from bench.federation.build import assemble, check_training
from bench.federation.prepared import prepare
from bench.federation.scenario import Assignment, Split
from bench.federation.splits import check_split
from bench.federation.types import TEST, TRAIN, UNUSED, VALIDATION, Federation

FORMAT = 1
MASKS = {"train_mask": TRAIN, "val_mask": VALIDATION, "test_mask": TEST}
LAYOUT: dict[str, tuple[str, int]] = {
    "format": ("i", 0),
    "dataset": ("U", 0),
    "scenario": ("U", 0),
    "partition_seed": ("i", 0),
    "split": ("f", 1),
    "hash": ("U", 0),
    "provenance": ("U", 0),
    "nodes": ("i", 1),
    "nodes_offsets": ("i", 1),
    "labels": ("i", 1),
    **dict.fromkeys(MASKS, ("b", 1)),
}
"""Kind of type and number of dimensions of every array."""
EDGES: dict[str, tuple[str, int]] = {"edges": ("i", 2), "edges_offsets": ("i", 1)}


def export_federation(federation: Federation, path: Path) -> None:
    """Write the federation to ``path``; an existing file is replaced once the new one is complete.

    Raises:
        RequestError: the file cannot be written there.
    """
    ids = Ragged.of([client.ids for client in federation.clients])
    roles = np.concatenate([client.roles for client in federation.clients])
    arrays: dict[str, Any] = {
        "format": np.int64(FORMAT),
        "dataset": np.array(federation.dataset),
        "scenario": np.array(federation.scenario),
        "partition_seed": np.int64(federation.provenance["partition_seed"]),
        "split": np.array(federation.provenance["split"], np.float64),
        "hash": np.array(federation.hash),
        "provenance": np.array(json.dumps(federation.provenance, sort_keys=True)),
        "nodes": ids.values,
        "nodes_offsets": ids.offsets,
        "labels": np.concatenate([client.labels for client in federation.clients]),
    }
    arrays |= {mask: roles == role for mask, role in MASKS.items()}
    edges = [client.edges for client in federation.clients if client.edges is not None]
    if edges:
        arrays["edges"] = np.concatenate(edges, axis=1)
        arrays["edges_offsets"] = np.cumsum([0, *(part.shape[1] for part in edges)])
    try:
        cache.save_npz(path, arrays)
    except OSError as error:
        raise RequestError(f"cannot write {path}: {error.strerror or error}") from None


class _File:
    """The arrays of a federation file, of the right kinds; whatever is wrong is a ``RequestError``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise RequestError(
                f"{path}: expected a federation file written by 'bench data export', found none"
            )
        try:
            with np.load(path, allow_pickle=False) as file:
                self._arrays: dict[str, NDArray[Any]] = {name: file[name] for name in file.files}
        except Exception:  # whatever zipfile, zlib or NumPy raise on bytes that are not theirs
            raise self.wrong("not a readable NPZ archive without pickled objects") from None
        self._check(LAYOUT)
        if "edges" in self._arrays:
            self._check(EDGES)
        self.require(self.integer("format") == FORMAT, f"format {FORMAT} expected, got {self['format']}")

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name]

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def wrong(self, what: str) -> RequestError:
        line = " ".join(what.split())
        return RequestError(f"{self.path}: {line}; export the federation again with 'bench data export'")

    def require(self, holds: bool | np.bool_, what: str) -> None:
        if not holds:
            raise self.wrong(what)

    def _check(self, layout: dict[str, tuple[str, int]]) -> None:
        for name, (kind, dimensions) in layout.items():
            self.require(name in self._arrays, f"array '{name}' is missing")
            array = self._arrays[name]
            self.require(
                array.dtype.kind == kind and array.ndim == dimensions,
                f"array '{name}' has type {array.dtype} and {array.ndim} dimensions, "
                f"expected kind '{kind}' and {dimensions}",
            )

    def text(self, name: str) -> str:
        return str(self[name].item())

    def integer(self, name: str) -> int:
        return int(self[name].item())

    def offsets(self, name: str, length: int) -> NDArray[np.int64]:
        values = self[name].astype(np.int64)
        self.require(
            len(values) >= 2
            and values[0] == 0
            and values[-1] == length
            and bool((np.diff(values) >= 0).all()),
            f"'{name}' must rise from 0 to {length}",
        )
        return values

    def items(self, name: str, length: int) -> NDArray[Any]:
        self.require(len(self[name]) == length, f"'{name}' has {len(self[name])} entries, expected {length}")
        return self[name]

    def split(self) -> Split:
        self.require(len(self["split"]) == 3, f"'split' has {len(self['split'])} entries, expected 3")
        train, validation, test = (float(share) for share in self["split"])
        return train, validation, test

    def provenance(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self.text("provenance")))
        except (ValueError, TypeError, RecursionError):
            raise self.wrong("'provenance' is not a JSON object") from None

    def roles(self, length: int) -> NDArray[np.int8]:
        roles = np.full(length, UNUSED, np.int8)
        for mask, role in MASKS.items():
            chosen = self.items(mask, length)
            self.require(bool((roles[chosen] == UNUSED).all()), f"'{mask}' overlaps another mask")
            roles[chosen] = role
        return roles


def _read_assignment(file: _File, labels: NDArray[np.int64], disjoint: bool) -> Assignment:
    """Ids and roles of the file, checked against the labels of the whole data set."""
    nodes = file["nodes"].astype(np.int64)
    offsets = file.offsets("nodes_offsets", len(nodes))
    file.require(bool((np.diff(offsets) > 0).all()), "a client has no items")
    file.require(
        bool(nodes.min() >= 0 and nodes.max() < len(labels)), f"'nodes' must lie in 0 to {len(labels) - 1}"
    )
    client = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    pairs = np.unique(client * len(labels) + nodes)
    file.require(len(pairs) == len(nodes), "a client has an item twice")
    file.require(not disjoint or len(np.unique(nodes)) == len(nodes), "two clients share an item")
    file.require(
        np.array_equal(file.items("labels", len(nodes)), labels[nodes]),
        "'labels' are not those of the data set",
    )
    roles = file.roles(len(nodes))
    common = np.full(len(labels), UNUSED, np.int8)
    common[nodes] = roles
    file.require(np.array_equal(common[nodes], roles), "an item has different roles at different clients")
    cuts = offsets[1:-1]
    return Assignment(tuple(np.split(nodes, cuts)), tuple(np.split(roles, cuts)))


def _check_edges(file: _File, federation: Federation) -> None:
    """The file's edges must be the ones that the data set has among each client's nodes."""
    if federation.family != "graph":
        file.require("edges" not in file, f"{federation.family} data has no 'edges'")
        return
    file.require("edges" in file, "array 'edges' is missing")
    edges = file["edges"]
    file.require(len(edges) == 2, f"'edges' has {len(edges)} rows, expected 2")
    parts = np.split(edges, file.offsets("edges_offsets", edges.shape[1])[1:-1], axis=1)
    same = len(parts) == len(federation) and all(
        client.edges is not None and np.array_equal(part, client.edges)
        for part, client in zip(parts, federation.clients, strict=True)
    )
    file.require(same, "'edges' are not those of the data set among each client's nodes")


def import_federation(path: Path, roots: tuple[Path, ...] | None = None) -> Federation:
    """The federation of a file, rebuilt from the data set and checked against all that the file says.

    Raises:
        RequestError: the file is not a federation file, does not fit the data set at hand, its hash is
            not the one of what it holds, or its clients are none that the scenario allows.
    """
    file = _File(path)
    name, scenario, split = file.text("dataset"), file.text("scenario"), file.split()
    prepared = prepare(name, roots)
    recipe = scenarios.find(scenario, name, prepared.dataset.family)
    check_split(split)
    seed = file.integer("partition_seed")
    file.require(seed >= 0, f"'partition_seed' is {seed}, expected 0 or more")
    assignment = _read_assignment(file, prepared.data.labels, recipe.disjoint)
    provenance = file.provenance() | {"made": "imported", "partition_seed": seed, "split": list(split)}
    federation = assemble(prepared, scenario, assignment, provenance)
    _check_edges(file, federation)
    file.require(
        federation.hash == file.text("hash"),
        f"its hash is {file.text('hash')[:64]}, but what it holds on this data set has {federation.hash}",
    )
    recipe.check(prepared.data, assignment)
    check_training(federation)
    return federation


def install(path: Path, roots: tuple[Path, ...] | None = None) -> tuple[Federation, Path]:
    """Import a file and keep it, so that runs of its request use exactly these clients.

    The request is the file's data set, scenario, number of clients, partition seed and split.
    Returns the federation and the file under ``BENCH_HOME`` that keeps it; deleting that file makes
    runs draw their own clients again.
    """
    federation = import_federation(path, roots)
    seed, split = federation.provenance["partition_seed"], federation.provenance["split"]
    request = cache.Request(federation.dataset, federation.scenario, len(federation), seed, tuple(split))
    kept = cache.imported_path(request, prepare(federation.dataset, roots).checksum)
    clients = federation.clients
    assignment = Assignment(
        tuple(client.ids for client in clients), tuple(client.roles for client in clients)
    )
    with cache.lock(kept):
        cache.write(kept, cache.Entry(assignment, federation.hash, federation.provenance))
    return federation, kept
