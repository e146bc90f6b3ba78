"""Writing the result database, which answers the questions of ``Queries``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import Session

from bench.engine.states import COMPLETE, SETTLED
from bench.errors import RequestError
from bench.metric_names import ACCURACY, ROC_AUC
from bench.selection import RULES
from bench.spec import RunSpec, canonical_json, sha256
from bench.store import migrate
from bench.store.connect import BUSY_SECONDS, Database, writing
from bench.store.models import (
    Artefact,
    Base,
    ClientResult,
    Confusion,
    Curve,
    Environment,
    ImportedBundle,
    Partition,
    Run,
    pack_array,
    pack_counts,
    spec_columns,
)
from bench.store.queries import Queries, Stored, Timing, stored

if TYPE_CHECKING:
    from bench.engine.result import RunResult

COLUMNS = Run.__table__.columns
"""Of a run; its result and its context have some of them under the same names."""

SECONDS = ("total", "client", "server", "evaluation")


@dataclass(frozen=True)
class Context:
    """What surrounds a run: when, where and by which code it was made.

    ``started`` is UTC without a zone; ``environment`` and ``provenance`` (how the partition was
    made) hold values that JSON can hold.
    """

    started: datetime
    environment: Mapping[str, Any]
    code_version: str
    method_numerics: int
    engine_numerics: int
    source_hash: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)


def now() -> datetime:
    """The time as it is stored: UTC, without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)


def accuracies(result: RunResult) -> list[dict[str, Any]]:
    """Rows of ``client_results`` of a ``done`` run: every stage, split, rule and client.

    Each rule is applied to the stage's own rows; a client without samples in a split has no row
    for that split.
    """
    rows: list[dict[str, Any]] = []
    for stage in sorted({stage for stage, _ in result.correct}):
        val, test = result.correct[stage, "val"], result.correct[stage, "test"]
        for rule, choose in RULES.items():
            rounds = choose(val, result.samples["val"], test, result.samples["test"])
            for split, samples in result.samples.items():
                correct = result.correct[stage, split][rounds, np.arange(len(samples))]
                shares = np.divide(correct, samples, out=np.full(len(samples), np.nan), where=samples > 0)
                rows += _rows(stage, split, rule, ACCURACY, shares, samples)
    return rows


def areas(result: RunResult) -> list[dict[str, Any]]:
    """Rows of ``client_results`` with the areas under the ROC curve, of the clients that have one."""
    return [
        row
        for (stage, rule), values in result.roc_auc.items()
        for row in _rows(stage, "test", rule, ROC_AUC, values, result.samples["test"])
    ]


def _rows(
    stage: str, split: str, rule: str, metric: str, values: NDArray[np.float64], samples: NDArray[np.int32]
) -> list[dict[str, Any]]:
    """Rows of ``client_results`` of the clients that have a value; NaN is none."""
    reading = {"stage": stage, "split": split, "rule": rule, "metric": metric}
    return [
        {"client": client, **reading, "value": float(values[client]), "samples": int(samples[client])}
        for client in np.flatnonzero(~np.isnan(values)).tolist()
    ]


