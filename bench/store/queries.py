"""Every question that is put to a result database; arguments and answers are plain Python and pandas."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, Engine, Select, exists, func, select, text
from sqlalchemy.orm import Session

from bench.engine.states import COMPLETE, SETTLED
from bench.errors import RequestError, unknown
from bench.spec import FederationKey, RunSpec, run_name, sha256
from bench.store.models import (
    Artefact,
    Base,
    Claim,
    ClientResult,
    Confusion,
    Curve,
    Environment,
    ImportedBundle,
    Partition,
    Run,
    RunningSweep,
    unpack_array,
    unpack_counts,
)

if TYPE_CHECKING:
    import pandas as pd  # slow to import, and a database can be asked without

RUNS: dict[str, ColumnElement[Any]] = {
    **{column.name: column for column in Run.__table__.columns if column.name != "bundle_id"},
    "bundle": func.coalesce(ImportedBundle.name, ""),
    "bundle_state": func.coalesce(ImportedBundle.state, ""),
    "bundle_checked": ImportedBundle.__table__.columns["checked"],
    "bundle_sampled": func.coalesce(ImportedBundle.sample.contains(Run.spec_hash), False),
    "bundle_close": func.coalesce(ImportedBundle.sample.contains(Run.spec_hash + '": "close'), False),
}
RUN_COLUMNS = tuple(RUNS)
"""Columns of ``Store.runs``. ``bundle`` names the bundle that a run was imported with, ``bundle_state``
says whether that is ``unverified``, ``verified`` or ``contradicted``; both are empty for own runs.
``bundle_checked`` is when runs of it were last made again (UTC without a zone, missing if never),
``bundle_sampled`` whether this very run was, and ``bundle_close`` whether that came close, but not to equal
numbers."""

CLOCKS = {
    "sqlite": "SELECT (julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "SELECT extract(epoch FROM clock_timestamp())",
}

IDS_PER_QUERY = 10_000  # below SQLite's limit of variables in one statement


class Stored(NamedTuple):
    """What a sweep needs to know of a stored run."""

    id: int
    state: str
    reason: str
    method_numerics: int
    engine_numerics: int
    source_hash: str
    partition_hash: str = ""
    started: datetime | None = None


Kind = tuple[str, str, int, str]
"""Data set, scenario, clients and method."""


class Timing(NamedTuple):
    """What a finished run was (its spec as JSON), how many seconds it took, and where."""

    dataset: str
    scenario: str
    clients: int
    method: str
    spec: str
    seconds: float
    device: str = "cpu"

    @property
    def kind(self) -> Kind:
        """What the run has in common with those that take alike."""
        return self[:4]


TIMED = ("dataset", "scenario", "clients", "method", "spec", "seconds_total", "device")
"""The columns of a run that a ``Timing`` is made of, in its order."""

STORED = tuple(Run.__table__.columns[name] for name in Stored._fields)


def stored(connection: Connection, spec_hash: str) -> Stored | None:
    """What is stored of one spec; None where nothing is."""
    row = connection.execute(select(*STORED).where(Run.spec_hash == spec_hash)).one_or_none()
    return None if row is None else Stored(*row)


class Readings(TypedDict, total=False):
    """Which of the results of a run's clients are asked for; what is left out or None takes everything."""

    stage: str | None
    split: str | None
    rule: str | None
    metric: str | None


