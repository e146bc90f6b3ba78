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


def current(connection: Connection) -> str | None:
    """The database's revision; None for one without tables."""
    if not inspect(connection).get_table_names():
        return None
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one())


def _expect(revision: str | None, database: Database, *revisions: str) -> None:
    if revision not in revisions:
        problem = f"database {database.name} has the schema {revision}, expected {HEAD}"
        raise RequestError(f"{problem}: 'bench db upgrade' brings those from {REVISIONS[0]} on up to date")


def opened(database: Database, create: bool) -> Engine:
    """An engine to a database of this schema; with ``create`` it writes, and makes what is missing."""
    if not create:
        database.check()
    engine = database.engine(write=create)
    with database.explained("open"):
        with engine.connect() as connection:
            revision = current(connection)
        if revision is None and create:
            _upgrade(engine, database)
        else:
            _expect(revision, database, HEAD)
    return engine


def upgrade(database: Database) -> str:
    """Bring an existing database to the newest schema; returns the revision before."""
    database.check()
    engine = database.engine(write=True)
    with database.explained("upgrade"):
        with engine.connect() as connection:
            revision = current(connection)
        _expect(revision, database, *REVISIONS)
        _upgrade(engine, database)
    engine.dispose()
    return str(revision)


def _upgrade(engine: Engine, database: Database) -> None:
    from alembic import command  # slow to import, and an existing database does not need it
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    # The write lock is held from the start: of two processes that come at once, the second one
    # finds the schema made.
    with writing(engine).begin() as connection:
        config.attributes["connection"] = connection
        if current(connection) is None:
            Base.metadata.create_all(connection)
            command.stamp(config, "head")
        else:
            command.upgrade(config, "head")
    database.log_ahead(engine)
