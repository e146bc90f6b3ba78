"""What goes wrong around a sweep: other sweeps, dead claims, the disk, locks, and servers that are away.

After each, what is stored equals what an undisturbed sweep stores, once each, and no process is left.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
from fake_execute import outcome
from fake_runs import cpu, grid, stored, stored_numbers
from processes import wait_for, workers_below
from scripted import Scripted
from servers import away, postgres_server
from sqlalchemy import Engine, event

from bench.engine.states import State
from bench.errors import BusyError, RequestError
from bench.grids import expand
from bench.spec import RunSpec
from bench.store import Store, connect, open_store
from bench.store.store import Stored, now
from bench.sweep import claims, fingerprint
from bench.sweep.claims import LEASE, Claims


def expected(folder: Path, seeds: int) -> dict[str, object]:
    """What an undisturbed sweep of ``Folder.start`` stores."""
    folder.mkdir()
    work = Scripted(folder)
    work.sweep(expand(grid(seeds=tuple(range(seeds)))))
    return dict(stored_numbers(work.url))


def sound(database: str) -> None:
    """The file is undamaged, and every run in it is complete and there once."""
    with sqlite3.connect(database.removeprefix("sqlite:///")) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
        hashes = [row[0] for row in raw.execute("SELECT spec_hash FROM runs")]
        curves = raw.execute("SELECT run_id, COUNT(*) FROM curves GROUP BY run_id").fetchall()
    assert len(set(hashes)) == len(hashes)
    assert {count for _, count in curves} <= {6}, "two stages, three splits"
    assert len(curves) == len(hashes)


def test_a_failure_does_not_replace_what_another_sweep_has_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where that is stored at the last moment."""
    real = Store.save

    def save(store: Store, spec: RunSpec, *result: Any) -> Stored:
        real(store, spec, outcome(spec))
        return real(store, spec, *result)

    work = Scripted(tmp_path)
    planned = expand(grid(methods=("local",), seeds=(0, 1)))
    stale_plan = work.plan(planned)
    assert stale_plan.counts == {"missing": 2}
    work.sweep(planned[:1])  # the other sweep does the first run, and later the second, too
    monkeypatch.setattr(Store, "save", save)
    result = work.sweep(planned, {"*": ["raise"]}, slots=cpu(1), plan=stale_plan)
    assert (result.counts, result.ran) == ({"done": 2}, 1)
    assert {row["state"] for row in work.stored().values()} == {"done"}
    assert len(work.attempts("local 3 0")) == 1, "done by the other one: not run again"
    assert "local cora non-overlapping 3 seed 0: done in another sweep" in work.lines


def test_what_another_sweep_is_at_is_waited_for(tmp_path: Path) -> None:
    work = Scripted(tmp_path)
    planned = expand(grid(methods=("local",), seeds=(0, 1)))
    first = planned[0].spec
    assert first is not None
    with open_store(work.url, create=True) as store:
        other = Claims(store)  # of this very process, which is alive
        assert other.take(first.hash)
        released: list[float] = []

        def release() -> None:
            wait_for((tmp_path / "ended" / "local 3 1").exists)
            released.append(time.monotonic())
            other.__exit__()

        thread = threading.Thread(target=release)
        thread.start()
        assert work.sweep(planned, slots=cpu(1)).counts == {"done": 2}
        thread.join()
        assert work.attempts("local 3 0")[0]["began"] > released[0]


def test_claims_of_dead_sweeps_on_this_host_hold_up_nobody(tmp_path: Path) -> None:
    work = Scripted(tmp_path)
    planned = expand(grid(methods=("local",), seeds=(0, 1)))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with open_store(work.url, create=True) as store:
        for each, number, earlier in zip(planned, (ended.pid, os.getpid()), (0, 100), strict=True):
            dead = Claims(store)
            place, _, began, token = dead.owner.split(":")
            dead.owner = f"{place}:{number}:{float(began) - earlier}:{token}"
            assert dead.take(each.spec.hash)
    start = time.monotonic()
    assert work.sweep(planned).counts == {"done": 2}, "the second's number is this process's now"
    assert time.monotonic() - start < 30


class DoneMeanwhile(Claims):
    """Another sweep stores a run before this one tries it again."""

    asked = 0

    def take(self, spec_hash: str, *more: Any) -> bool:
        self.asked += 1
        if self.asked == 2:
            (step,) = expand(grid(methods=("local",), seeds=(0,)))
            code = fingerprint.of(step.spec)
            self._store.save(step.spec, replace(outcome(step.spec), code=code))
        return super().take(spec_hash, *more)


