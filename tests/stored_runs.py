"""Stored runs, the databases that hold them, and bundles with something wrong in them."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray
from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

from bench.engine import NUMERICS
from bench.engine.methods import METHODS
from bench.engine.result import Code, RunResult
from bench.selection import RULES
from bench.spec import STAGES, Protocol, RunSpec
from bench.store import Store, open_store
from bench.store.bundle import write_bundle
from bench.store.connect import Database
from bench.store.models import Base, ImportedBundle, Run
from bench.store.tables import Stored

SPLITS = ("train", "val", "test")
STARTED = datetime(2026, 1, 2, 3, 4, 5, 678901)
CORA = Protocol(rounds=100, local_epochs=3)
"""Of most papers' runs on Cora."""

Counts = Sequence[int] | Sequence[Sequence[int]] | NDArray[Any]
"""Correct predictions by client at the only evaluation, or by evaluation and client."""


@dataclass
class FakeFederation:
    """What a sweep reads of a federation."""

    hash: str = "p"  # of what tests/runner/fake_execute.py makes
    provenance: dict[str, Any] = field(default_factory=dict)


def any_federation(*key: Any, roots: tuple[Path, ...]) -> Any:
    """Whatever was asked for."""
    return FakeFederation()


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


def save(store: Store, spec: RunSpec, result: RunResult) -> int:
    """Store a result, which gets a code, a time and a machine where it has none; returns its id."""
    made = replace(
        result,
        code=result.code or Code(1, 2, "s"),
        started=result.started or STARTED,
        environment=result.environment or {"python": "3.11", "threads": 1, "name": "é"},
    )
    return store.save(spec, made, {"partition_seed": 123, "sizes": [3, 4]}).id


def done(clients: int = 2, shift: int = 0, **values: Any) -> RunResult:
    """Three rounds; client ``c`` has ``10 + c`` samples of each split and ``row + shift`` right.

    All test items are of the first of two classes. ``values`` stand in the place of the usual ones.
    """
    rows = np.arange(3)[:, None] + np.zeros((1, clients), int) + shift
    samples = np.arange(10, 10 + clients)
    confusion = np.zeros((clients, 2, 2))
    confusion[:, 0, 0] = 2 + shift
    confusion[:, 0, 1] = samples - confusion[:, 0, 0]
    usual = result_of(
        rows,
        validation=rows,
        samples=samples,
        confusion=confusion,
        loss=np.array([1.0, 0.5, 0.25], np.float32),
        artefacts={"malicious": np.zeros(clients), "large": np.zeros((40, 40))},
        seconds={"total": 0.1, "client": 0.07},
        bytes_up=123,
        partition_hash=f"p{clients}",
    )
    return replace(usual, **values)


def result_of(
    correct: Counts,
    *,
    received: Counts | None = None,
    validation: Counts | None = None,
    samples: ArrayLike = 100,
    confusion: ArrayLike | None = None,
    artefacts: Mapping[str, ArrayLike] | None = None,
    **values: Any,
) -> RunResult:
    """A run whose clients have so many of their ``samples`` right, of each split alike.

    ``received`` are those before local training, as many as ``correct`` unless given. The last evaluation
    is the best on validation unless ``validation`` says otherwise. ``confusion`` are the test items by
    client, true and predicted class, of every reading; ``values`` are further ones of the result.
    """
    trained = np.atleast_2d(np.array(correct, np.int32))
    sizes = np.broadcast_to(np.array(samples, np.int32), trained.shape[1])
    best_last = np.zeros_like(trained)
    best_last[-1] = sizes
    counts = {
        "received": trained if received is None else np.atleast_2d(np.array(received, np.int32)),
        "trained": trained,
    }
    chosen = best_last if validation is None else np.atleast_2d(np.array(validation, np.int32))
    matrices = None if confusion is None else np.array(confusion, np.int32)
    return RunResult(
        "done",
        correct={
            (stage, split): chosen if split == "val" else rows
            for stage, rows in counts.items()
            for split in SPLITS
        },
        samples=dict.fromkeys(SPLITS, sizes),
        confusion={} if matrices is None else {(stage, rule): matrices for stage in STAGES for rule in RULES},
        artefacts={name: np.array(array, np.float32) for name, array in (artefacts or {}).items()},
        **values,
    )


