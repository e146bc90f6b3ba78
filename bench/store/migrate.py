"""The schema's version: made new, checked when a database is opened, and brought up to date."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.schema import CreateColumn

from bench.errors import RequestError
from bench.spec import cell_of
from bench.store import connect
from bench.store.connect import Database
from bench.store.models import Base

AT_A_TIME = 1000


VERSION_TABLE = """CREATE TABLE IF NOT EXISTS alembic_version (
  version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"""
"""Where a database keeps its revision; Alembic's name for it, which made the first ones."""


def _add_column(connection: Connection, table: str, column: str) -> None:
    definition = CreateColumn(Base.metadata.tables[table].columns[column]).compile(connection)
    connection.execute(text(f"ALTER TABLE {table} ADD COLUMN {definition}"))


def _add_cells(connection: Connection) -> None:
    """Add ``runs.cell``, which runs are samples of one cell, and fill it from the specs."""
    _add_column(connection, "runs", "cell")
    runs = sa.table("runs", sa.column("id", sa.Integer), sa.column("spec"), sa.column("cell", sa.String))
    fill = runs.update().where(runs.c.id == sa.bindparam("run")).values(cell=sa.bindparam("digest"))
    some_runs = sa.select(runs.c.id, runs.c.spec).order_by(runs.c.id).limit(AT_A_TIME)
    last = -1
    while rows := connection.execute(some_runs.where(runs.c.id > last)).all():
        connection.execute(fill, [{"run": run, "digest": cell_of(spec)} for run, spec in rows])
        last = rows[-1].id
    connection.execute(text("CREATE INDEX ix_runs_cell ON runs (cell)"))


def _add_days_of_checks(connection: Connection) -> None:
    """Add ``bundles.checked``; of what was verified before, the day is not known."""
    _add_column(connection, "bundles", "checked")


def _add_confusions(connection: Connection) -> None:
    """Add the table ``confusions``; runs of before have no rows in it."""
    Base.metadata.tables["confusions"].create(connection)


FIRST = "0003"
"""The oldest revision that is brought up to date; no released version made an older one."""

STEPS = {"0004": _add_cells, "0005": _add_days_of_checks, "0006": _add_confusions}
"""Revision -> what brings a database of the one before it there."""

REVISIONS = (FIRST, *STEPS)
HEAD = REVISIONS[-1]
"""The newest revision: what ``bench.store.models`` describes."""


def current(connection: Connection) -> str | None:
    """The database's revision; None for one without tables.

    Raises:
        RequestError: it holds tables, but not the suite's.
    """
    tables = inspect(connection).get_table_names()
    if "alembic_version" in tables and (len(tables) == 1 or "runs" in tables):
        revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        return None if revision is None else str(revision)
    if tables:
        raise RequestError(
            f"the database holds other tables ({', '.join(tables[:3])}): name another one with --db"
        )
    return None


def _check(revision: str | None, place: Database) -> None:
    if revision == HEAD:
        return
    name = place.name
    if revision is None:
        raise RequestError(f"database {name} is empty: run 'bench sweep' first or name another one with --db")
    if revision in REVISIONS:
        raise RequestError(
            f"database {name} has the older schema {revision}, expected {HEAD}: run 'bench db upgrade'"
        )
    if revision < FIRST:
        raise RequestError(
            f"database {name} has the schema {revision}, older than any that is brought up to date: 'bench "
            "export' it with the version that made it, and 'bench import' the bundle here"
        )
    raise RequestError(
        f"database {name} has schema {revision}, newer than {HEAD} of this bench: upgrade bench"
    )


def prepare(engine: Engine, place: Database, create: bool) -> None:
    """Check the schema; with ``create`` make it in an empty database.

    Raises:
        RequestError: empty (reading), other tables, an older or a newer schema.
    """
    with engine.connect() as connection:
        revision = current(connection)
    if revision is None and create:
        _upgrade(engine, place)
        revision = HEAD
    _check(revision, place)


def _upgrade(engine: Engine, place: Database) -> None:
    place.prepare(engine)
    # The write lock is held from the start: of two processes that come at once, the second one
    # finds the schema made.
    with connect.writing(engine).begin() as connection:
        revision = current(connection)
        if revision is None:
            Base.metadata.create_all(connection)
            connection.execute(text(VERSION_TABLE))
            connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})
            return
        for step in REVISIONS[REVISIONS.index(revision) + 1 :]:
            STEPS[step](connection)
        connection.execute(text("UPDATE alembic_version SET version_num = :head"), {"head": HEAD})


def revision_of(url: str) -> str | None:
    """The revision of an existing database, whichever it is; None where it is empty.

    Raises:
        RequestError: no such database, or not a result database.
    """
    place = connect.database(url)
    place.check(write=False)
    with place.reading() as connection:
        return current(connection)


def upgrade(url: str) -> tuple[str | None, str]:
    """Bring an existing database to the newest schema; returns the revision before and after.

    Raises:
        RequestError: no such database, read-only, not a result database, or a newer schema.
    """
    place = connect.database(url)
    place.check(write=False)
    place.check(write=True)
    engine = place.engine(write=True)
    try:
        with place.explained():
            with engine.connect() as connection:
                before = current(connection)
            if before is not None and before not in REVISIONS:
                _check(before, place)
            _upgrade(engine, place)
    finally:
        engine.dispose()
    return before, HEAD


def check(url: str) -> str:
    """The revision of an existing database that is whole and of this version's schema.

    Raises:
        RequestError: it is missing, damaged, or of another schema.
    """
    place = connect.database(url)
    place.check(write=False)
    with place.reading() as connection:
        _check(current(connection), place)
        damage = place.damage(connection)
    if damage:
        raise RequestError(f"database {place.name} is damaged: {damage}")
    return HEAD
