"""The seam for kinds of databases: where results lie, and how they are reached."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from sqlalchemy import Connection, Engine, ExceptionContext, event
from sqlalchemy.exc import DatabaseError, DataError, IntegrityError, NotSupportedError, ProgrammingError

from bench.errors import BusyError, RequestError

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


class Database(ABC):
    """Where a result database is. ``name`` is how messages call it; ``url`` and it hold no password."""

    url: str
    name: str

    @abstractmethod
    def empty(self) -> bool:
        """Whether there is nothing to read yet.

        Raises:
            RequestError: it cannot be reached.
        """

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
        """An engine; one that is for reading refuses to write. It raises what ``explain`` says."""

    @abstractmethod
    def prepare(self, engine: Engine) -> None:
        """Settings that stay with the database, before its tables are made."""

    @abstractmethod
    def damage(self, connection: Connection) -> str:
        """What is wrong with the content; empty if nothing is known to be."""

    @abstractmethod
    def explained(self) -> AbstractContextManager[None]:
        """Turns the driver's errors while opening the database into one ``RequestError``."""

    @abstractmethod
    def backup(self, target: Path) -> None:
        """Copy the database into a file.

        Raises:
            RequestError: it cannot be read, the file cannot be written or is a part of it, or this is
                another program's task.
        """


def database(url: str) -> Database:
    """The database that a URL names.

    Raises:
        RequestError: another kind of URL, or a driver that is not installed.
    """
    from bench.store.postgres import Postgres
    from bench.store.sqlite import SQLite

    return Postgres(url) if url.startswith("postgres") else SQLite(url)


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
            doing = "write to" if context.connection.get_execution_options().get(WRITES) else "read"
            text = f"cannot {doing} the database {name}: {cause}"
        raise BusyError(text) if busy(context) else RequestError(text)


def without_password(url: str) -> str:
    """A URL, well-formed or not, with asterisks in place of its passwords."""
    shown = re.sub(r"([?&]\w*password=)[^&]*", r"\1***", url)
    return re.sub(r"^([^:/@]*:/*[^:/@]*):.*@", r"\1:***@", shown)


def writing(engine: Engine) -> Engine:
    """The same engine with transactions that hold the write lock from their start."""
    return engine.execution_options(**{WRITES: True})
