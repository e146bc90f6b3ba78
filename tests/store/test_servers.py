"""The same results and claims in a file and on a PostgreSQL server, under many writers at once."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import psutil
import pytest
from sqlalchemy import inspect, make_url, select, text
from stored_runs import done, save, spec_of

from bench.engine.result import RunResult
from bench.errors import BusyError, RequestError
from bench.runner.claims import Claims
from bench.store import Store, connect, open_store
from bench.store.connect import Database, writing
from bench.store.models import Claim
from bench.store.store import stored_runs

WRITERS, RUNS_EACH = 32, 5


@pytest.fixture(scope="module")
def server() -> Iterator[Callable[[], str]]:
    """Gives URLs of new databases on a PostgreSQL server with its socket in a folder of its own."""
    pgserver = pytest.importorskip("pgserver", reason="no PostgreSQL server: pip install pgserver")
    psycopg = pytest.importorskip("psycopg", reason="no PostgreSQL driver: pip install psycopg")
    folder = Path(mkdtemp(prefix="pg"))  # a socket's path must be short, and open to the server's user
    try:
        server = pgserver.get_server(folder, cleanup_mode="stop")
    except Exception as error:
        pytest.skip(f"no PostgreSQL server can be started here: {error}")

    numbers = count()

    def new() -> str:
        name = f"bench{next(numbers)}"
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


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'runs.db'}"
    new: Callable[[], str] = request.getfixturevalue("server")
    return new()


def test_what_goes_in_comes_out_of_both(url: str, tmp_path: Path) -> None:
    large = 5 * 2**40  # more than 32 bits
    reference = f"sqlite:///{tmp_path / 'reference.db'}"
    frames: list[tuple[pd.DataFrame, ...]] = []
    for place in (url, reference):
        with open_store(place, create=True) as store:
            save(store, spec_of(3), done(3, bytes_up=large, peak_memory=large))
            save(store, spec_of(3, seed=1), RunResult("failed", "why", "traceback"))
            assert save(store, spec_of(3), done(3, shift=4, bytes_up=large)) == 1
            assert save(store, spec_of(3, seed=2), done(3, shift=5)) == 3
        with open_store(place, create=False) as store:
            assert store.runs()["bytes_up"].tolist()[0] == large
            frames.append((store.runs(), store.client_results([1, 3]), store.table("partitions")))
    for ours, theirs in zip(*frames, strict=True):
        pd.testing.assert_frame_equal(ours, theirs)


def test_text_that_no_database_holds_is_stored_with_escapes(url: str) -> None:
    """What an exception says may hold anything: half of a character from a file's name, or a NUL."""
    reason, trace = "no file 'a\udcff\0b', \\ é \U0001f600", 'File "\ud800.py"\n\0'
    with open_store(url, create=True) as store:
        save(store, spec_of(3), RunResult("failed", reason, trace))
    with open_store(url, create=False) as store:
        row = store.runs().iloc[0]
        assert row["reason"] == "no file 'a\\udcff\\x00b', \\ é \U0001f600"
        assert row["traceback"] == 'File "\\ud800.py"\n\\x00'


OLDER = (
    *(f"ALTER TABLE claims DROP COLUMN {name}" for name in ("run", "device", "since")),
    "DROP TABLE confusions",
    "UPDATE alembic_version SET version_num = '0005'",
)
"""What makes a database one of the oldest schema."""


def test_an_upgrade_that_breaks_at_its_last_step_changes_nothing_and_runs_stay(url: str) -> None:
    specs = [spec_of(3), spec_of(3, seed=1)]
    with open_store(url, create=True) as store:
        for spec in specs:
            save(store, spec, done(3))
        with store.transaction() as session:
            for statement in (*OLDER, "ALTER TABLE claims ADD COLUMN since INTEGER"):
                session.execute(text(statement))
    with pytest.raises(RequestError, match="since"):
        connect.upgrade(Database(url))
    engine = Database(url).engine(write=True)
    with writing(engine).begin() as connection:
        assert connect.current(connection) == "0005"
        assert "confusions" not in inspect(connection).get_table_names()
        connection.execute(text("ALTER TABLE claims DROP COLUMN since"))
    engine.dispose()
    assert connect.upgrade(Database(url)) == "0005"
    with open_store(url, create=True) as store:
        stored = store.runs()
        assert stored["spec_hash"].tolist() == [spec.hash for spec in specs]
        assert len(store.client_results(stored["id"])) > 0
        assert store.confusions(stored["id"]) == {}
        save(store, spec_of(3, seed=2), done(3))
        assert len(store.confusions(store.runs()["id"])) == 8


