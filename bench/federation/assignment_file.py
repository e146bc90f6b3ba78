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
nodes, or images of image data. Edges are written for use without the suite and are not read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
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
COLUMNS = ("client", "item", "role")
ROLES = {name: role for role, name in enumerate(ROLE_NAMES)} | {"": UNUSED}
"""The values of the column ``role`` of a table."""

CORRECT = "correct the file; docs/extending.md describes it"


@dataclass(frozen=True, eq=False)
class AssignmentFile:
    """An assignment and what its file says of it. A value that the file does not give is None.

    ``labels`` are in the order of the clients' items.
    """

    assignment: Assignment
    dataset: str | None = None
    scenario: str | None = None
    partition_seed: int | None = None
    split: Split | None = None
    hash: str | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    labels: NDArray[np.int64] | None = None


def write(path: Path, federation: Federation, with_data: bool = False) -> None:
    """Write an archive; ``with_data`` with labels and edges. An existing file is replaced when the new one is
    complete.
    """
    clients, provenance = federation.clients, federation.provenance
    nodes = Ragged.of([client.ids for client in clients])
    roles = np.concatenate([client.roles for client in clients])
    arrays: dict[str, Any] = {
        "format": FORMAT,
        "nodes": nodes.values,
        "nodes_offsets": nodes.offsets,
        **{mask: roles == role for mask, role in MASKS.items()},
        "dataset": federation.dataset,
        "scenario": federation.scenario,
        "partition_seed": provenance["partition_seed"],
        "split": np.array(provenance["split"], np.float64),
        "hash": federation.hash,
        "provenance": json.dumps(provenance, sort_keys=True),
    }
    edges = [client.edges for client in clients if client.edges is not None]
    if with_data:
        arrays["labels"] = np.concatenate([client.labels for client in clients])
    if with_data and edges:
        arrays["edges"] = np.concatenate(edges, axis=1)
        arrays["edges_offsets"] = np.cumsum([0, *(part.shape[1] for part in edges)])
    with replacing_file(path) as temporary, temporary.open("wb") as archive:
        np.savez_compressed(archive, allow_pickle=False, **arrays)


def read_archive(path: Path) -> AssignmentFile:
    """Read an NPZ file and check it as far as possible without the data set.

    Raises:
        RequestError: the file is no such archive, lacks an array or has one of another type or length, or
            a mask overlaps another.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays: dict[str, NDArray[Any]] = {name: file[name] for name in file.files}
    except Exception:  # whatever zipfile, zlib or NumPy raise on bytes that are not theirs
        raise RequestError(f"{path}: not a readable NPZ archive without pickled objects; {CORRECT}") from None
    try:
        return _of_arrays(arrays)
    except (ValueError, TypeError) as error:
        raise RequestError(f"{path}: {error}; {CORRECT}") from None


def _of_arrays(arrays: Mapping[str, NDArray[Any]]) -> AssignmentFile:
    """The content of an archive.

    Raises:
        ValueError, TypeError: what is wrong with an array.
    """
    for name in ("nodes", "nodes_offsets", *MASKS):
        kinds = "b" if name in MASKS else "iu"
        if name not in arrays:
            raise ValueError(f"array '{name}' is missing")
        if arrays[name].dtype.kind not in kinds or arrays[name].ndim != 1:
            raise ValueError(f"array '{name}' has type {arrays[name].dtype}, {arrays[name].ndim} dimensions")
    if "format" in arrays and int(arrays["format"]) != FORMAT:
        raise ValueError(f"format {FORMAT} expected, got {arrays['format']}")
    nodes, offsets = arrays["nodes"].astype(np.int64), arrays["nodes_offsets"].astype(np.int64)
    is_rising = len(offsets) > 1 and (np.diff(offsets) >= 0).all()
    if not is_rising or offsets[0] != 0 or offsets[-1] != len(nodes):
        raise ValueError(f"'nodes_offsets' must rise from 0 to {len(nodes)}")
    for name in {*MASKS, "labels"} & arrays.keys():
        if len(arrays[name]) != len(nodes):
            raise ValueError(f"'{name}' has {len(arrays[name])} entries, expected {len(nodes)}")
    roles = np.full(len(nodes), UNUSED, np.int8)
    for mask, role in MASKS.items():
        if (roles[arrays[mask]] != UNUSED).any():
            raise ValueError(f"'{mask}' overlaps another mask")
        roles[arrays[mask]] = role
    split: Split | None = None
    if "split" in arrays:
        train, validation, test = map(float, arrays["split"])
        split = train, validation, test
    return AssignmentFile(
        Assignment(tuple(np.split(nodes, offsets[1:-1])), tuple(np.split(roles, offsets[1:-1]))),
        partition_seed=int(arrays["partition_seed"]) if "partition_seed" in arrays else None,
        split=split,
        provenance=dict(json.loads(str(arrays.get("provenance", "{}")))),
        labels=arrays.get("labels"),
        **{name: str(arrays[name]) for name in ("dataset", "scenario", "hash") if name in arrays},
    )


def read_table(path: Path) -> AssignmentFile:
    """Read a CSV table and check it as far as possible without the data set.

    Raises:
        RequestError: the file is no such table, a column is missing, a value does not fit its column, or
            a client between the first and the last has no row.
    """
    import pandas as pd  # slow to import, and needed here alone

    try:
        table = pd.read_csv(
            path,
            usecols=COLUMNS,
            dtype={"client": np.int64, "item": np.int64, "role": str},
            keep_default_na=False,
            skipinitialspace=True,
            encoding="utf-8-sig",
        )
        roles = table["role"].str.strip().map(ROLES)
        if roles.isna().any():
            raise ValueError(f"unknown role '{table['role'][roles.isna()].iloc[0]}'")
        counts = np.bincount(table["client"]) if len(table) else np.zeros(1)
        if not counts.all():
            raise ValueError(f"no row is of client {counts.argmin()}: clients are numbered from 0")
    except (ValueError, OverflowError, MemoryError) as error:  # pandas's own are a ValueError, too
        raise RequestError(f"{path}: {' '.join(str(error).split())}; {CORRECT}") from None
    order = np.argsort(table["client"], kind="stable")
    items, item_roles = table["item"].to_numpy()[order], roles.to_numpy(np.int8)[order]
    cuts = np.cumsum(counts)[:-1]
    return AssignmentFile(Assignment(tuple(np.split(items, cuts)), tuple(np.split(item_roles, cuts))))


def read(path: Path) -> AssignmentFile:
    """Read a file: a table if its name ends in ``.csv``, else an archive. Raises as these do.

    Raises:
        RequestError: there is no such file.
    """
    if not path.is_file():
        raise RequestError(f"{path}: expected a file with the clients' items (NPZ or CSV), found none")
    return read_table(path) if path.suffix.lower() == ".csv" else read_archive(path)