class Queries:
    """The questions to the database at ``url``."""

    def __init__(self, engine: Engine, url: str) -> None:
        self._engine = engine
        self.url = url

    def _frame(self, statement: Select[Any]) -> pd.DataFrame:
        import pandas as pd

        with self._engine.connect() as connection:
            result = connection.execute(statement)
            rows = list(map(tuple, result))  # plain ones: pandas takes far longer to look at SQLAlchemy's
            return pd.DataFrame(rows, columns=list(result.keys()))

    def _numbers(self, statement: Select[Any]) -> pd.DataFrame:
        """As ``_frame``, of numbers and texts that are as the driver gives them, in half of the time."""
        import pandas as pd
        import pyarrow as pa

        with self._engine.connect() as connection:
            result = connection.execute(statement)
            names = list(result.keys())
            assert result.cursor is not None
            rows = result.cursor.fetchall()
            result.close()
        if not rows:
            return pd.DataFrame([], columns=names)
        frame: pd.DataFrame = pa.table(
            [pa.array(column) for column in zip(*rows, strict=True)], names
        ).to_pandas()
        return frame

    def _table(self, model: type[Base]) -> pd.DataFrame:
        """A whole table, ordered by its primary key."""
        return self._frame(select(model.__table__).order_by(*model.__table__.primary_key))

    def runs(self, **filters: Any) -> pd.DataFrame:
        """One row a run with every column of ``RUN_COLUMNS``, ordered by id.

        A filter is ``column=value`` or ``column=[values]``, for example
        ``runs(dataset="cora", method=["local", "fedavg"], state="done")``.

        Raises:
            RequestError: a spec was changed since it was stored.
        """
        statement = (
            select(*(column.label(name) for name, column in RUNS.items()))
            .join_from(Run, ImportedBundle, isouter=True)
            .order_by(Run.id)
        )
        for name, values in wanted_values(filters, RUNS).items():
            statement = statement.where(RUNS[name].in_(values))
        runs = self._frame(statement)
        self._check_specs(zip(runs["id"], runs["spec"], runs["spec_hash"], strict=True))
        # Where every value is missing, the driver's type would be that of an empty column.
        return runs.astype({"bundle_checked": "datetime64[ns]"})

    def _check_specs(self, rows: Iterable[Sequence[Any]]) -> None:
        """Refuse runs, given by id, spec and spec hash, whose spec was changed since it was stored."""
        for number, spec, digest in rows:
            if sha256(spec) != digest:
                raise RequestError(
                    f"run {number} of {self.url}: its spec is not the one that it was stored with; "
                    "delete the run, or name another --db"
                )

    def states(self) -> dict[str, Stored]:
        """What is stored of every run, by spec hash."""
        with self._engine.connect() as connection:
            rows = connection.execute(select(Run.spec_hash, *STORED))
            return {row[0]: Stored(*row[1:]) for row in rows}

    def refuse_other_clients(self, hashes: Mapping[FederationKey, str], redone: Collection[str]) -> None:
        """Keep one's own settled runs on other clients out of one database: a report averages what it holds
        of a cell, and compares the methods of a federation. Those of spec hashes in ``redone`` are replaced.

        Raises:
            RequestError: there is such a run of a federation in ``hashes``.
        """
        statement = select(Run.spec, Run.partition_hash).where(
            Run.state.in_(SETTLED),
            Run.partition_hash.not_in({"", *hashes.values()}),
            Run.spec_hash.not_in(redone),
            Run.bundle_id.is_(None),
        )
        with self._engine.connect() as connection:
            rows = connection.execute(statement.order_by(Run.id)).all()
        for canonical, stored_hash in rows:
            spec = RunSpec.model_validate_json(canonical)
            if spec.federation_key in hashes:
                name = run_name(spec.dataset, spec.scenario, spec.clients, spec.method, spec.seed)
                raise RequestError(
                    f"{name} is stored, made on other clients ({stored_hash[:8]}) than there are now "
                    f"({hashes[spec.federation_key][:8]}); use another --db"
                )

    def stored(self, spec_hash: str) -> Stored | None:
        """What is stored of one spec; None where nothing is."""
        with self._engine.connect() as connection:
            return stored(connection, spec_hash)

    def history(self) -> list[Timing]:
        """What every run that was taken to its end took, for estimates; raises as ``runs``."""
        columns = [Run.__table__.columns[name] for name in TIMED]
        statement = select(Run.id, Run.spec_hash, *columns).where(Run.state.in_(COMPLETE))
        with self._engine.connect() as connection:
            rows: Sequence[Any] = connection.execute(statement).all()
        self._check_specs((row.id, row.spec, row.spec_hash) for row in rows)
        return [Timing(*row[2:]) for row in rows]

    def client_results(self, run_ids: Iterable[int], **only: Unpack[Readings]) -> pd.DataFrame:
        """Columns run_id, client, stage, split, rule, metric, value, samples; value in 0..1.

        Ordered by run, client, stage, split, rule. A filter that is None takes everything.
        """
        import pandas as pd

        columns = ClientResult.__table__.columns
        constants = {name: str(value) for name, value in only.items() if value is not None}
        selection = [column for column in columns if column.name not in constants]
        statement = select(*selection).order_by(*ClientResult.__table__.primary_key)
        for name, value in constants.items():
            statement = statement.where(columns[name] == value)
        parts = [self._numbers(statement.where(ClientResult.run_id.in_(ids))) for ids in _portions(run_ids)]
        return pd.concat(parts, ignore_index=True).assign(**constants)[[column.name for column in columns]]

    def curves(self, run_ids: Iterable[int], split: str) -> dict[tuple[int, str], NDArray[np.int32]]:
        """Run and stage -> correct predictions ``[rows, clients]``, of those runs that have a curve."""
        columns = (Curve.run_id, Curve.stage, Curve.data, Curve.rows, Curve.clients)
        with self._engine.connect() as connection:
            return {
                (run, stage): unpack_counts(data, rows, clients)
                for ids in _portions(run_ids)
                for run, stage, data, rows, clients in connection.execute(
                    select(*columns).where(Curve.run_id.in_(ids), Curve.split == split)
                )
            }

    def confusions(self, run_ids: Iterable[int]) -> dict[tuple[int, str, str], NDArray[np.int32]]:
        """Run, stage and rule -> test items by true and predicted class ``[clients, classes, classes]`` at
        the selected rounds, of those runs that keep them.
        """
        columns = Confusion.__table__.columns
        with self._engine.connect() as connection:
            return {
                (run, stage, rule): unpack_counts(data, clients, classes, classes)
                for ids in _portions(run_ids)
                for run, stage, rule, clients, classes, data in connection.execute(
                    select(*columns).where(Confusion.run_id.in_(ids))
                )
            }

    def artefact(self, run_id: int, name: str) -> NDArray[Any]:
        """An array kept with a run, for example ``loss``; raises ``KeyError`` where there is none."""
        statement = select(Artefact.data).where(Artefact.run_id == int(run_id), Artefact.name == name)
        with self._engine.connect() as connection:
            data = connection.execute(statement).scalar_one_or_none()
        if data is None:
            raise KeyError(f"run {run_id} keeps no array '{name}'")
        return unpack_array(data)

    def artefact_names(self, run_id: int) -> list[str]:
        """Names of the arrays kept with a run."""
        statement = select(Artefact.name).where(Artefact.run_id == int(run_id)).order_by(Artefact.name)
        with self._engine.connect() as connection:
            return list(connection.execute(statement).scalars())

    def sweeps(self) -> list[dict[str, Any]]:
        """Sweeps whose claims last, the oldest first: owner, started, jobs, total, counts, left, ends and
        unknown_times of each, and ``running``, its claims on runs that are not stored yet.
        """
        with Session(self._engine) as session:
            moment = clock(session)
            is_stored = exists().where(Run.spec_hash == Claim.spec_hash, Run.started >= Claim.since)
            claims = session.scalars(select(Claim).where(~is_stored).order_by(Claim.since, Claim.run)).all()
            rows = session.scalars(
                select(RunningSweep).where(RunningSweep.until > moment).order_by(RunningSweep.started)
            )
            return [
                {
                    "owner": row.owner,
                    "started": row.started.isoformat(timespec="seconds"),
                    "jobs": row.jobs,
                    "total": row.total,
                    "counts": json.loads(row.counts),
                    "left": row.left,
                    "ends": row.ends and row.ends.isoformat(timespec="seconds"),
                    "unknown_times": row.unknown_times,
                    "running": [
                        {
                            "run": claim.run,
                            "spec_hash": claim.spec_hash,
                            "device": claim.device,
                            "since": claim.since.isoformat(timespec="seconds"),
                        }
                        for claim in claims
                        if claim.owner == row.owner and claim.since is not None
                    ],
                }
                for row in rows
            ]

    def environments(self) -> pd.DataFrame:
        """One row an environment: id, hash, description (JSON)."""
        return self._table(Environment)

    def partitions(self) -> pd.DataFrame:
        """One row a partition: hash, dataset, scenario, clients, provenance (JSON)."""
        return self._table(Partition)

    def bundles(self) -> pd.DataFrame:
        """One row an imported bundle: id, name, source, hash, imported, state, sample (JSON), checked."""
        return self._table(ImportedBundle)