def test_what_another_sweep_has_done_is_not_tried_again(tmp_path: Path) -> None:
    work = Scripted(tmp_path)
    planned = expand(grid(methods=("local",), seeds=(0,)))
    result = work.sweep(planned, {"*": ["oom", "done"]}, make_claims=DoneMeanwhile)
    assert (result.counts, result.ran) == ({"done": 1}, 0)
    assert len(work.attempts("local 3 0")) == 1
    assert "local cora non-overlapping 3 seed 0: done in another sweep" in work.lines


@pytest.mark.usefixtures("older_code_exists")
@pytest.mark.parametrize("state", get_args(State))
def test_what_another_sweep_has_stored_spares_making_it(state: State, tmp_path: Path) -> None:
    """If it says how the run ends, and by code of the present numerics."""
    step = Scripted(tmp_path).plan(expand(grid(methods=("local",), seeds=(0,)))).steps[0]
    row = stored(state, method=2)
    known = replace(step, stored=row._replace(started=now()))
    expected = None if state == "no_data" else state
    assert step.ended_elsewhere(row) == known.ended_elsewhere(row) == expected
    assert step.ended_elsewhere(stored(state, method=1)) is None, "of older code"
    assert known.ended_elsewhere(known.stored) is None, "what the plan knew"
    assert step.ended_elsewhere(None) is None