def test_a_writer_that_waits_too_long_says_that_the_database_is_locked(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.store.connect.BUSY_SECONDS", 0.3)
    with (
        open_store(url, create=True) as holder,
        open_store(url, create=True) as waiting,
    ):
        with holder.transaction() as session:
            session.connection()
            began = time.monotonic()
            with pytest.raises(BusyError, match=r"cannot write to the database .*: .*lock") as error:
                save(waiting, spec_of(3), done(3))
            assert 0.2 < time.monotonic() - began < 25
            assert "\n" not in str(error.value)
            assert waiting.runs().empty  # it can be read meanwhile
        save(waiting, spec_of(3), done(3))  # with the same connections
        assert holder.runs()["state"].tolist() == ["done"]


def test_making_tables_does_not_wait_for_ever(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.store.connect.BUSY_SECONDS", 0.3)
    engine = Database(url).engine(write=True)
    with writing(engine).begin(), pytest.raises(RequestError, match="lock"):
        open_store(url, create=True)
    engine.dispose()


def test_a_server_that_is_away_is_busy_and_is_found_again(server: Callable[[], str]) -> None:
    url = server()

    def ask(store: Store) -> list[object]:
        claims = Claims(store)
        return [store.states("a"), len(store.runs()), claims.take("a"), claims.__exit__()]

    with open_store(url, create=True) as store:
        expected = ask(store)
        with away(url):
            renew = Claims(store, patience=0, renew_seconds=0).renew
            for call in (store.runs, renew, lambda: open_store(url, create=True)):
                with pytest.raises(BusyError, match=r"cannot .* the database postgresql") as error:
                    call()
                assert "\n" not in str(error.value)
        assert ask(store) == expected
        with pytest.raises(BusyError, match="cannot write to"), store.transaction() as session:  # noqa: PT012
            session.add(Claim(spec_hash="half", owner="", until=0.0))
            session.flush()
            with away(url):
                session.scalars(select(Claim)).all()
        assert ask(store) == expected
        with store.transaction() as session:
            assert session.get(Claim, "half") is None


def test_a_database_that_another_process_is_making_holds_nothing_yet(tmp_path: Path) -> None:
    """Its file is there, its tables are not: whoever looks first must not be refused."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    engine = Database(url).engine(write=True)
    Database(url).log_ahead(engine)  # the file has its first page now
    with writing(engine).begin() as connection:
        connection.exec_driver_sql("CREATE TABLE runs (id INTEGER)")
        assert (tmp_path / "runs.db").stat().st_size > 0
        assert stored_runs(url) == {}
    engine.dispose()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("runs.db", "expects sqlite:///PATH"),
        ("postgresql://host/x", r"or postgresql\+psycopg://"),
        ("postgresql+psycopg://me:secret@127.0.0.1:1/x", r"cannot open the"),
        ("postgresql+psycopg://me:s@secret@127.0.0.1:1/x", "%40 for an @"),
        ("postgresql+psycopg://me:secret@127.0.0.1:port/x", "expects"),
    ],
)
def test_what_is_no_database_takes_one_line(url: str, message: str) -> None:
    with pytest.raises(RequestError, match=message) as error:
        open_store(url, create=True)
    assert "\n" not in str(error.value)
    assert "secret" not in str(error.value)


# Claims -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_claim_that_is_not_renewed_expires(url: str) -> None:
    with open_store(url, create=True) as one, open_store(url, create=True) as other:
        ours, theirs = (Claims(place, lease=3.0, renew_seconds=0) for place in (one, other))
        assert ours.take("a")
        assert ours.take("a")  # again, by its owner
        time.sleep(1.6)
        ours.renew()
        time.sleep(1.6)
        assert not theirs.take("a")  # it was renewed in time
        time.sleep(1.6)
        assert theirs.take("a")
        ours.renew()
        assert not ours.take("a"), "what it has lost stays lost"


def test_claims_end_with_their_owner_and_those_that_have_run_out_are_removed(url: str) -> None:
    with open_store(url, create=True) as store:
        expired, running, ended = Claims(store, lease=0.0), Claims(store), Claims(store)
        dead = Claims(store)
        host, pid, started, token = dead.owner.split(":")
        dead.owner = f"{host}:{pid}:{float(started) - 100}:{token}"  # a process of this number before it
        assert dead.take("b")
        for name, claims in (("a", expired), ("b", running), ("c", ended)):
            assert claims.take(name)
        assert not ended.take("b")
        ended.__exit__()
        with store.transaction() as session:
            assert list(session.scalars(select(Claim.spec_hash))) == ["b"]


def test_of_many_who_ask_one_gets_each_run(url: str) -> None:
    hashes = [f"run{number}" for number in range(20)]
    with open_store(url, create=True):
        pass

    def ask(order: int) -> list[str]:
        with open_store(url, create=True) as store:
            claims = Claims(store)
            mixed = np.random.default_rng(order).permutation(hashes).tolist()
            return [name for name in mixed if claims.take(name)]

    with ThreadPoolExecutor(8) as pool:
        taken = [name for got in pool.map(ask, range(8)) for name in got]
    assert sorted(taken) == sorted(hashes)


# Many writers -------------------------------------------------------------------------------------

WRITER = """
import sys
sys.path[:0] = {folders!r}
from stored_runs import done, save, spec_of
from bench.store import open_store
url, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
with open_store(url, create=True) as store:
    for seed in range(first, first + count):
        save(store, spec_of(3, seed=seed), done(3, shift=seed % 8))
"""


@pytest.mark.slow
def test_32_writers_at_once_lose_and_double_nothing(url: str) -> None:
    """Each writer is a process; half of what each writes is written by its neighbour, too."""
    script = WRITER.format(folders=[str(Path(__file__).parent), str(Path(__file__).parents[1])])
    step = RUNS_EACH // 2 + 1
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    writers = []
    for number in range(WRITERS):
        words = [sys.executable, "-c", script, url, str(number * step), str(RUNS_EACH)]
        writers.append(subprocess.Popen(words, **pipes))
    assert [writer.stdout.readline() for writer in writers] == ["ready\n"] * WRITERS
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [writer.wait() for writer in writers] == [0] * WRITERS
    seeds = range((WRITERS - 1) * step + RUNS_EACH)
    with open_store(url, create=False) as store:
        runs = store.runs()
        results = store.client_results(runs["id"], stage="trained", split="test", rule="last")
        assert sorted(runs["seed"]) == [*seeds]
        for run, seed in zip(runs["id"], runs["seed"], strict=True):
            result = done(3, shift=int(seed) % 8)
            expected = result.correct["trained", "test"][-1] / result.samples["test"]
            assert np.allclose(results.loc[results["run_id"] == run, "value"], expected)
