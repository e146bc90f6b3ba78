"""A database in a file: whether it may be used as asked, and how it is opened."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, ExceptionContext, create_engine, event, inspect, text
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import NullPool

from bench.errors import RequestError
from bench.store.connect import BUSY_SECONDS, WRITES, Database, explain, without_password

MAGIC = b"SQLite format 3\0"
PARTS = ("", "-journal", "-shm", "-wal")
"""Endings of the files that a database consists of while it is open."""


class SQLite(Database):
    """An SQLite file."""

    def __init__(self, url: str) -> None:
        scheme, _, path = url.partition(":///")
        if scheme != "sqlite" or path in ("", ":memory:"):
            shown = without_password(url)
            raise RequestError(f"--db expects sqlite:///PATH or postgresql+psycopg://..., got '{shown}'")
        self.path = Path(path).expanduser()
        self.url, self.name = url, str(self.path)

    def empty(self) -> bool:
        """No file, or one without tables: another process may be about to make them."""
        if not self.path.exists() or (self.path.is_file() and self.path.stat().st_size == 0):
            return True
        if not self.path.is_file() or self._head() != MAGIC:
            return False
        engine = self.engine(write=False)
        try:
            with self.explained(), engine.connect() as connection:
                return not inspect(connection).get_table_names()
        finally:
            engine.dispose()

    def _head(self) -> bytes:
        with self.path.open("rb") as file:
            return file.read(len(MAGIC))

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
            if not folder.is_dir() or not _writable(folder):
                raise RequestError(f"database {path}: cannot create it, {folder} is not a writable folder")
            return
        if self._head() not in (b"", MAGIC):
            raise RequestError(f"database {path}: expected an SQLite database, this file is not one")
        if write and not (_writable(path) and _writable(path.absolute().parent)):
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
            query = {"mode": "rwc"}
        elif _writable(path) and _writable(path.parent):
            query = {"mode": "rw"}
        elif path.with_name(path.name + "-wal").exists():
            query = {"mode": "ro"}
        else:
            # Without write access SQLite cannot make the files that WAL mode shares between readers.
            query = {"mode": "ro", "immutable": "1"}
        url = URL.create("sqlite", database=f"file:{quote(str(path))}", query={**query, "uri": "true"})
        made = create_engine(url, connect_args={"timeout": BUSY_SECONDS}, poolclass=NullPool)
        explain(made, self.name, _busy)

        @event.listens_for(made, "connect")
        def connected(connection: sqlite3.Connection, _record: Any) -> None:
            connection.isolation_level = None  # transactions are begun below, not by the driver
            connection.execute("PRAGMA foreign_keys = ON")
            if not write:
                connection.execute("PRAGMA query_only = ON")

        @event.listens_for(made, "begin")
        def begun(connection: Connection) -> None:
            writes = connection.get_execution_options().get(WRITES)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

        return made

    def prepare(self, engine: Engine) -> None:
        """Write-ahead logging from now on (kept in the file), so that readers do not block the writer."""
        raw = engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA journal_mode = WAL")
        finally:
            raw.close()

    def damage(self, connection: Connection) -> str:
        """What SQLite's own checks find."""
        found = [str(row[0]) for row in connection.execute(text("PRAGMA integrity_check"))]
        if found != ["ok"]:
            return found[0]
        orphans = connection.execute(text("PRAGMA foreign_key_check")).all()
        return f"{len(orphans)} rows without their run" if orphans else ""

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn the driver's errors while opening the file into one line."""
        try:
            yield
        except (DatabaseError, sqlite3.DatabaseError) as error:
            cause = getattr(error, "orig", None) or error
            raise RequestError(f"database {self.name}: cannot open it: {cause}") from None

    def backup(self, target: Path) -> None:
        """Copy the database as it is at one moment, while others write; the copy is complete or absent."""
        self.check(write=False)
        try:
            self._refuse(target)
            self._copy(target)
        except (OSError, sqlite3.Error) as error:
            raise RequestError(f"database {self.name}: cannot copy it to {target}: {error}") from None

    def _refuse(self, target: Path) -> None:
        """Refuse a file that cannot take a copy, or that belongs to the database itself."""
        if target.is_dir():
            raise RequestError(f"--out expects a file, got a folder: {target}")
        if not target.parent.is_dir():
            raise RequestError(f"--out {target}: there is no folder {target.parent}, make it first")
        own = self.path.resolve()
        part = target.resolve() in [own.with_name(own.name + ending) for ending in PARTS]
        if part or (target.exists() and target.samefile(own)):
            raise RequestError(f"--out {target} is the database itself: name another file")

    def _copy(self, target: Path) -> None:
        beside = target.with_name(f"{target.name}.{os.getpid()}.tmp")
        url = f"file:{quote(str(self.path.absolute()))}?mode=ro"
        try:
            with (
                closing(sqlite3.connect(url, uri=True)) as source,
                closing(sqlite3.connect(beside)) as copy,
            ):
                source.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)


def _busy(context: ExceptionContext) -> bool:
    """Whether another connection holds the lock; the low byte is the kind of an error."""
    return getattr(context.original_exception, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _writable(path: Path) -> bool:
    # A file without any write bit is meant to stay as it is, even where root could write it.
    return os.access(path, os.W_OK) and bool(path.stat().st_mode & 0o222)
