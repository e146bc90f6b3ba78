"""Reading and writing the result database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine, delete, func, insert, select
from sqlalchemy.orm import Session

from bench.selection import RULES
from bench.store import connect, migrate, queries
from bench.store.arrays import pack_array, pack_counts
from bench.store.models import Artefact, ClientResult, Curve, Environment, ImportedBundle, Partition, Run

if TYPE_CHECKING:
    import pandas as pd

    from bench.engine.result import RunResult
    from bench.spec import RunSpec

METRIC = "accuracy"


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


def accuracies(result: RunResult) -> list[dict[str, Any]]:
    """Rows of ``client_results`` of a ``done`` run: every stage, split, rule and client.

    Each rule is applied to the stage's own rows; a client without samples in a split has no row
    for that split.
    """
    rows: list[dict[str, Any]] = []
    for stage in sorted({stage for stage, _ in result.correct}):
        val, test = result.correct[stage, "val"], result.correct[stage, "test"]
        for rule, choose in RULES.items():
            chosen = choose(val, result.samples["val"], test, result.samples["test"])
            for split, samples in result.samples.items():
                correct = result.correct[stage, split]
                rows.extend(
                    {
                        "client": int(client),
                        "stage": stage,
                        "split": split,
                        "rule": rule,
                        "metric": METRIC,
                        "value": int(correct[chosen[client], client]) / int(samples[client]),
                        "samples": int(samples[client]),
                    }
                    for client in np.flatnonzero(samples)
                )
    return rows


class Store:
    """A result database. Made by ``open_store``; use as a context manager or call ``close``."""

    def __init__(self, engine: Engine, url: str) -> None:
        self._engine = engine
        self.url = url

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        with Session(connect.writing(self._engine)) as session, session.begin():
            yield session

    # Writing ------------------------------------------------------------------------------------

    def save(
        self,
        spec: RunSpec,
        result: RunResult,
        context: Context,
        keep: Callable[[queries.Stored], bool] = lambda old: False,
    ) -> int:
        """Write a run with all that belongs to it in one transaction; returns its id.

        An older row of the same spec is replaced and keeps its id, unless ``keep`` says that it stays.
        Results, curves and artefacts are written for ``done`` runs only.

        Raises:
            RequestError: as ``transaction``.
        """
        done = result.state == "done"
        with self.transaction() as session:
            old = queries.stored(session.connection(), spec.hash)
            if old is not None and keep(old):
                return old.id
            if old is not None:
                session.execute(delete(Run).where(Run.id == old.id))
            run = Run(
                id=old.id if old else None,
                spec_hash=spec.hash,
                spec=spec.canonical(),
                cell=spec.cell,
                dataset=spec.dataset,
                scenario=spec.scenario,
                clients=spec.clients,
                method=spec.method,
                seed=spec.seed,
                rounds=spec.protocol.rounds,
                state=result.state,
                reason=result.reason,
                traceback=result.traceback,
                partition_hash=result.partition_hash,
                environment_id=environment_id(session, context.environment),
                started=context.started,
                seconds_total=result.seconds.get("total", 0.0),
                seconds_client=result.seconds.get("client", 0.0),
                seconds_server=result.seconds.get("server", 0.0),
                seconds_evaluation=result.seconds.get("evaluation", 0.0),
                peak_memory=result.peak_memory,
                bytes_up=result.bytes_up,
                bytes_down=result.bytes_down,
                device=result.device,
                code_version=context.code_version,
                source_hash=context.source_hash,
                method_numerics=context.method_numerics,
                engine_numerics=context.engine_numerics,
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
                        provenance=_json(context.provenance),
                    )
                )
            if done:
                self._results(session, run.id, result)
            return run.id

    @staticmethod
    def _results(session: Session, run_id: int, result: RunResult) -> None:
        rows = [{"run_id": run_id, **row} for row in accuracies(result)]
        if rows:
            session.execute(insert(ClientResult), rows)
        session.add_all(
            Curve(
                run_id=run_id,
                stage=stage,
                split=split,
                rows=counts.shape[0],
                clients=counts.shape[1],
                data=pack_counts(counts),
            )
            for (stage, split), counts in result.correct.items()
        )
        arrays = {**result.artefacts, "loss": result.loss} if len(result.loss) else result.artefacts
        session.add_all(
            Artefact(run_id=run_id, name=name, data=pack_array(array)) for name, array in arrays.items()
        )

    # Reading ------------------------------------------------------------------------------------

    def runs(self, **filters: Any) -> pd.DataFrame:
        """One row a run with every column of ``RUN_COLUMNS``, ordered by id.

        ``bundle`` is the name of the bundle that it was imported with, ``bundle_state`` says whether
        that is ``unverified``, ``verified`` or ``contradicted``; both are empty for own runs.

        A filter is ``column=value`` or ``column=[values]``, for example
        ``runs(dataset="cora", method=["local", "fedavg"], state="done")``.
        """
        return queries.runs(self._engine, filters)

    def states(self) -> dict[str, queries.Stored]:
        """What is stored of every run, by spec hash."""
        return queries.states(self._engine)

    def stored(self, spec_hash: str) -> queries.Stored | None:
        """What is stored of one spec; None where nothing is."""
        with self._engine.connect() as connection:
            return queries.stored(connection, spec_hash)

    def history(self) -> list[queries.Timing]:
        """What every ``done`` run took, for estimates."""
        return queries.history(self._engine)

    def client_results(
        self,
        run_ids: Iterable[int],
        stage: str | None = None,
        split: str | None = None,
        rule: str | None = None,
    ) -> pd.DataFrame:
        """Columns run_id, client, stage, split, rule, metric, value, samples; value in 0..1.

        Ordered by run, client, stage, split, rule. A filter that is None takes everything.
        """
        return queries.client_results(self._engine, run_ids, stage=stage, split=split, rule=rule)

    def curve(self, run_id: int, stage: str, split: str) -> NDArray[np.int32]:
        """Correct predictions ``[rows, clients]``; raises ``KeyError`` where there is none."""
        return queries.curve(self._engine, run_id, stage, split)

    def curves(self, run_ids: Iterable[int], split: str) -> dict[tuple[int, str], NDArray[np.int32]]:
        """Run and stage -> correct predictions ``[rows, clients]``, of those runs that have a curve."""
        return queries.curves(self._engine, run_ids, split)

    def artefact(self, run_id: int, name: str) -> NDArray[Any]:
        """An array kept with a run, for example ``loss``; raises ``KeyError`` where there is none."""
        return queries.artefact(self._engine, run_id, name)

    def artefact_names(self, run_id: int) -> list[str]:
        """Names of the arrays kept with a run."""
        return queries.artefact_names(self._engine, run_id)

    def environments(self) -> pd.DataFrame:
        """One row an environment: id, hash, description (JSON)."""
        return queries.table(self._engine, Environment)

    def partitions(self) -> pd.DataFrame:
        """One row a partition: hash, dataset, scenario, clients, provenance (JSON)."""
        return queries.table(self._engine, Partition)

    def bundles(self) -> pd.DataFrame:
        """One row an imported bundle: id, name, source, hash, imported, state, sample (JSON)."""
        return queries.table(self._engine, ImportedBundle)


def open_store(url: str, create: bool) -> Store:
    """Open the database at ``url``: ``sqlite:///PATH`` or ``postgresql+psycopg://USER@HOST/DATABASE``.

    With ``create`` it is opened for writing and made, by migration, where it is missing; without,
    it must exist and is only read.

    Raises:
        RequestError: another kind of URL, no such database (reading), one that is not a result
            database, one that cannot be written (writing), an older or a newer schema.
    """
    place = connect.database(url)
    place.check(create)
    engine = place.engine(write=create)
    try:
        with place.explained():
            migrate.prepare(engine, place, create)
    except BaseException:
        engine.dispose()
        raise
    return Store(engine, place.url)


def environment_id(session: Session, description: Mapping[str, Any]) -> int:
    """Id of the row of ``environments`` with this description; made where there is none."""
    text = _json(description)
    digest = hashlib.sha256(text.encode()).hexdigest()
    known = session.scalar(select(Environment.id).where(Environment.hash == digest))
    if known is not None:
        return known
    row = Environment(hash=digest, description=text)
    session.add(row)
    session.flush()
    return row.id


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value), sort_keys=True, separators=(",", ":"))
