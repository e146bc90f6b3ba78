"""The result database: its content, and the one rule by which a result replaces another."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

import bench
from bench.engine.result import Code, RunResult
from bench.engine.states import COMPLETE, SETTLED
from bench.errors import RequestError
from bench.metric_names import ACCURACY, ROC_AUC
from bench.selection import RULES
from bench.spec import FederationKey, RunSpec, canonical_json, run_name, sha256
from bench.store.connect import Database, opened, writing
from bench.store.models import Base, Environment, ImportedBundle, Partition, Run
from bench.store.tables import (
    AXES,
    Stored,
    Tables,
    pack_array,
    pack_counts,
    spec_columns,
    unpack_counts,
    wanted_values,
)

COLUMNS = Run.__table__.columns

RUN_VALUES: dict[str, sa.ColumnElement[Any]] = {
    **{name: column for name, column in COLUMNS.items() if name != "bundle_id"},
    "bundle": func.coalesce(ImportedBundle.name, ""),
    "bundle_state": func.coalesce(ImportedBundle.state, ""),
    "bundle_sampled": func.coalesce(ImportedBundle.sample.contains(Run.spec_hash), False),
}
"""Columns of ``Tables.runs``. ``bundle`` names the bundle from which a run was imported; ``bundle_state`` is
``unverified``, ``verified`` or ``contradicted``. Both are empty for own runs. ``bundle_sampled``: the run was
made again."""

CLOCKS = {
    "sqlite": "SELECT (julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "SELECT extract(epoch FROM clock_timestamp())",
}


def now() -> datetime:
    """Return the time in the form that is stored: UTC, without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)


def clock(session: Session) -> float:
    """Return seconds by the database's own clock, since the clocks of hosts differ."""
    return float(session.execute(sa.text(CLOCKS[session.get_bind().dialect.name])).scalar_one())


class Store(Tables):
    """A result database; ``open_store`` makes it. Use it as a context manager, or call ``close``."""

    def __init__(self, database: Database, engine: sa.Engine) -> None:
        self.name = database.name
        self._database = database
        self._engine = engine

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Yield a session in one transaction that holds the write lock from its start.

        Raises ``RequestError`` if the database cannot be written, ``BusyError`` if it is locked or away.
        """
        with self._database.explained("write to"), Session(writing(self._engine)) as session, session.begin():
            yield session

    def table(self, name: str, /, **filters: Any) -> pd.DataFrame:
        """As ``Tables.table``."""
        model = Base.metadata.tables[name]
        columns = RUN_VALUES if name == "runs" else dict(model.columns.items())
        statement = select(*columns.values()).order_by(*model.primary_key)
        if name == "runs":
            statement = statement.join_from(Run, ImportedBundle, isouter=True)
        for key, values in wanted_values(filters, columns).items():
            # Literal: SQLite and PostgreSQL limit how many variables a statement may have.
            wanted = sa.bindparam(None, values, columns[key].type, expanding=True, literal_execute=True)
            statement = statement.where(columns[key].in_(wanted))
        with self._database.explained("read"), self._engine.connect() as connection:
            rows = list(map(tuple, connection.execute(statement)))  # pandas is slow with SQLAlchemy's rows
        frame = pd.DataFrame(rows, columns=list(columns))
        if name in AXES:
            shapes = frame[list(AXES[name])].itertuples(index=False, name=None)
            counts = list(map(unpack_counts, frame.pop("data"), shapes))
            frame["counts"] = pd.Series(counts, dtype=object)
        return frame

    def states(self, spec_hash: str | None = None) -> dict[str, Stored]:
        """Return all stored runs, or only the one of a spec, by spec hash."""
        statement = select(*(RUN_VALUES[name] for name in Stored._fields)).order_by(Run.id)
        if spec_hash is not None:
            statement = statement.where(Run.spec_hash == spec_hash)
        with self._database.explained("read"), self._engine.connect() as connection:
            return {row[0]: Stored(*row) for row in connection.execute(statement)}

    def refuse_other_clients(self, hashes: Mapping[FederationKey, str], redone: Collection[str]) -> None:
        """Refuse a database with own settled runs on clients other than those in ``hashes``: a report
        averages all runs of a cell. Spec hashes in ``redone`` are ignored, since these runs are replaced.
        """
        runs = self.runs(state=SETTLED, bundle="")
        runs = runs[~runs["partition_hash"].isin({"", *hashes.values()}) & ~runs["spec_hash"].isin(redone)]
        for old, text in zip(runs["partition_hash"], runs["spec"], strict=True):
            spec = RunSpec.model_validate_json(text)
            if new := hashes.get(spec.federation_key):
                name = run_name(spec.dataset, spec.scenario, spec.clients, spec.method, spec.seed)
                clients = f"made on other clients ({old[:8]}) than there are now ({new[:8]})"
                raise RequestError(f"{name} is stored, {clients}; use another --db")

    def save(self, spec: RunSpec, result: RunResult, provenance: Mapping[str, Any] | None = None) -> Stored:
        """Write a run with its rows in all tables in one transaction; return what is stored now.

        An older row of the same spec is replaced and keeps its id. A result without numbers (a failure, no
        data) never replaces a settled run, which stays as stale as it was. ``provenance`` says how the
        partition was made. Raises as ``transaction``.
        """
        with self.transaction() as session:
            old_run = session.scalar(select(Run).where(Run.spec_hash == spec.hash))
            if old_run and old_run.state in SETTLED and result.state not in SETTLED:
                return _stored(old_run)
            code = result.code or Code(0, 0, "")
            described = canonical_json(result.environment)
            values = spec_columns(spec)
            values |= {name: value for name, value in vars(result).items() if name in COLUMNS}
            values |= {f"seconds_{part}": seconds for part, seconds in result.seconds.items()}
            values |= {
                "environment_id": id_of(session, Environment(hash=sha256(described), description=described)),
                "started": result.started or now(),
                "code_version": bench.__version__,
                "method_numerics": code.method_numerics,
                "engine_numerics": code.engine_numerics,
                "source_hash": code.source,
            }
            run = replace_run(session, old_run.id if old_run else None, values)
            if result.partition_hash and session.get(Partition, result.partition_hash) is None:
                key = {name: values[name] for name in ("dataset", "scenario", "clients")}
                made_how = canonical_json(provenance or {})
                session.add(Partition(hash=result.partition_hash, **key, provenance=made_how))
            for name, rows in tables_of(result).items():
                write_rows(session, name, [{"run_id": run.id, **row} for row in rows])
            return _stored(run)

    def delete(self, ids: Iterable[int]) -> None:
        """Delete runs with their rows in all tables, in one transaction. Raises as ``transaction``."""
        with self.transaction() as session:
            for number in ids:
                session.execute(delete(Run).where(Run.id == number))


def _stored(run: Run) -> Stored:
    return Stored(*(getattr(run, name) for name in Stored._fields))


def replace_run(session: Session, old_id: int | None, values: Mapping[str, Any]) -> Run:
    """Add a run in place of an old one; the new run takes the old id."""
    session.execute(delete(Run).where(Run.id == old_id))
    run = Run(id=old_id, **values)
    session.add(run)
    session.flush()
    return run


def write_rows(session: Session, name: str, rows: Iterable[Mapping[Any, Any]]) -> None:
    """Write rows of a table that belongs to runs, with the columns of ``bench.store.tables``."""
    values = [dict(row) for row in rows]
    for row in values if name in AXES else ():
        counts = row.pop("counts")
        row |= dict(zip(AXES[name], counts.shape, strict=True)) | {"data": pack_counts(counts)}
    if values:
        # Insert into the table directly: a session's work for objects takes as long again.
        session.execute(sa.insert(Base.metadata.tables[name]), values)


def id_of(session: Session, row: Environment | ImportedBundle) -> int:
    """Return the id of the stored row with this row's hash; add the row if there is none."""
    model = type(row)
    number: int | None = session.scalar(select(model.id).where(model.hash == row.hash))
    if number is None:
        session.add(row)
        session.flush()
        return row.id
    return number