def clock(session: Session) -> float:
    """Seconds by the database's own clock: those of several hosts differ."""
    return float(session.execute(text(CLOCKS[session.get_bind().dialect.name])).scalar_one())


def _portions(run_ids: Iterable[int]) -> list[list[int]]:
    """The ids in order, as many at a time as a statement may name; one empty portion for none."""
    ids = sorted({int(run) for run in run_ids})
    return [ids[start : start + IDS_PER_QUERY] for start in range(0, max(len(ids), 1), IDS_PER_QUERY)]


# Filters ------------------------------------------------------------------------------------------


def wanted_values(filters: Mapping[str, Any], columns: Collection[str]) -> dict[str, list[Any]]:
    """Column -> values that are let through, from ``column=value`` or ``column=[values]``.

    NumPy's numbers become Python's own: a database driver would store them as bytes.

    Raises:
        RequestError: there is no such column.
    """
    values = {}
    for name, choice in filters.items():
        if name not in columns:
            raise unknown("column of runs", name, columns)
        is_collection = isinstance(choice, (list, tuple, set, frozenset))
        values[name] = [
            value.item() if isinstance(value, np.generic) else value
            for value in (choice if is_collection else [choice])
        ]
    return values


def filter_runs(runs: pd.DataFrame, filters: Mapping[str, Any]) -> pd.DataFrame:
    """Rows that match every filter; raises as ``wanted_values``."""
    keep = np.ones(len(runs), bool)
    for name, values in wanted_values(filters, runs.columns).items():
        keep &= runs[name].isin(values).to_numpy()
    return runs[keep].reset_index(drop=True)


def filter_known_runs(runs: pd.DataFrame, filters: Mapping[str, Any]) -> pd.DataFrame:
    """As ``filter_runs``, for filters that somebody typed: each value has to be that of some run.

    A filter that is None or empty takes everything.

    Raises:
        RequestError: a value that no run has, or no run left.
    """
    choices = {name: values for name, values in filters.items() if values}
    for name, values in choices.items():
        stored_values = set(runs[name])
        for value in values:
            if value not in stored_values:
                raise unknown(f"{name} among the stored runs:", str(value), map(str, stored_values))
    chosen_runs = filter_runs(runs, choices)
    if chosen_runs.empty:
        raise RequestError("no stored run is all of what is asked for: leave one of the filters away")
    return chosen_runs
