"""Which items each client holds and in which role, as one small file.

The suite writes an NPZ archive without pickled objects; it reads that and a CSV table. ``n`` items
over all clients, ``k`` clients:

=================  ================  ==========================================================
array              type and shape    meaning
=================  ================  ==========================================================
``nodes``          int ``[n]``       ids in the prepared data set, client after client
``nodes_offsets``  int ``[k+1]``     client ``c`` has ``nodes[nodes_offsets[c]:nodes_offsets[c+1]]``
``train_mask``     bool ``[n]``      in the order of ``nodes``; the same for ``val_mask`` and
                                     ``test_mask``; an item is in one of them at most
``format``         int               1; this and all below may be left out
``dataset``        text              name of the data set
``scenario``       text              name of the scenario
``partition_seed`` int               seed of the partition and the split
``split``          float ``[3]``     shares of training, validation and test items, percent
``hash``           text              the federation's hash, hexadecimal SHA-256
``provenance``     text              how it was made, JSON
``labels``         int ``[n]``       classes, in the order of ``nodes``
``edges``          int ``[2, m]``    graphs only: positions inside the client, both directions,
                                     sorted by (source, target), client after client
``edges_offsets``  int ``[k+1]``     graphs only: client ``c`` has the columns
                                     ``edges_offsets[c]:edges_offsets[c+1]``
=================  ================  ==========================================================

The table has a row for an item of a client and the columns ``client`` (0 to ``k - 1``), ``item`` and
``role`` (``train``, ``val``, ``test``; ``unused`` or empty: seen as features only). Clients hold their
items in the order of the rows. Further columns are not read.

Features, hyperedges and pixels are in neither: they follow from the data set and the ids. Items are
nodes, or images of image data.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.data import Ragged
from bench.errors import RequestError
from bench.federation.scenario import Assignment, Split
from bench.federation.types import ROLE_NAMES, TEST, TRAIN, UNUSED, VALIDATION, Federation
from bench.replacement import replacing_file

FORMAT = 1
MASKS = {"train_mask": TRAIN, "val_mask": VALIDATION, "test_mask": TEST}
REQUIRED: dict[str, tuple[str, int]] = {
    "nodes": ("iu", 1),
    "nodes_offsets": ("iu", 1),
    **dict.fromkeys(MASKS, ("b", 1)),
}
"""Kind of type and number of dimensions of the arrays that every file needs."""

OPTIONAL: dict[str, tuple[str, int]] = {
    "format": ("iu", 0),
    "dataset": ("U", 0),
    "scenario": ("U", 0),
    "partition_seed": ("iu", 0),
    "split": ("f", 1),
    "hash": ("U", 0),
    "provenance": ("U", 0),
    "labels": ("iu", 1),
    "edges": ("iu", 2),
    "edges_offsets": ("iu", 1),
}

SCALARS = ("dataset", "scenario", "hash", "partition_seed")

COLUMNS = ("client", "item", "role")
ROLES = {name: role for role, name in enumerate(ROLE_NAMES)} | {"": UNUSED}
"""The values of the column ``role`` of a table."""

CORRECT = "correct the file; docs/extending.md describes it"


@dataclass(frozen=True, eq=False)
class AssignmentFile:
    """An assignment and what its file says of it. A value that the file does not give is None.

    ``labels[c]`` and ``edges[c]`` are those of client ``c``.
    """

    assignment: Assignment
    dataset: str | None = None
    scenario: str | None = None
    partition_seed: int | None = None
    split: Split | None = None
    hash: str | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    labels: tuple[NDArray[np.int64], ...] | None = None
    edges: tuple[NDArray[np.int64], ...] | None = None

    @classmethod
    def of(cls, federation: Federation) -> AssignmentFile:
        """Everything that is needed to make the federation again from its data set."""
        clients = federation.clients
        return cls(
            Assignment(tuple(client.ids for client in clients), tuple(client.roles for client in clients)),
            federation.dataset,
            federation.scenario,
            federation.provenance["partition_seed"],
            tuple(federation.provenance["split"]),
            federation.hash,
            federation.provenance,
        )


def _arrays(file: AssignmentFile) -> Iterator[tuple[str, Any]]:
    """The name and value of every array. Arrays of which the file says nothing are left out."""
    nodes = Ragged.of(list(file.assignment.ids))
    roles = np.concatenate(file.assignment.roles)
    yield "format", np.int64(FORMAT)
    yield "nodes", nodes.values
    yield "nodes_offsets", nodes.offsets
    yield from ((mask, roles == role) for mask, role in MASKS.items())
    for name in SCALARS:
        if getattr(file, name) is not None:
            yield name, np.array(getattr(file, name))
    if file.split is not None:
        yield "split", np.array(file.split, np.float64)
    if file.provenance:
        yield "provenance", np.array(json.dumps(file.provenance, sort_keys=True))
    if file.labels is not None:
        yield "labels", np.concatenate(file.labels)
    if file.edges is not None:
        yield "edges", np.concatenate(file.edges, axis=1)
        yield "edges_offsets", np.cumsum([0, *(part.shape[1] for part in file.edges)])


def write(path: Path, file: AssignmentFile) -> None:
    """Write an archive. An existing file is replaced when the new one is complete.

    Raises:
        OSError: the file cannot be written there.
    """
    with replacing_file(path) as temporary, temporary.open("wb") as archive:
        np.savez_compressed(archive, allow_pickle=False, **dict(_arrays(file)))


class _Archive:
    """The arrays of an NPZ file, checked for their types. Every problem is a ``RequestError``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with np.load(path, allow_pickle=False) as file:
                self._arrays: dict[str, NDArray[Any]] = {name: file[name] for name in file.files}
        except Exception:  # whatever zipfile, zlib or NumPy raise on bytes that are not theirs
            raise self.wrong("not a readable NPZ archive without pickled objects") from None
        for name in REQUIRED:
            self.require(name in self._arrays, f"array '{name}' is missing")
        self.require(
            ("edges" in self) == ("edges_offsets" in self), "'edges' and 'edges_offsets' go together"
        )
        for name, (kinds, dimensions) in (REQUIRED | OPTIONAL).items():
            if name in self:
                array = self[name]
                self.require(
                    array.dtype.kind in kinds and array.ndim == dimensions,
                    f"array '{name}' has type {array.dtype} and {array.ndim} dimensions, "
                    f"expected kind {' or '.join(kinds)} and {dimensions}",
                )

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name]

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def wrong(self, problem: str) -> RequestError:
        return RequestError(f"{self.path}: {' '.join(problem.split())}; {CORRECT}")

    def require(self, holds: bool | np.bool_, problem: str) -> None:
        if not holds:
            raise self.wrong(problem)

    def cuts(self, name: str, length: int) -> NDArray[np.int64]:
        """The inner offsets, which cut ``length`` entries into those of the clients."""
        values = self[name].astype(np.int64)
        self.require(
            len(values) >= 2
            and values[0] == 0
            and values[-1] == length
            and bool((np.diff(values) >= 0).all()),
            f"'{name}' must rise from 0 to {length}",
        )
        return values[1:-1]

    def of_items(self, name: str) -> NDArray[Any]:
        """An array with one entry for every one of ``nodes``."""
        length, items = len(self[name]), len(self["nodes"])
        self.require(length == items, f"'{name}' has {length} entries, expected {items}")
        return self[name]

    def split(self) -> Split | None:
        if "split" not in self:
            return None
        self.require(len(self["split"]) == 3, f"'split' has {len(self['split'])} entries, expected 3")
        train, validation, test = (float(share) for share in self["split"])
        return train, validation, test

    def provenance(self) -> dict[str, Any]:
        try:
            return dict(json.loads(str(self["provenance"]) or "{}")) if "provenance" in self else {}
        except (ValueError, TypeError, RecursionError):
            raise self.wrong("'provenance' is not a JSON object") from None

    def roles(self) -> NDArray[np.int8]:
        roles = np.full(len(self["nodes"]), UNUSED, np.int8)
        for mask, role in MASKS.items():
            positions = self.of_items(mask)
            repeats = self["nodes"][positions][roles[positions] != UNUSED]
            self.require(not len(repeats), f"'{mask}' overlaps another mask at item {repeats[:1].sum()}")
            roles[positions] = role
        return roles

    def read(self) -> AssignmentFile:
        """The content of the archive."""
        number = self["format"].item() if "format" in self else FORMAT
        self.require(number == FORMAT, f"format {FORMAT} expected, got {number}")
        nodes = self["nodes"].astype(np.int64)
        cuts = self.cuts("nodes_offsets", len(nodes))
        labels = edges = None
        if "labels" in self:
            labels = tuple(np.split(self.of_items("labels").astype(np.int64), cuts))
        if "edges" in self:
            columns = self["edges"].astype(np.int64)
            self.require(len(columns) == 2, f"'edges' has {len(columns)} rows, expected 2")
            edges = tuple(np.split(columns, self.cuts("edges_offsets", columns.shape[1]), axis=1))
        return AssignmentFile(
            Assignment(tuple(np.split(nodes, cuts)), tuple(np.split(self.roles(), cuts))),
            split=self.split(),
            provenance=self.provenance(),
            labels=labels,
            edges=edges,
            **{name: self[name].item() for name in SCALARS if name in self},
        )