def tables_of(result: RunResult) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a result by table; a run that has not finished gives no numbers of clients."""
    arrays = {**result.artefacts, "loss": result.loss} if len(result.loss) else result.artefacts
    tables = {"artefacts": [{"name": name, "data": pack_array(array)} for name, array in arrays.items()]}
    if result.state not in COMPLETE:
        return tables
    results = accuracies(result)
    for (stage, rule), areas in result.roc_auc.items():  # of the clients that have an area
        results += _rows(stage, "test", rule, ROC_AUC, areas, result.samples["test"])
    curves, confusions = result.correct.items(), result.confusion.items()
    return tables | {
        "client_results": results,
        "curves": [{"stage": stage, "split": split, "counts": counts} for (stage, split), counts in curves],
        "confusions": [
            {"stage": stage, "rule": rule, "counts": counts} for (stage, rule), counts in confusions
        ],
    }


def accuracies(result: RunResult) -> list[dict[str, Any]]:
    """Return the rows of ``client_results`` of a ``done`` run: every stage, split, rule and client.

    Each rule is applied to the stage's own rows, unless the run has selected rounds by another metric. A
    client without samples in a split has no row for that split.
    """
    rows: list[dict[str, Any]] = []
    for stage in sorted({stage for stage, _ in result.correct}):
        val, test = result.correct[stage, "val"], result.correct[stage, "test"]
        for rule, choose in RULES.items():
            rounds = result.selected.get((stage, rule))
            if rounds is None:
                rounds = choose(val, result.samples["val"], test, result.samples["test"])
            for split, samples in result.samples.items():
                correct = result.correct[stage, split][rounds, np.arange(len(samples))]
                shares = np.divide(correct, samples, out=np.full(len(samples), np.nan), where=samples > 0)
                rows += _rows(stage, split, rule, ACCURACY, shares, samples)
    return rows


def _rows(
    stage: str, split: str, rule: str, metric: str, values: NDArray[np.float64], samples: NDArray[np.int32]
) -> list[dict[str, Any]]:
    """Return rows of ``client_results`` for the clients that have a value; NaN means no value."""
    reading = {"stage": stage, "split": split, "rule": rule, "metric": metric}
    return [
        {"client": client, **reading, "value": float(values[client]), "samples": int(samples[client])}
        for client in np.flatnonzero(~np.isnan(values)).tolist()
    ]


def open_store(url: str, create: bool) -> Store:
    """Open the database at ``url``: ``sqlite:///PATH`` or ``postgresql+psycopg://USER@HOST/DATABASE``.

    With ``create``, open it for writing and create it if it is missing; without, open it for reading only.
    """
    database = Database(url)
    return Store(database, opened(database, create))


def stored_runs(url: str, searches: bool = False) -> dict[str, Stored]:
    """Return stored runs by spec hash. If there is no database yet, return nothing and create none.

    ``searches``: the database holds runs of searches. Such runs and reported runs never share a database.
    """
    database = Database(url)
    if database.empty():
        return {}
    with open_store(url, create=False) as store:
        stored = store.states()
    other_state = "done" if searches else "searched"
    if any(run.state == other_state for run in stored.values()):
        content = "runs that are reported" if searches else "those of searches"
        raise RequestError(f"--db: {database.name} holds {content}: name another one")
    return stored
