"""A small file with the items of each client and their roles.

The suite writes an NPZ archive without pickled objects; it reads that and a CSV table. docs/extending.md
describes both. Items are nodes, or images of image data. All else follows from the data set and the ids.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.data import Ragged
from bench.errors import RequestError
from bench.federation.scenario import Assignment
from bench.federation.types import ROLE_NAMES, TEST, TRAIN, UNUSED, VALIDATION, Federation
from bench.paths import replacing_file

FORMAT = 1
MASKS = {"train_mask": TRAIN, "val_mask": VALIDATION, "test_mask": TEST}
COLUMNS = ("client", "item", "role")
ROLES = {name: role for role, name in enumerate(ROLE_NAMES)} | {"": UNUSED}
"""The values of the column ``role`` of a table."""

CORRECT = "correct the file; docs/extending.md describes it"


@dataclass(frozen=True, eq=False)
class AssignmentFile:
    """An assignment and the other contents of its file.

    ``said`` is the part of the request (``bench.spec.FederationKey``) that the file gives. ``hash`` is None
    if the file does not give it.
    """

    assignment: Assignment
    said: dict[str, Any] = field(default_factory=dict)
    hash: str | None = None
    provenance: dict[str, Any] = field(default_factory=dict)


def write(path: Path, federation: Federation) -> None:
    """Write an archive. An existing file is replaced when the new one is complete."""
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
    with replacing_file(path) as temporary, temporary.open("wb") as archive:
        np.savez_compressed(archive, allow_pickle=False, **arrays)


def read(path: Path) -> AssignmentFile:
    """Read a table if the name ends in ``.csv``, else an archive, and check it without the data set.

    Raises:
        RequestError: the file is missing or invalid; the message says what is wrong.
    """
    try:
        return _read_table(path) if path.suffix.lower() == ".csv" else _read_archive(path)
    except Exception as error:  # pandas, zipfile, zlib and NumPy raise many kinds on foreign bytes
        problem = " ".join(str(error).split()) or type(error).__name__
        raise RequestError(f"{path}: {problem}; {CORRECT}") from None


def _read_archive(path: Path) -> AssignmentFile:
    """Read an NPZ archive. NumPy itself refuses a mask whose type or length does not fit ``nodes``."""
    with np.load(path, allow_pickle=False) as file:
        arrays: dict[str, NDArray[Any]] = {name: file[name] for name in file.files}
    missing = {"nodes", "nodes_offsets", *MASKS} - arrays.keys()
    if missing:
        raise ValueError(f"it lacks {', '.join(sorted(missing))}")
    if int(arrays.get("format", FORMAT)) != FORMAT:
        raise ValueError(f"format {FORMAT} expected, got {arrays['format']}")
    nodes, offsets = (
        arrays[name].astype(np.int64, casting="same_kind") for name in ("nodes", "nodes_offsets")
    )
    if offsets[0] != 0 or offsets[-1] != len(nodes) or (np.diff(offsets) < 0).any():
        raise ValueError(f"'nodes_offsets' must rise from 0 to {len(nodes)}")
    roles = np.full(len(nodes), UNUSED, np.int8)
    for mask, role in MASKS.items():
        has_role = arrays[mask].astype(np.bool_, casting="safe")
        if (roles[has_role] != UNUSED).any():
            raise ValueError(f"'{mask}' overlaps another mask")
        roles[has_role] = role
    said: dict[str, Any] = {name: str(arrays[name]) for name in ("dataset", "scenario") if name in arrays}
    if "partition_seed" in arrays:
        said["partition_seed"] = int(arrays["partition_seed"])
    if "split" in arrays:
        train, validation, test = map(float, arrays["split"])
        said["split"] = train, validation, test
    return AssignmentFile(
        Assignment(tuple(np.split(nodes, offsets[1:-1])), tuple(np.split(roles, offsets[1:-1]))),
        said,
        str(arrays["hash"]) if "hash" in arrays else None,
        dict(json.loads(str(arrays.get("provenance", "{}")))),
    )


def _read_table(path: Path) -> AssignmentFile:
    """Read a CSV table. Clients hold their items in the order of the rows; further columns are not read."""
    import pandas as pd  # slow to import, and needed here alone

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
    order = np.argsort(table["client"], kind="stable")
    items, item_roles = table["item"].to_numpy()[order], roles.to_numpy(np.int8)[order]
    cuts = np.cumsum(counts)[:-1]
    return AssignmentFile(Assignment(tuple(np.split(items, cuts)), tuple(np.split(item_roles, cuts))))
