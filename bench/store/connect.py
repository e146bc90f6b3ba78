"""Where results lie, a file or a server, and how they are reached."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    ExceptionContext,
    create_engine,
    event,
    inspect,
    make_url,
    text,
)
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DataError,
    IntegrityError,
    NotSupportedError,
    ProgrammingError,
    SQLAlchemyError,
)
from sqlalchemy.pool import NullPool

from bench import paths
from bench.errors import BusyError, RequestError
from bench.replacement import replacing_file

WRITES = "bench_writes"
"""Execution option: the transaction will write, and waits for other writers when it begins."""

BUSY_SECONDS = 30
"""How long a transaction waits for a lock before it ends with a ``BusyError``."""

PATIENCE = 300.0
"""Seconds for which a sweep goes on asking a database that is busy."""

OUR_OWN = (DataError, IntegrityError, NotSupportedError, ProgrammingError)
"""Errors of what was asked, not of the database; a damaged file has no class of its own."""

NO_PRIVILEGE = "42501"
"""SQLSTATE of what the user of a server may not do."""

MAGIC = b"SQLite format 3\0"

CONNECT_SECONDS = 10
LOCK = 0x62656E6368
"""Key of the advisory lock that writers hold one after the other, as SQLite's have to."""

LOCKED = "55P03"
"""SQLSTATE of a statement that has waited too long for a lock."""

DRIVER = "postgresql+psycopg"


