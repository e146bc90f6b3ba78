"""Every question that is put to the database; arguments and answers are plain Python and pandas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, Engine, Select, func, select

from bench.errors import unknown
from bench.store.arrays import unpack_array, unpack_counts
from bench.store.models import Artefact, Base, ClientResult, Curve, ImportedBundle, Run

if TYPE_CHECKING:
    import pandas as pd

RUNS: dict[str, ColumnElement[Any]] = {
    **{column.name: column for column in Run.__table__.columns if column.name != "bundle_id"},
    "bundle": func.coalesce(ImportedBundle.name, ""),
    "bundle_state": func.coalesce(ImportedBundle.state, ""),
}
RUN_COLUMNS = tuple(RUNS)
"""Columns of ``Store.runs``. ``bundle`` names the bundle that a run was imported with, ``bundle_state``
says whether that is ``unverified``, ``verified`` or ``contradicted``; both are empty for own runs."""

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


class Timing(NamedTuple):
    """What a finished run was (its spec as JSON), how many seconds it took, where, and the bytes of
    its peak memory.
    """

    dataset: str
    scenario: str
    clients: int
    method: str
    spec: str
    seconds: float
    device: str = "cpu"
    peak_memory: int = 0


def _frame(engine: Engine, statement: Select[Any]) -> pd.DataFrame:
    import pandas as pd

    with engine.connect() as connection:
        result = connection.execute(statement)
        rows = list(map(tuple, result))  # plain ones: pandas takes far longer to look at SQLAlchemy's
        return pd.DataFrame(rows, columns=list(result.keys()))


def _plain(value: Any) -> Any:
    """A NumPy number as Python's own: the driver would store it as bytes."""
    return value.item() if isinstance(value, np.generic) else value


def table(engine: Engine, model: type[Base]) -> pd.DataFrame:
    """A whole table, ordered by its primary key."""
    return _frame(engine, select(model.__table__).order_by(*model.__table__.primary_key))


def runs(engine: Engine, filters: Mapping[str, Any]) -> pd.DataFrame:
    """``runs`` filtered by ``column=value`` or ``column=[values]``, ordered by id."""
    statement = (
        select(*(column.label(name) for name, column in RUNS.items()))
        .join_from(Run, ImportedBundle, isouter=True)
        .order_by(Run.id)
    )
    for name, wanted in filters.items():
        if name not in RUNS:
            raise unknown("column of runs", name, RUNS)
        several = isinstance(wanted, (list, tuple, set, frozenset))
        values = [_plain(value) for value in (wanted if several else [wanted])]
        statement = statement.where(RUNS[name].in_(values))
    return _frame(engine, statement)


STORED = (
    Run.id,
    Run.state,
    Run.reason,
    Run.method_numerics,
    Run.engine_numerics,
    Run.source_hash,
    Run.partition_hash,
    Run.started,
)


def states(engine: Engine) -> dict[str, Stored]:
    """Stored runs by spec hash."""
    with engine.connect() as connection:
        return {row[0]: Stored(*row[1:]) for row in connection.execute(select(Run.spec_hash, *STORED))}


def stored(connection: Connection, spec_hash: str) -> Stored | None:
    """What is stored of one spec."""
    row = connection.execute(select(*STORED).where(Run.spec_hash == spec_hash)).one_or_none()
    return None if row is None else Stored(*row)


def history(engine: Engine) -> list[Timing]:
    """What every ``done`` run cost."""
    statement = select(
        Run.dataset,
        Run.scenario,
        Run.clients,
        Run.method,
        Run.spec,
        Run.seconds_total,
        Run.device,
        Run.peak_memory,
    ).where(Run.state == "done")
    with engine.connect() as connection:
        return [Timing(*row) for row in connection.execute(statement)]


def client_results(
    engine: Engine, run_ids: Iterable[int], stage: str | None, split: str | None, rule: str | None
) -> pd.DataFrame:
    """``client_results`` of some runs, filtered, ordered by primary key."""
    import pandas as pd

    columns = ClientResult.__table__.columns
    wanted = sorted({int(run) for run in run_ids})
    parts = []
    for first in range(0, max(len(wanted), 1), IDS_PER_QUERY):
        statement = (
            select(ClientResult.__table__)
            .where(ClientResult.run_id.in_(wanted[first : first + IDS_PER_QUERY]))
            .order_by(*ClientResult.__table__.primary_key)
        )
        for name, value in (("stage", stage), ("split", split), ("rule", rule)):
            if value is not None:
                statement = statement.where(columns[name] == value)
        parts.append(_frame(engine, statement))
    return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)


def curve(engine: Engine, run_id: int, stage: str, split: str) -> NDArray[np.int32]:
    """Correct predictions ``[rows, clients]``; raises ``KeyError`` where there is none."""
    statement = select(Curve.data, Curve.rows, Curve.clients).where(
        Curve.run_id == int(run_id), Curve.stage == stage, Curve.split == split
    )
    with engine.connect() as connection:
        row = connection.execute(statement).one_or_none()
    if row is None:
        raise KeyError(f"run {run_id} has no curve of stage '{stage}' and split '{split}'")
    return unpack_counts(row.data, row.rows, row.clients)


def curves(engine: Engine, run_ids: Iterable[int], split: str) -> dict[tuple[int, str], NDArray[np.int32]]:
    """The curves of some runs: run and stage -> correct predictions ``[rows, clients]``."""
    wanted = sorted({int(run) for run in run_ids})
    found = {}
    with engine.connect() as connection:
        for first in range(0, len(wanted), IDS_PER_QUERY):
            statement = select(Curve.run_id, Curve.stage, Curve.data, Curve.rows, Curve.clients).where(
                Curve.run_id.in_(wanted[first : first + IDS_PER_QUERY]), Curve.split == split
            )
            for run, stage, data, rows, clients in connection.execute(statement):
                found[run, stage] = unpack_counts(data, rows, clients)
    return found


def artefact(engine: Engine, run_id: int, name: str) -> NDArray[Any]:
    """An array kept with a run; raises ``KeyError`` where there is none."""
    statement = select(Artefact.data).where(Artefact.run_id == int(run_id), Artefact.name == name)
    with engine.connect() as connection:
        data = connection.execute(statement).scalar_one_or_none()
    if data is None:
        raise KeyError(f"run {run_id} keeps no array '{name}'")
    return unpack_array(data)


def artefact_names(engine: Engine, run_id: int) -> list[str]:
    """Names of the arrays kept with a run."""
    statement = select(Artefact.name).where(Artefact.run_id == int(run_id)).order_by(Artefact.name)
    with engine.connect() as connection:
        return list(connection.execute(statement).scalars())
