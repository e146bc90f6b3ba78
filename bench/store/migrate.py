"""The schema's version: made new, checked when a database is opened, and brought up to date."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

from bench.errors import RequestError
from bench.store import connect
from bench.store.connect import Database
from bench.store.models import Base

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS = Path(__file__).parent / "migrations"

REVISIONS = sorted(path.name[:4] for path in (MIGRATIONS / "versions").glob("0*.py"))
"""Every revision that this version knows, oldest first; no released version made one before the first."""

HEAD = REVISIONS[-1]
"""What ``bench.store.models`` describes."""


def _config() -> Config:
    from alembic.config import Config  # slow to import, and an existing database does not need it

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config


def current(connection: Connection, place: Database) -> str | None:
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
            f"database {place.name} holds other tables ({', '.join(tables[:3])}): name another one with --db"
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
    if revision < REVISIONS[0]:
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
        revision = current(connection, place)
    if revision is None and create:
        _upgrade(engine, place)
        revision = HEAD
    _check(revision, place)


def _upgrade(engine: Engine, place: Database) -> None:
    from alembic import command

    place.prepare(engine)
    config = _config()
    # The write lock is held from the start: of two processes that come at once, the second one
    # finds the schema made.
    with connect.writing(engine).begin() as connection:
        config.attributes["connection"] = connection
        if current(connection, place) is None:
            Base.metadata.create_all(connection)
            command.stamp(config, "head")
        else:
            command.upgrade(config, "head")


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
                before = current(connection, place)
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
        _check(current(connection, place), place)
        damage = place.damage(connection)
    if damage:
        raise RequestError(f"database {place.name} is damaged: {damage}")
    return HEAD