class Database(ABC):
    """Where a result database is, a file or a server. ``name`` is how messages call it; ``url`` and it hold
    no password.
    """

    def __init__(self, url: str, name: str, busy_seconds: float) -> None:
        self.url, self.name, self._busy_seconds = url, name, busy_seconds

    @abstractmethod
    def size(self) -> int:
        """Bytes that it takes."""

    @abstractmethod
    def check(self, write: bool) -> None:
        """Refuse what cannot be used as asked; nothing is created.

        Raises:
            RequestError: there is no such database (reading), it is none, or it cannot be written.
        """

    @abstractmethod
    def engine(self, write: bool) -> Engine:
        """An engine that ends with one line, as of ``explain``; one that is for reading refuses to write."""

    def prepare(self, engine: Engine) -> None:  # noqa: B027 - a server has its own settings
        """Settings that stay with the database, before its tables are made."""

    def damage(self, connection: Connection) -> str:
        """What is wrong with the content; empty if nothing is known to be, as of a server, whose
        administrator checks its files.
        """
        return ""

    def backup(self, target: Path) -> None:
        """Copy the database, as it is at one moment, into a new file; the copy is complete or absent.

        Raises:
            RequestError: the database cannot be read, the file exists or cannot be written, or this is
                another program's task.
        """
        raise RequestError(f"database {self.name}: use pg_dump, or 'bench export' for results alone")

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn the driver's errors while opening the database into one ``RequestError``."""
        try:
            yield
        except (SQLAlchemyError, sqlite3.DatabaseError) as error:
            cause = str(getattr(error, "orig", None) or error).strip().splitlines()
            raise RequestError(
                f"database {self.name}: cannot open it: {cause[0] if cause else error}"
            ) from None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that reads, whatever the schema is; errors as of ``explained``."""
        engine = self.engine(write=False)
        try:
            with self.explained(), engine.connect() as connection:
                yield connection
        finally:
            engine.dispose()

    def empty(self) -> bool:
        """Whether there is nothing to read yet; raises ``RequestError`` where it cannot be reached."""
        with self.reading() as connection:
            return not inspect(connection).get_table_names()


def explain(engine: Engine, name: str, busy: Callable[[ExceptionContext], bool]) -> None:
    """Let an engine end with one line where the database called ``name`` cannot be reached, read or
    written: a ``BusyError`` where that may pass by itself, else a ``RequestError``.
    """

    @event.listens_for(engine, "handle_error")
    def failed(context: ExceptionContext) -> None:
        error = context.sqlalchemy_exception
        if context.is_pre_ping or not isinstance(error, DatabaseError):
            return  # after a ping in vain the pool connects anew
        if isinstance(error, OUR_OWN) and getattr(error.orig, "sqlstate", None) != NO_PRIVILEGE:
            return
        cause = str(error.orig).partition("\n")[0]
        if context.connection is None:
            text = f"database {name}: cannot open it: {cause}"
        else:
            action = "write to" if context.connection.get_execution_options().get(WRITES) else "read"
            text = f"cannot {action} the database {name}: {cause}"
        raise BusyError(text) if busy(context) else RequestError(text)


def without_password(url: str) -> str:
    """A URL, well-formed or not, with asterisks in place of its passwords."""
    text = re.sub(r"([?&]\w*password=)[^&]*", r"\1***", url)
    return re.sub(r"^([^:/@]*:/*[^:/@]*):.*@", r"\1:***@", text)


def writing(engine: Engine) -> Engine:
    """The same engine with transactions that hold the write lock from their start."""
    return engine.execution_options(**{WRITES: True})


class SQLite(Database):
    """An SQLite file."""

    def __init__(self, url: str, busy_seconds: float = BUSY_SECONDS) -> None:
        scheme, _, path = url.partition(":///")
        if scheme != "sqlite" or path in ("", ":memory:"):
            text = without_password(url)
            raise RequestError(f"--db expects sqlite:///PATH or postgresql+psycopg://..., got '{text}'")
        self.path = paths.expanded(path, "--db")
        super().__init__(url, str(self.path), busy_seconds)

    def empty(self) -> bool:
        """No file, or one without tables: another process may be about to make them."""
        if not self.path.exists() or (self.path.is_file() and self.path.stat().st_size == 0):
            return True
        if not self.path.is_file() or _head(self.path) != MAGIC:
            return False
        return super().empty()

    def size(self) -> int:
        """Bytes of the file and of what was not yet merged into it."""
        parts = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(part.stat().st_size for part in parts if part.is_file())

    def check(self, write: bool) -> None:
        """Refuse a file or folder that cannot be used as asked; nothing is created."""
        path = self.path
        if path.is_dir():
            raise RequestError(f"database {path}: expected a file, this is a folder")
        if not path.exists():
            if not write:
                raise RequestError(
                    f"no database at {path}: run 'bench sweep' first or name another one with --db"
                )
            folder = next(parent for parent in path.absolute().parents if parent.exists())
            if not folder.is_dir() or not _is_writable(folder):
                raise RequestError(f"database {path}: cannot create it, {folder} is not a writable folder")
            return
        if _head(path) not in (b"", MAGIC):
            raise RequestError(f"database {path}: expected an SQLite database, this file is not one")
        if write and not (_is_writable(path) and _is_writable(path.absolute().parent)):
            raise RequestError(
                f"database {path} is read-only: make it and its folder writable or use another --db"
            )

    def engine(self, write: bool) -> Engine:
        """An engine for the file; the parent folder is created for writing only.

        Foreign keys are enforced and a locked database is waited for. Reading never changes the file
        and works in a read-only folder.
        """
        path = self.path.absolute()
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
        query = {"mode": "rwc"} if write else self._reading_mode()
        url = URL.create("sqlite", database=f"file:{quote(str(path))}", query={**query, "uri": "true"})
        engine = create_engine(url, connect_args={"timeout": self._busy_seconds}, poolclass=NullPool)
        explain(engine, self.name, _is_locked)

        @event.listens_for(engine, "connect")
        def connected(connection: sqlite3.Connection, _record: Any) -> None:
            connection.isolation_level = None  # transactions are begun below, not by the driver
            connection.execute("PRAGMA foreign_keys = ON")
            if not write:
                connection.execute("PRAGMA query_only = ON")

        @event.listens_for(engine, "begin")
        def begun(connection: Connection) -> None:
            writes = connection.get_execution_options().get(WRITES)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

        return engine

    def _reading_mode(self) -> dict[str, str]:
        """How SQLite opens the file to read it, where it may be written and where it may not."""
        path = self.path.absolute()
        if _is_writable(path) and _is_writable(path.parent):
            return {"mode": "rw"}
        if path.with_name(path.name + "-wal").exists():
            return {"mode": "ro"}
        # Without write access SQLite cannot make the files that WAL mode shares between readers.
        return {"mode": "ro", "immutable": "1"}

    def prepare(self, engine: Engine) -> None:
        """Write-ahead logging from now on (kept in the file), so that readers do not block the writer.

        SQLite itself does not wait where another process is at the same or makes the tables.
        """
        end = time.monotonic() + self._busy_seconds
        raw = engine.raw_connection()
        try:
            while True:
                try:
                    raw.cursor().execute("PRAGMA journal_mode = WAL")
                    return
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                        raise
                    time.sleep(0.01)
        finally:
            raw.close()

    def damage(self, connection: Connection) -> str:
        """What SQLite's own checks find."""
        findings = [str(row[0]) for row in connection.execute(text("PRAGMA integrity_check"))]
        if findings != ["ok"]:
            return findings[0]
        orphans = connection.execute(text("PRAGMA foreign_key_check")).all()
        return f"{len(orphans)} rows without their run" if orphans else ""

    def backup(self, target: Path) -> None:
        """Copy the file while others write."""
        self.check(write=False)
        if target.exists():
            raise RequestError(f"--out {target}: the file already exists")
        url = f"file:{quote(str(self.path.absolute()))}?{urlencode(self._reading_mode() | {'mode': 'ro'})}"
        try:
            with replacing_file(target) as temporary, closing(sqlite3.connect(url, uri=True)) as source:
                source.execute("VACUUM INTO ?", (str(temporary),))
        except (OSError, sqlite3.Error) as error:
            raise RequestError(f"database {self.name}: cannot copy it to {target}: {error}") from None


