"""Connect to a result database, a file or a server, and manage the version of its schema."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError

from bench.errors import BusyError, RequestError
from bench.store.models import Base

WRITES = "bench_writes"
"""Execution option: the transaction will write, and first waits for other writers."""

BUSY_SECONDS = 30
"""Seconds that a transaction waits for a lock before it ends with a ``BusyError``."""

AWAY = (None, "55P03")
"""SQLSTATEs of errors that may pass: no server answers, or a statement waited too long for a lock."""

CONNECT_SECONDS = 10
LOCK = 0x62656E6368
"""Key of the advisory lock that lets one writer in at a time, as SQLite does."""

DRIVER = "postgresql+psycopg"

MIGRATIONS = Path(__file__).parent / "migrations"

REVISIONS = sorted(path.name[:4] for path in (MIGRATIONS / "versions").glob("0*.py"))
"""The revisions that can be brought up to date, oldest first; the first is that of version 0.2.0."""

HEAD = REVISIONS[-1]
"""The revision that ``bench.store.models`` describes."""


class Database:
    """The address of a result database: an SQLite file (``path``), or a database on a PostgreSQL server.

    ``name`` stands in messages and holds no password. Another kind of URL is a ``RequestError``.
    """

    def __init__(self, url: str) -> None:
        self.path: Path | None = None
        scheme, _, path = url.partition(":///")
        if scheme == "sqlite":
            self.path = Path(path).expanduser()
            self.name = str(self.path)
            return
        try:
            self._server = make_url(url)
            is_ours = self._server.drivername == DRIVER
        except (ArgumentError, ValueError):  # ValueError: the port is not a number
            is_ours = False
        if not is_ours or "@" in (self._server.host or ""):  # this @ is part of a password: do not print it
            expected = f"sqlite:///PATH or {DRIVER}://USER@HOST/DATABASE, with %40 for an @ in a password"
            raise RequestError(f"--db expects {expected}")
        if find_spec("psycopg") is None:
            raise RequestError("PostgreSQL needs the extra 'postgres': pip install 'pfl-bench[postgres]'")
        self.name = self._server.render_as_string(hide_password=True)

    @contextmanager
    def explained(self, action: str) -> Iterator[None]:
        """Turn a database error into a ``RequestError``, or into a ``BusyError`` if the error may pass."""
        try:
            yield
        except (DBAPIError, sqlite3.Error) as error:
            cause: Any = error.orig if isinstance(error, DBAPIError) else error
            line = f"cannot {action} the database {self.name}: {str(cause).strip().partition(chr(10))[0]}"
            if self.path:  # the low byte of SQLite's code is the kind of an error
                is_busy = getattr(cause, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
            else:
                is_busy = cause.sqlstate in AWAY or getattr(error, "connection_invalidated", False)
            raise (BusyError if is_busy else RequestError)(line) from error

    def empty(self) -> bool:
        """Return whether there is nothing to read yet; another process may be about to make the tables."""
        if self.path is not None and not (self.path.exists() and self.path.stat().st_size):
            return True
        engine = self.engine(write=False)
        with self.explained("read"):
            tables = inspect(engine).get_table_names()
        engine.dispose()
        return not tables

    def check(self) -> None:
        """Raise ``RequestError`` if there is nothing to read."""
        if self.empty():
            expected = "run 'bench sweep' first or name another one with --db"
            raise RequestError(f"no database at {self.name}, or an empty one: {expected}")

    def engine(self, write: bool) -> Engine:
        """Return an engine, read-only unless ``write``. A transaction that writes first waits for others."""
        if self.path is None:
            options = f"-c lock_timeout={1000 * BUSY_SECONDS:.0f}"  # milliseconds
            options += "" if write else " -c default_transaction_read_only=on"
            arguments = {"connect_timeout": CONNECT_SECONDS, "options": options}
            engine = create_engine(self._server, connect_args=arguments, pool_pre_ping=True, pool_size=2)
        else:
            query = {"mode": "rwc" if write else "rw", "uri": "true"}
            if write:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            # A file or folder without any write bit is meant to stay as it is, also where root could write.
            elif not all(
                os.access(place, os.W_OK) and place.stat().st_mode & 0o222
                for place in (self.path, self.path.parent)
            ):
                query["mode"] = "ro"
                if not self.path.with_name(f"{self.path.name}-wal").exists():
                    query["immutable"] = "1"
            url = URL.create("sqlite", database=f"file:{quote(str(self.path.absolute()))}", query=query)
            engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS})

            @event.listens_for(engine, "connect")
            def connected(connection: sqlite3.Connection, _record: Any) -> None:
                connection.isolation_level = None  # the engine begins transactions, not the driver
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute(f"PRAGMA query_only = {not write:d}")

        @event.listens_for(engine, "begin")
        def begun(connection: Connection) -> None:
            writes = connection.get_execution_options().get(WRITES)
            if self.path is not None:
                connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
            elif writes:
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")

        return engine

    def log_ahead(self, engine: Engine) -> None:
        """Let SQLite log ahead, so that readers do not block the writer."""
        # SQLite refuses at once while another process writes. That process made the tables, and sets this.
        if self.path is not None:
            with closing(engine.raw_connection()) as raw, suppress(sqlite3.OperationalError):
                raw.cursor().execute("PRAGMA journal_mode = WAL")


def writing(engine: Engine) -> Engine:
    """Return the engine with transactions that hold the write lock from their start."""
    return engine.execution_options(**{WRITES: True})


# The schema's version: made new, checked when a database is opened, and brought up to date -----------


def current(connection: Connection) -> str | None:
    """Return the database's revision; None if it has no tables."""
    if not inspect(connection).get_table_names():
        return None
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one())


def _expect(revision: str | None, database: Database, *revisions: str) -> None:
    if revision not in revisions:
        problem = f"database {database.name} has the schema {revision}, expected {HEAD}"
        raise RequestError(f"{problem}: 'bench db upgrade' brings those from {REVISIONS[0]} on up to date")


def opened(database: Database, create: bool) -> Engine:
    """Return an engine to a database of this schema; with ``create`` it writes, and makes what is missing."""
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
    """Bring an existing database to the newest schema; return its revision before."""
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
    from alembic import command  # slow to import, and not needed for an up-to-date database
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    # The write lock is held from the start: if two processes come at once, the second one finds the
    # schema made.
    with writing(engine).begin() as connection:
        config.attributes["connection"] = connection
        if current(connection) is None:
            Base.metadata.create_all(connection)
            command.stamp(config, "head")
        else:
            command.upgrade(config, "head")
    database.log_ahead(engine)