class Store(Queries):
    """A result database. Made by ``open_store``; use as a context manager or call ``close``."""

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the database open: SQLite tidies up, for milliseconds, whenever the last connection closes."""
        with self._engine.connect() as connection:
            connection.execute(select(func.count()).select_from(Run))
            connection.rollback()
            yield

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """A session in one transaction that holds the write lock from its start.

        Raises:
            RequestError: the database cannot be written (full, read-only); if it was locked for 30 s, or
                its server is away, a ``BusyError``.
        """
        with Session(writing(self._engine)) as session, session.begin():
            yield session

    def save(self, spec: RunSpec, result: RunResult, context: Context) -> int:
        """Write a run with all that belongs to it in one transaction; returns its id.

        An older row of the same spec is replaced and keeps its id. What says nothing of the numbers (a
        failure, no data) never replaces a settled run, which stays as stale as it was. Results and curves
        are written for ``done`` and ``searched`` runs only. Raises as ``transaction``.
        """
        with self.transaction() as session:
            old_run = stored(session.connection(), spec.hash)
            if old_run is not None and old_run.state in SETTLED and result.state not in SETTLED:
                return old_run.id
            if old_run is not None:
                session.execute(delete(Run).where(Run.id == old_run.id))
            environment = canonical_json(context.environment)
            run = Run(
                id=old_run.id if old_run else None,
                **spec_columns(spec),
                **{name: value for name, value in vars(result).items() if name in COLUMNS},
                **{name: value for name, value in vars(context).items() if name in COLUMNS},
                **{f"seconds_{part}": result.seconds.get(part, 0.0) for part in SECONDS},
                environment_id=id_of(session, Environment, sha256(environment), description=environment),
            )
            session.add(run)
            session.flush()
            if result.partition_hash and session.get(Partition, result.partition_hash) is None:
                session.add(
                    Partition(
                        hash=result.partition_hash,
                        dataset=spec.dataset,
                        scenario=spec.scenario,
                        clients=spec.clients,
                        provenance=canonical_json(context.provenance),
                    )
                )
            is_complete = result.state in COMPLETE
            rows = [*accuracies(result), *areas(result)] if is_complete else []
            arrays = {**result.artefacts, "loss": result.loss} if len(result.loss) else result.artefacts
            write_numbers(
                session,
                [{"run_id": run.id, **row} for row in rows],
                {(run.id, *key): counts for key, counts in result.correct.items() if is_complete},
                {(run.id, *key): counts for key, counts in result.confusion.items() if is_complete},
                {(run.id, name): array for name, array in arrays.items()},
            )
            return run.id


def write_numbers(
    session: Session,
    results: list[dict[Any, Any]],
    curves: Mapping[tuple[int, str, str], NDArray[np.int32]],
    confusions: Mapping[tuple[int, str, str], NDArray[np.int32]],
    arrays: Mapping[tuple[int, str], NDArray[Any]],
) -> None:
    """Write what belongs to runs: rows of ``client_results``, curves by run, stage and split, confusions by
    run, stage and rule, and arrays by run and name.
    """
    rows: dict[type[Base], list[dict[Any, Any]]] = {
        ClientResult: results,
        Curve: [
            {"run_id": run, "stage": stage, "split": split, "data": pack_counts(counts)}
            | dict(zip(("rows", "clients"), counts.shape, strict=True))
            for (run, stage, split), counts in curves.items()
        ],
        Confusion: [
            {"run_id": run, "stage": stage, "rule": rule, "data": pack_counts(counts)}
            | dict(zip(("clients", "classes"), counts.shape[:2], strict=True))
            for (run, stage, rule), counts in confusions.items()
        ],
        Artefact: [
            {"run_id": run, "name": name, "data": pack_array(array)} for (run, name), array in arrays.items()
        ],
    }
    for model, values in rows.items():
        if values:
            # Into the table: what a session does for objects takes as long again.
            session.execute(insert(Base.metadata.tables[model.__tablename__]), values)


def open_store(url: str, create: bool, busy_seconds: float = BUSY_SECONDS) -> Store:
    """Open the database at ``url``: ``sqlite:///PATH`` or ``postgresql+psycopg://USER@HOST/DATABASE``.

    With ``create`` it is opened for writing and made, by migration, where it is missing; without,
    it must exist and is only read. A transaction waits ``busy_seconds`` for a lock.

    Raises:
        RequestError: another kind of URL, no such database (reading), one that is not a result
            database, one that cannot be written (writing), an older or a newer schema.
    """
    database = Database(url, busy_seconds)
    database.check(create)
    engine = database.engine(write=create)
    try:
        with database.explained():
            migrate.prepare(engine, database, create)
    except BaseException:
        engine.dispose()
        raise
    return Store(engine, database.url)


def stored_runs(url: str, write: bool, searches: bool = False) -> tuple[dict[str, Stored], list[Timing]]:
    """Stored runs by spec hash, and what they cost; nothing where there is no database yet.

    With ``write``, a database that could not be written is refused now, before anything is run.
    Nothing is created. ``searches``: the database is one of searches; those and runs that are reported
    never share one.

    Raises:
        RequestError: as ``open_store``, and for a database of the other sort.
    """
    database = Database(url)
    if write:
        database.check(write=True)
    if database.empty():
        return {}, []
    with open_store(url, create=False) as store:
        stored = store.states()
        other_state = "done" if searches else "searched"
        if any(run.state == other_state for run in stored.values()):
            sort, content = "database of runs that are reported", "those of searches"
            if searches:
                sort, content = "tuning database", "runs that are reported"
            raise RequestError(
                f"--db: {database.name} cannot be a {sort}: it holds {content}; name another one"
            )
        return stored, store.history()


def knows_bundle(url: str, digest: str, must_exist: bool) -> bool:
    """Whether the bundle with this hash was imported; then the database can be written, too.

    Nothing is created. Without ``must_exist`` there may be no database yet.

    Raises:
        RequestError: as ``open_store``, and for an imported bundle as for writing.
    """
    database = Database(url)
    if not must_exist and database.empty():
        return False
    with open_store(url, create=False) as store:
        is_known = digest in set(store.bundles()["hash"])
    if is_known:
        database.check(write=True)
    return is_known


def id_of(
    session: Session, model: type[Environment | ImportedBundle], digest: str, **values: str | datetime
) -> int:
    """Id of the row with this hash; made of ``values`` where there is none."""
    number: int | None = session.scalar(select(model.id).where(model.hash == digest))
    if number is None:
        row = model(hash=digest, **values)
        session.add(row)
        session.flush()
        number = row.id
    return number