def _is_locked(context: ExceptionContext) -> bool:
    """Whether another connection holds the lock; the low byte is the kind of an error."""
    return getattr(context.original_exception, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(MAGIC))


def _is_writable(path: Path) -> bool:
    # A file without any write bit is meant to stay as it is, even where root could write it.
    return os.access(path, os.W_OK) and bool(path.stat().st_mode & 0o222)


class Postgres(Database):
    """A database on a PostgreSQL server, by its URL."""

    def __init__(self, url: str, busy_seconds: float = BUSY_SECONDS) -> None:
        name = without_password(url)
        super().__init__(name, name, busy_seconds)
        try:
            self._url = make_url(url)
            is_ours = self._url.drivername == DRIVER
        except (ArgumentError, ValueError):  # the latter is of a port that is no number
            is_ours = False
        if not is_ours:
            raise RequestError(f"--db expects {DRIVER}://USER@HOST/DATABASE, got '{name}'")
        if "@" in (self._url.host or ""):  # the rest of a password, which the driver would print
            raise RequestError(f"--db '{self.name}': write @ in a password as %40")
        if find_spec("psycopg") is None:
            raise RequestError("PostgreSQL needs the extra 'postgres': pip install 'pfl-bench[postgres]'")

    def size(self) -> int:
        """Bytes of the database on the server."""
        with self.reading() as connection:
            return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())

    def check(self, write: bool) -> None:
        """Refuse a server that cannot be reached, or a database that has nothing to read."""
        if self.empty() and not write:
            raise RequestError(
                f"database {self.name} is empty: run 'bench sweep' first or name another one with --db"
            )

    def engine(self, write: bool) -> Engine:
        """An engine; every transaction that writes waits for the others at its start, though not for ever."""
        options = f"-c lock_timeout={1000 * self._busy_seconds:.0f}"  # milliseconds
        if not write:
            options += " -c default_transaction_read_only=on"
        engine = create_engine(
            self._url,
            connect_args={"connect_timeout": CONNECT_SECONDS, "options": options},
            pool_pre_ping=True,
            pool_size=2,
        )
        explain(engine, self.name, _is_locked_or_away)

        @event.listens_for(engine, "begin")
        def begun(connection: Connection) -> None:
            if connection.get_execution_options().get(WRITES):
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")

        return engine


def _is_locked_or_away(context: ExceptionContext) -> bool:
    """Whether there is no connection, or no longer, or somebody else holds the lock."""
    is_locked = getattr(context.original_exception, "sqlstate", None) == LOCKED
    return is_locked or context.connection is None or context.is_disconnect


def database(url: str, busy_seconds: float = BUSY_SECONDS) -> Database:
    """The database that a URL names; its transactions wait so long for a lock.

    Raises:
        RequestError: another kind of URL, or a driver that is not installed.
    """
    return (Postgres if url.startswith("postgres") else SQLite)(url, busy_seconds)
