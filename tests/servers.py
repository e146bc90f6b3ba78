"""Databases to test with: a file, and a PostgreSQL server that runs as long as the tests do."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import quote

import psutil
import pytest
from sqlalchemy import make_url

NUMBERS = count()


@contextmanager
def postgres_server() -> Iterator[Callable[[], str]]:
    """A server that is reached through a socket in a folder of its own; gives URLs of new databases.

    Skips the test where no server can be started.
    """
    pgserver = pytest.importorskip("pgserver", reason="no PostgreSQL server: pip install pgserver")
    psycopg = pytest.importorskip("psycopg", reason="no PostgreSQL driver: pip install psycopg")
    folder = Path(mkdtemp(prefix="pg"))  # a socket's path must be short, and open to the server's user
    try:
        server = pgserver.get_server(folder, cleanup_mode="stop")
    except Exception as error:
        pytest.skip(f"no PostgreSQL server can be started here: {error}")

    def new() -> str:
        name = f"bench{next(NUMBERS)}"
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql+psycopg://postgres@/{name}?host={quote(str(folder))}"

    try:
        yield new
    finally:
        postmaster = psutil.Process(server.get_pid())
        postmaster.send_signal(signal.SIGQUIT)  # at once: a stop in good order first writes what nobody reads
        postmaster.wait(30)
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def away(url: str) -> Iterator[None]:
    """The server of a URL takes no connections, and the database has lost those that it had."""
    import psycopg

    socket = Path(str(make_url(url).query["host"]), ".s.PGSQL.5432")
    others = "pid <> pg_backend_pid() AND datname = current_database()"
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        hidden = socket.rename(socket.with_name("hidden"))
        connection.execute(f"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE {others}")
    try:
        yield
    finally:
        hidden.rename(socket)