def took(spec: RunSpec, seconds: float, device: str = "cpu", **values: Any) -> Stored:
    """A done run of a spec, which took so many seconds there; ``values`` in the place of the usual ones."""
    usual = Stored(
        spec_hash=spec.hash,
        id=1,
        state="done",
        reason="",
        method_numerics=1,
        engine_numerics=1,
        source_hash="",
        started=STARTED,
        spec=spec.canonical(),
        seconds_total=seconds,
        device=device,
    )
    return usual._replace(**values)


class MemoryStore(Store):
    """A result database in memory, to which runs are added by hand."""

    def __init__(self) -> None:
        engine = create_engine("sqlite://", poolclass=StaticPool)
        Base.metadata.create_all(engine)
        super().__init__(Database("sqlite:///memory.db"), engine)
        self._hashes: set[str] = set()

    def copy(self) -> MemoryStore:
        """A store of its own with the same runs."""
        other = MemoryStore()
        with self._engine.connect() as source, other._engine.connect() as target:
            source.connection.driver_connection.backup(target.connection.driver_connection)
        other._hashes |= self._hashes
        return other

    def add(
        self,
        method: str,
        seed: int,
        correct: Counts | None,
        *,
        dataset: str = "cora",
        scenario: str = "non-overlapping",
        clients: int = 10,
        protocol: Protocol = CORA,
        hyper: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> int:
        """Add a run on Cora; ``correct`` and ``values`` as of ``add_run``. Returns its id."""
        spec = RunSpec(
            dataset=dataset,
            scenario=scenario,
            clients=clients,
            method=method,
            seed=seed,
            protocol=protocol,
            hyper=dict(hyper or {}),
        )
        return self.add_run(spec, correct, **values)

    def add_run(
        self,
        spec: RunSpec,
        correct: Counts | None,
        *,
        bundle: str = "",
        **values: Any,
    ) -> int:
        """Add a run of a spec that is not stored yet, by the installed code; returns its id. ``correct`` are
        as of ``result_of``, or None of a run that did not end well; ``values`` are those of the result.
        """
        if spec.hash in self._hashes:
            raise ValueError(f"the spec is stored already: {spec}")
        self._hashes.add(spec.hash)
        kind = METHODS.all().get(spec.method)
        made_on = {"processor": "A_CPU", "threads": 1, "python": "3.11.0", "packages": {"torch": "2.13.0"}}
        code = Code(kind.numerics if kind else 1, NUMERICS, "s")
        values = {"environment": made_on, "code": code, **values}
        if correct is None:
            result = RunResult(**values)
        else:
            result = result_of(correct, **{"partition_hash": "abcdef0123456789", **values})
        run = save(self, spec, result)
        if not bundle:
            return run
        with self.transaction() as session:  # nobody verified it
            row = session.query(ImportedBundle).filter_by(name=bundle).one_or_none()
            if row is None:
                row = ImportedBundle(
                    name=bundle, source="", hash=bundle, imported=STARTED, state="unverified", sample="{}"
                )
                session.add(row)
                session.flush()
            session.get_one(Run, run).bundle_id = row.id
        return run


def database(path: Path, runs: list[tuple[RunSpec, RunResult]]) -> str:
    """URL of a new database with these runs."""
    url = f"sqlite:///{path}"
    with open_store(url, create=True) as store:
        for spec, result in runs:
            save(store, spec, result)
    return url


def opened(path: Path, runs: list[tuple[RunSpec, RunResult]]) -> Store:
    return open_store(database(path, runs), create=False)


def bundle_of(folder: Path, runs: list[tuple[RunSpec, RunResult]]) -> Path:
    """A new bundle with these runs."""
    with opened(folder.with_suffix(".db"), runs) as store:
        write_bundle(store, store.runs(), folder)
    return folder


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


def dump(path: Path) -> list[str]:
    """All of an SQLite file as statements."""
    with sqlite3.connect(path) as raw:
        lines = list(raw.iterdump())
    raw.close()
    return lines
