"""A PostgreSQL database, which several sweeps on several hosts can share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from sqlalchemy import Connection, Engine, ExceptionContext, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from bench.errors import RequestError
from bench.store.connect import BUSY_SECONDS, WRITES, Database, explain, without_password

CONNECT_SECONDS = 10
LOCK = 0x62656E6368
"""Key of the advisory lock that writers hold one after the other, as SQLite's have to."""

LOCKED = "55P03"
"""SQLSTATE of a statement that has waited too long for a lock."""

DRIVER = "postgresql+psycopg"


class Postgres(Database):
    """A database on a PostgreSQL server, by its URL."""

    def __init__(self, url: str) -> None:
        self.url = self.name = without_password(url)
        try:
            self._url = make_url(url)
        except (ArgumentError, ValueError):  # the latter is of a port that is no number
            raise RequestError(f"--db expects {DRIVER}://USER@HOST/DATABASE, got '{self.name}'") from None
        if self._url.drivername != DRIVER:
            raise RequestError(f"--db expects {DRIVER}://USER@HOST/DATABASE, got '{self.name}'")
        if "@" in (self._url.host or ""):  # the rest of a password, which the driver would print
            raise RequestError(f"--db '{self.name}': write @ in a password as %40")
        if find_spec("psycopg") is None:
            raise RequestError("PostgreSQL needs the extra 'postgres': pip install 'pfl-bench[postgres]'")

    def empty(self) -> bool:
        """Whether it has no tables."""
        engine = self.engine(write=False)
        try:
            with self.explained(), engine.connect() as connection:
                return not inspect(connection).get_table_names()
        finally:
            engine.dispose()

    def size(self) -> int:
        """Bytes of the database on the server."""
        engine = self.engine(write=False)
        try:
            with self.explained(), engine.connect() as connection:
                return int(
                    connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one()
                )
        finally:
            engine.dispose()

    def check(self, write: bool) -> None:
        """Refuse a server that cannot be reached, or a database that has nothing to read."""
        if self.empty() and not write:
            raise RequestError(
                f"database {self.name} is empty: run 'bench sweep' first or name another one with --db"
            )

    def engine(self, write: bool) -> Engine:
        """An engine; every transaction that writes waits for the others at its start, though not for ever."""
        options = f"-c lock_timeout={1000 * BUSY_SECONDS:.0f}"  # milliseconds
        if not write:
            options += " -c default_transaction_read_only=on"
        made = create_engine(
            self._url,
            connect_args={"connect_timeout": CONNECT_SECONDS, "options": options},
            pool_pre_ping=True,
            pool_size=2,
        )
        explain(made, self.name, _busy)

        @event.listens_for(made, "begin")
        def begun(connection: Connection) -> None:
            if connection.get_execution_options().get(WRITES):
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")

        return made

    def prepare(self, engine: Engine) -> None:
        """Nothing: the server has its settings."""

    def damage(self, connection: Connection) -> str:
        """Nothing is known: the server keeps its foreign keys, and its administrator checks its files."""
        return ""

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn the driver's errors while opening the database into one line."""
        try:
            yield
        except SQLAlchemyError as error:
            cause = str(getattr(error, "orig", None) or error).strip().splitlines()
            raise RequestError(
                f"database {self.name}: cannot open it: {cause[0] if cause else error}"
            ) from None

    def backup(self, target: Path) -> None:
        """Refused: the server's own program does it."""
        raise RequestError(f"database {self.name}: use pg_dump, or 'bench export' for results alone")


def _busy(context: ExceptionContext) -> bool:
    """Whether there is no connection, or no longer, or somebody else holds the lock."""
    locked = getattr(context.original_exception, "sqlstate", None) == LOCKED
    return locked or context.connection is None or context.is_disconnect