@pytest.mark.slow
def test_claims_are_renewed_between_any_two_runs_that_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several may end while one is stored, and each may have to wait for the database."""
    done: list[str] = []
    real = Store.save

    def save(*arguments: Any) -> Stored:
        done.append("saved")
        time.sleep(0.5)
        return real(*arguments)

    monkeypatch.setattr(Store, "save", save)
    monkeypatch.setattr(Claims, "renew", lambda *_: done.append("renewed") or set())
    Scripted(tmp_path).sweep(expand(grid(methods=("local",), seeds=tuple(range(6)))))
    assert done.count("saved") == 6
    assert "saved saved" not in " ".join(done)


def test_a_claim_that_is_lost_is_said_once(tmp_path: Path) -> None:
    work = Scripted(tmp_path)
    (tmp_path / "attempts").mkdir()

    def take_over() -> None:
        wait_for(lambda: work.attempts("local 3 0"))
        with sqlite3.connect(tmp_path / "bench.db", isolation_level=None) as raw:
            assert raw.execute("UPDATE claims SET owner = 'elsewhere'").rowcount
        raw.close()

    thread = threading.Thread(target=take_over)
    thread.start()
    planned = expand(grid(methods=("local",), seeds=(0,)))
    renewing = partial(Claims, renew_seconds=0.1)
    assert work.sweep(planned, {"*": ["done 2"]}, make_claims=renewing).counts == {"done": 1}
    thread.join()
    said = "local cora non-overlapping 3 seed 0: no longer claimed, another sweep may be at it, too"
    assert work.lines.count(said) == 1


def test_a_claim_outlasts_the_longest_wait_for_the_database() -> None:
    last_try = connect.CONNECT_SECONDS + connect.BUSY_SECONDS
    assert claims.RENEW + connect.PATIENCE + last_try < LEASE


@contextmanager
def each_connection(pragma: str) -> Iterator[None]:
    """Every connection to a database that this process makes meanwhile has a setting of SQLite."""

    def connected(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute(f"PRAGMA {pragma}")

    event.listen(Engine, "connect", connected)
    try:
        yield
    finally:
        event.remove(Engine, "connect", connected)


def test_a_full_disk_stops_the_sweep_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    planned = expand(grid(seeds=tuple(range(20))))
    wanted = expected(tmp_path / "alone", 20)
    work = Scripted(tmp_path)
    with open_store(work.url, create=True):
        pass
    with sqlite3.connect(tmp_path / "bench.db") as raw:
        pages = raw.execute("PRAGMA page_count").fetchone()[0]
    with (
        each_connection(f"max_page_count = {pages + 10}"),
        pytest.raises(RequestError, match="database or disk is full"),
    ):
        work.sweep(planned)
    assert not workers_below(os.getpid())
    kept = len(stored_numbers(work.url))
    assert 1 <= kept < 40
    sound(work.url)
    result = work.sweep(planned)
    assert (result.counts, result.ran) == ({"done": 40}, 40 - kept)
    assert stored_numbers(work.url) == wanted
    sound(work.url)


@contextmanager
def locked(path: Path, seconds: float = 60.0) -> Iterator[None]:
    """The write lock of a database is held by another, at most for so long."""
    until = threading.Event()
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")

    def release() -> None:
        until.wait(seconds)
        connection.execute("ROLLBACK")
        connection.close()

    thread = threading.Thread(target=release)
    thread.start()
    try:
        yield
    finally:
        until.set()
        thread.join()


def test_a_locked_database_is_waited_for(tmp_path: Path) -> None:
    wanted = expected(tmp_path / "alone", 3)
    work = Scripted(tmp_path)
    with open_store(work.url, create=True):
        pass
    began = time.monotonic()
    with each_connection("busy_timeout = 500"), locked(tmp_path / "bench.db", 2.0):
        assert work.sweep(expand(grid(seeds=(0, 1, 2)))).counts == {"done": 6}
        assert time.monotonic() - began >= 2.0
    assert stored_numbers(work.url) == wanted
    sound(work.url)


def test_a_database_that_stays_locked_ends_the_sweep(tmp_path: Path) -> None:
    work = Scripted(tmp_path)
    with open_store(work.url, create=True):
        pass
    with (
        each_connection("busy_timeout = 50"),
        locked(tmp_path / "bench.db"),
        pytest.raises(RequestError, match="locked"),
    ):
        work.sweep(expand(grid(seeds=(0,))), make_claims=partial(Claims, patience=0.5))
    assert not workers_below(os.getpid())
    assert work.stored() == {}


def test_only_a_busy_database_is_waited_for(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'locked' / 'bench.db'}"
    with open_store(url, create=True):
        pass
    began = time.monotonic()
    with (
        open_store(url, create=False) as store,
        Claims(store) as ours,
        pytest.raises(RequestError, match="readonly"),
    ):
        ours.take("a")
    assert time.monotonic() - began < 10.0


def test_what_is_read_is_waited_for_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = Store.stored

    def away_at_first(store: Store, spec_hash: str) -> Stored | None:
        asked.append(spec_hash)
        if len(asked) % 2:
            raise BusyError("away")
        return real(store, spec_hash)

    monkeypatch.setattr(Store, "stored", away_at_first)
    planned = expand(grid(methods=("local",), seeds=(0,)))
    assert Scripted(tmp_path).sweep(planned, {"*": ["raise"]}).counts == {"failed": 1}
    assert len(asked) == 2, "before the run, in vain and again"


@pytest.mark.slow
def test_a_server_that_is_away_is_waited_for(tmp_path: Path) -> None:
    wanted = expected(tmp_path / "alone", 6)
    with postgres_server() as new:
        url = new()
        open_store(url, create=True).close()
        times = 0

        def interfere() -> None:
            nonlocal times
            for count in (2, 6):
                wait_for(lambda count=count: len(stored_numbers(url)) >= count)
                with away(url):
                    time.sleep(1.5)
                times += 1

        thread = threading.Thread(target=interfere)
        thread.start()
        work = Scripted(tmp_path, database=url)
        result = work.sweep(expand(grid(seeds=tuple(range(6)))), {"*": ["done 0.4"]})
        thread.join()
        assert (result.counts, result.ran, times) == ({"done": 12}, 12, 2)
        assert stored_numbers(url) == wanted
        assert sum(path.read_text().count("\n") for path in (tmp_path / "attempts").iterdir()) == 12


@pytest.mark.slow
def test_a_sweep_that_is_to_stop_now_waits_for_no_lock(tmp_path: Path) -> None:
    work = Scripted(tmp_path)
    with open_store(work.url, create=True):
        pass
    before = signal.getsignal(signal.SIGTERM)

    def terminate() -> None:
        wait_for(lambda: signal.getsignal(signal.SIGTERM) != before)  # the sweep listens
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=terminate)
    thread.start()
    began = time.monotonic()
    with (
        each_connection("busy_timeout = 3000"),
        locked(tmp_path / "bench.db"),
        pytest.raises(KeyboardInterrupt),
    ):
        work.sweep(expand(grid(seeds=(0,))))
    thread.join()
    assert time.monotonic() - began < 20.0, "of many waits of 3 s the first"
