"""Stored runs, the databases that hold them, and bundles with something wrong in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.engine.result import RunResult
from bench.selection import RULES
from bench.spec import STAGES, Protocol, RunSpec
from bench.store import Context, Store, open_store

SPLITS = ("train", "val", "test")
STARTED = datetime(2026, 1, 2, 3, 4, 5, 678901)


def spec_of(clients: int = 2, seed: int = 0, method: str = "local", **protocol: int) -> RunSpec:
    """A run on Cora, of three rounds unless the protocol says otherwise."""
    return RunSpec(
        dataset="cora",
        scenario="non-overlapping",
        clients=clients,
        method=method,
        seed=seed,
        protocol=Protocol(**{"rounds": 3, **protocol}),
    )


def context_of(**values: Any) -> Context:
    """Where and by which code a run was made; ``values`` in the place of the usual ones."""
    usual = Context(
        started=STARTED,
        environment={"python": "3.11", "threads": 1, "name": "é"},
        code_version="0.1",
        method_numerics=1,
        engine_numerics=2,
        source_hash="s",
        provenance={"partition_seed": 123, "sizes": [3, 4]},
    )
    return replace(usual, **values)


def done(clients: int = 2, shift: int = 0, **values: Any) -> RunResult:
    """Three rounds; client ``c`` has ``10 + c`` samples of each split and ``row + shift`` right.

    All test items are of the first of two classes. ``values`` stand in the place of the usual ones.
    """
    rows = np.arange(3, dtype=np.int32)[:, None] + np.zeros((1, clients), np.int32) + np.int32(shift)
    samples = np.arange(10, 10 + clients, dtype=np.int32)
    confusion = np.zeros((clients, 2, 2), np.int32)
    confusion[:, 0, 0] = 2 + shift
    confusion[:, 0, 1] = samples - confusion[:, 0, 0]
    usual = RunResult(
        "done",
        correct={(stage, split): rows for stage in ("received", "trained") for split in SPLITS},
        samples=dict.fromkeys(SPLITS, samples),
        confusion={(stage, rule): confusion for stage in STAGES for rule in RULES},
        loss=np.array([1.0, 0.5, 0.25], np.float32),
        artefacts={"malicious": np.zeros(clients, np.float32), "large": np.zeros((40, 40), np.float32)},
        seconds={"total": 0.1, "client": 0.07},
        bytes_up=123,
        partition_hash=f"p{clients}",
    )
    return replace(usual, **values)


def database(path: Path, runs: list[tuple[RunSpec, RunResult]]) -> str:
    """URL of a new database with these runs."""
    url = f"sqlite:///{path}"
    with open_store(url, create=True) as store:
        for spec, result in runs:
            store.save(spec, result, context_of())
    return url


def opened(path: Path, runs: list[tuple[RunSpec, RunResult]]) -> Store:
    return open_store(database(path, runs), create=False)


def change_table(folder: Path, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Write a Parquet file of a bundle anew, with its right sum in ``bundle.json``."""
    pq.write_table(change(pq.read_table(folder / name)), folder / name, store_schema=False)
    sign(folder, name)


def sign(folder: Path, name: str, rows: int | None = None) -> None:
    """Set size, sum and rows of a file in ``bundle.json`` to what the file is."""
    data = (folder / name).read_bytes()
    count = pq.read_metadata(folder / name).num_rows if rows is None else rows
    entry = {"bytes": len(data), "rows": count, "sha256": hashlib.sha256(data).hexdigest()}
    change_manifest(folder, lambda tree: tree["files"].update({name: entry}))


def change_manifest(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    tree = json.loads((folder / "bundle.json").read_text())
    change(tree)
    (folder / "bundle.json").write_text(json.dumps(tree))


def set_cell(column: str, value: Any, row: int = 0) -> Callable[[pa.Table], pa.Table]:
    """A change of one value of a table."""

    def change(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index(column)
        values = table.column(column).to_pylist()
        values[row] = value
        field = table.schema.field(column)
        return table.set_column(place, field, pa.array(values, field.type))

    return change