def read_archive(path: Path) -> AssignmentFile:
    """Read an NPZ file and check it as far as possible without the data set.

    Raises:
        RequestError: the file is no such archive, lacks an array or has one of another type or length, or
            a mask overlaps another.
    """
    return _Archive(path).read()


def _integer(text: str, place: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII):
        raise ValueError(f"{place}: expected an integer, got '{text}'")
    return int(text)


def _rows(path: Path) -> Iterator[tuple[int, int, int]]:
    """The client, item and role of every row.

    Raises:
        ValueError: what was expected instead, with the line.
    """
    with path.open(encoding="utf-8-sig", newline="") as lines:
        table = csv.DictReader(lines)
        gaps = [column for column in COLUMNS if column not in (table.fieldnames or ())]
        if gaps:
            raise ValueError(f"expected the columns {', '.join(COLUMNS)}; {', '.join(gaps)} is missing")
        for row in table:
            client, item, role = ((row[column] or "").strip() for column in COLUMNS)
            place = f"line {table.line_num}, column"
            if role not in ROLES:
                raise ValueError(f"{place} role: expected train, val, test, unused or nothing, got '{role}'")
            yield _integer(client, f"{place} client"), _integer(item, f"{place} item"), ROLES[role]


def read_table(path: Path) -> AssignmentFile:
    """Read a CSV table and check it as far as possible without the data set.

    Raises:
        RequestError: the file is no such table, a column is missing, a value does not fit its column, or
            a client between the first and the last has no row.
    """
    try:
        rows = np.array(list(_rows(path)), np.int64).reshape(-1, 3)
        if not len(rows):
            raise ValueError("expected a row for every item of a client, got none")
        clients, items, roles = rows.T
        gaps = np.setdiff1d(np.arange(min(len(rows) + 1, clients.max() + 1)), clients)
        if clients.min() < 0 or len(gaps):
            number = clients.min() if clients.min() < 0 else gaps[0]
            raise ValueError(
                f"clients are numbered from 0 without a gap, but "
                f"{'there is a' if number < 0 else 'no row is of'} client {number}"
            )
    except (OSError, ValueError, csv.Error) as error:  # bytes that are not UTF-8 are a ValueError, too
        problem = "not a text file in UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise RequestError(f"{path}: {' '.join(problem.split())}; {CORRECT}") from None
    order = np.argsort(clients, kind="stable")
    cuts = np.flatnonzero(np.diff(clients[order])) + 1
    return AssignmentFile(
        Assignment(tuple(np.split(items[order], cuts)), tuple(np.split(roles[order].astype(np.int8), cuts)))
    )


def read(path: Path) -> AssignmentFile:
    """Read a file: a table if its name ends in ``.csv``, else an archive. Raises as these do.

    Raises:
        RequestError: there is no such file.
    """
    if not path.is_file():
        raise RequestError(f"{path}: expected a file with the clients' items (NPZ or CSV), found none")
    return read_table(path) if path.suffix.lower() == ".csv" else read_archive(path)
