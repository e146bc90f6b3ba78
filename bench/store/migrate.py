"""The schema's version: made new, checked when a database is opened, and brought up to date."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from bench.errors import RequestError
from bench.store.connect import Database, writing
from bench.store.models import Base

MIGRATIONS = Path(__file__).parent / "migrations"

REVISIONS = sorted(path.name[:4] for path in (MIGRATIONS / "versions").glob("0*.py"))
"""Every revision that is brought up to date, oldest first: the first one is that of version 0.2.0."""

HEAD = REVISIONS[-1]
"""What ``bench.store.models`` describes."""


def current(connection: Connection, database: Database) -> str | None:
    """The database's revision; None for one without tables. Others' tables are a ``RequestError``."""
    tables = inspect(connection).get_table_names()
    if not tables:
        return None
    if not {"alembic_version", "runs"} <= {*tables}:
        names = ", ".join(tables[:3])
        raise RequestError(f"database {database.name} holds other tables ({names}): name another with --db")
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one())


def _expect(revision: str | None, database: Database, *revisions: str | None) -> None:
    if revision not in revisions:
        raise RequestError(
            f"database {database.name} has the schema {revision}, expected {HEAD}: 'bench db upgrade' brings "
            f"schemas from {REVISIONS[0]} on up to date, those of later versions need these"
        )


def opened(database: Database, create: bool) -> Engine:
    """An engine to a database of this schema; with ``create`` it writes, and makes what is missing."""
    if not create:
        database.check()
    engine = database.engine(write=create)
    try:
        with database.explained("open"):
            with engine.connect() as connection:
                revision = current(connection, database)
            _expect(revision, database, HEAD, *([None] if create else []))
            if revision is None:
                _upgrade(engine, database)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _upgrade(engine: Engine, database: Database) -> None:
    from alembic import command  # slow to import, and an existing database does not need it
    from alembic.config import Config

    database.log_ahead(engine)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    # The write lock is held from the start: of two processes that come at once, the second one
    # finds the schema made.
    with writing(engine).begin() as connection:
        config.attributes["connection"] = connection
        if current(connection, database) is None:
            Base.metadata.create_all(connection)
            command.stamp(config, "head")
        else:
            command.upgrade(config, "head")


def upgrade(database: Database) -> str:
    """Bring an existing database to the newest schema; returns the revision before."""
    database.check()
    engine = database.engine(write=True)
    try:
        with database.explained("upgrade"):
            with engine.connect() as connection:
                before = current(connection, database)
            _expect(before, database, *REVISIONS)
            _upgrade(engine, database)
    finally:
        engine.dispose()
    return str(before)


def check(database: Database) -> None:
    """Raises ``RequestError`` where a database is missing, damaged, or of another schema."""
    database.check()
    with database.reading() as connection:
        _expect(current(connection, database), database, HEAD)
        if database.path is None:
            return
        (damage,) = connection.execute(text("PRAGMA integrity_check")).first() or ("ok",)
        orphans = connection.execute(text("PRAGMA foreign_key_check")).all()
    if damage != "ok" or orphans:
        problem = damage if damage != "ok" else f"{len(orphans)} rows without their run"
        raise RequestError(f"database {database.name} is damaged: {problem}")
