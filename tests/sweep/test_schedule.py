"""What starts, what is tried again, when a sweep stops by itself, and what interrupts and kills do to it."""

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from fake_runs import cpu, grid
from processes import wait_for, workers_below
from scripted import Scripted
from stored_runs import done, save

from bench.grids import Planned, expand
from bench.resolve import resolve
from bench.store import Store, open_store
from bench.sweep import fingerprint
from bench.sweep.claims import Claims
from bench.sweep.plan import Step
from bench.sweep.policy import Limits, Slots
from bench.sweep.status import sweeps
from bench.sweep.workers import LocalPool

LOCAL = expand(grid(methods=("local",), seeds=(0, 1, 2), clients=(3,)))


@pytest.fixture
def work(tmp_path: Path) -> Scripted:
    return Scripted(tmp_path)


def overlaps(work: Scripted, attempt: dict[str, float], ended: float, other: str) -> bool:
    return work.attempts(other)[0]["began"] < ended and work.ended(other) > attempt["began"]


def test_out_of_memory_is_tried_alone_then_in_smaller_blocks(work: Scripted) -> None:
    script = {"local 3 0": ["oom", "oom", "done 0.3"], "local 3 1": ["done 0.5"], "local 3 2": ["done 0.2"]}
    result = work.sweep(LOCAL, script)
    assert (result.counts, result.failed) == ({"done": 3}, 0)
    tries = work.attempts("local 3 0")
    assert [attempt["shrink"] for attempt in tries] == [1, 1, 2]
    for other in ("local 3 1", "local 3 2"):
        assert not overlaps(work, tries[1], tries[2]["began"], other), "the second attempt is alone"
        assert not overlaps(work, tries[2], work.ended("local 3 0"), other), "and so is the third"
    assert not overlaps(work, work.attempts("local 3 2")[0], work.ended("local 3 2"), "local 3 1"), (
        "a kind of run that ran out of memory is alone for the rest of the sweep"
    )
    assert len({attempt["pid"] for attempt in tries}) == 3, "a fresh process each time"
    assert work.stored()["local 3 0"]["reason"] == ""
    assert work.logs() == set()


@pytest.mark.slow
def test_a_run_that_never_fits_is_stored_with_its_peak_and_what_was_tried(work: Scripted) -> None:
    result = work.sweep(LOCAL[:2], {"local 3 0": ["oom"]})
    assert (result.counts, result.failed) == ({"oom": 1, "done": 1}, 1)
    # Three clients: blocks of all, of a half and of a quarter of them; the last is one client at most.
    assert [attempt["shrink"] for attempt in work.attempts("local 3 0")] == [1, 1, 2, 4]
    row = work.stored()["local 3 0"]
    assert row["peak_memory"] > 10 * 2**20
    assert row["reason"] == "MemoryError: no more; tried 4 times, at last in blocks of 1/4"
    # The next sweep tries it again, from the start.
    assert work.sweep(LOCAL[:2]).counts == {"done": 2}
    assert len(work.attempts("local 3 0")) == 5


@pytest.mark.slow
def test_a_kill_by_the_system_for_want_of_memory_is_out_of_memory(work: Scripted) -> None:
    kills = iter(range(1000))
    make = partial(LocalPool, kills=lambda: next(kills))
    script = {"local 3 0": ["signal 9", "signal 9", "done"]}
    result = work.sweep(LOCAL[:2], script, make_pool=make)
    assert result.counts == {"done": 2}
    assert [attempt["shrink"] for attempt in work.attempts("local 3 0")] == [1, 1, 2]
    seventh = expand(grid(methods=("local",), seeds=(7,)))
    assert work.sweep(seventh, {"*": ["signal 9"]}, make_pool=make).counts == {"oom": 1}
    row = work.stored()["local 3 7"]
    assert row["reason"].startswith("the system killed the worker for want of memory; tried 4 times")
    # Another signal is no want of memory, whatever the counter says.
    work.sweep(expand(grid(methods=("local",), seeds=(8,))), {"*": ["signal 15"]}, make_pool=make)
    assert work.stored()["local 3 8"]["state"] == "failed"


def test_a_killed_worker_is_tried_three_times_more(work: Scripted) -> None:
    number = 9
    script = {"local 3 0": [f"signal {number}"] * 3 + ["done"], "local 3 1": [f"signal {number}"]}
    result = work.sweep(LOCAL, script)
    assert (result.counts, result.failed) == ({"done": 2, "failed": 1}, 1)
    assert len(work.attempts("local 3 0")) == 4
    assert len(work.attempts("local 3 1")) == 4
    row = work.stored()["local 3 1"]
    assert re.findall(r"\d+", row["reason"]) == [str(number), "4"], "the signal, and how often it was tried"


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("raise", "ValueError: seed 0"),
        ("exit 3", "the worker process died (exit code 3)"),
        ("leave", "SystemExit: left"),
    ],
)
def test_a_failure_of_a_method_is_kept_with_its_log_and_not_retried(
    work: Scripted, word: str, reason: str
) -> None:
    result = work.sweep(LOCAL, {"local 3 0": [word]})
    assert (result.counts, result.failed) == ({"failed": 1, "done": 2}, 1)
    assert len(work.attempts("local 3 0")) == 1
    row = work.stored()["local 3 0"]
    assert row["reason"] == reason
    assert work.logs() == {row["spec_hash"]}, "only failed runs leave a log"
    log = (work.folder / "logs" / f"{row['spec_hash']}.log").read_text()
    assert log.startswith("output of attempt 1\n")
    assert row["traceback"].endswith(f"log: logs/{row['spec_hash']}.log in BENCH_HOME\n")
    if word == "raise":
        for text in (log, row["traceback"]):
            assert "raise ValueError" in text
    # Done at last: the log goes.
    assert work.sweep(LOCAL).counts == {"done": 3}
    assert work.logs() == set()


@pytest.mark.slow
def test_a_run_that_fails_on_a_gpu_leaves_its_process_to_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some errors every later call of the process to its device fails."""
    monkeypatch.setattr("bench.sweep.schedule.describe", lambda device, threads: {})  # a mere name here
    planned = expand(grid(methods=("local",), seeds=(0, 1, 2)))
    script = {"local 3 0": ["raise"]}
    for device, processes in (("cuda:0", 2), ("cpu", 1)):
        (tmp_path / device).mkdir()
        work = Scripted(tmp_path / device)
        slots = Slots((device,), 1)
        assert work.sweep(planned, script, slots).counts == {"done": 2, "failed": 1}
        first, *others = [work.attempts(f"local 3 {seed}")[0]["pid"] for seed in range(3)]
        assert len({first, *others}) == processes


SIX = expand(grid(methods=("local",), seeds=tuple(range(6))))


class Following:
    """Asks for one more run once a run has ended, wherever that was made."""

    def __init__(self, first: Planned, second: Planned) -> None:
        self._first = first.spec.hash
        self._steps = [Step(second, "missing", to_run=True)]

    def __call__(self, store: Store, states: Mapping[str, str]) -> list[Step]:
        steps, self._steps = (self._steps, []) if self._first in states else ([], self._steps)
        return steps


def test_what_follows_a_run_that_another_sweep_has_done_is_run(work: Scripted) -> None:
    stale_plan = work.plan(LOCAL[:1])
    work.sweep(LOCAL[:1])  # the other sweep
    work.sweep(LOCAL[:1], plan=stale_plan, follow_up=Following(*LOCAL[:2]))
    assert len(work.attempts("local 3 0")) == 1
    assert len(work.attempts("local 3 1")) == 1, "though nothing of this sweep's own was running"


def test_what_follows_a_run_that_another_sweep_was_at_is_run(work: Scripted) -> None:
    spec = LOCAL[0].spec
    with open_store(work.url, create=True) as store:
        other = Claims(store)  # of this very process, which is alive
        assert other.take(spec.hash)

        def end() -> None:
            time.sleep(1.5)  # until this sweep has seen the claim
            code = fingerprint.code("local")
            numerics = {"method_numerics": code.method_numerics, "engine_numerics": code.engine_numerics}
            save(store, spec, done(3, partition_hash="p"), **numerics)
            other.__exit__()

        thread = threading.Thread(target=end)
        plan = work.plan(LOCAL[:1])
        thread.start()
        work.sweep(LOCAL[:1], plan=plan, follow_up=Following(*LOCAL[:2]))
        thread.join()
    assert work.attempts("local 3 0") == []
    assert len(work.attempts("local 3 1")) == 1


def begun(work: Scripted) -> set[str]:
    return {path.name for path in (work.folder / "attempts").iterdir()}


def test_the_first_failure_stops_the_sweep_and_what_runs_is_kept(work: Scripted) -> None:
    script = {"local 3 0": ["raise"], "local 3 1": ["after local 3 0"]}
    result = work.sweep(SIX, script, limits=Limits(failures=1))
    assert result.counts == {"failed": 1, "done": 1, "missing": 4}
    assert (result.left, result.failed) == ({"stopped after 1 failed": 4}, 1)
    assert begun(work) == {"local 3 0", "local 3 1"}
    assert "4 left: stopped after 1 failed" in work.lines


def test_a_run_that_hangs_is_stopped_and_the_rest_goes_on(work: Scripted) -> None:
    began = time.monotonic()
    result = work.sweep(SIX, {"local 3 1": ["hang"]}, limits=Limits(timeout=2))
    assert time.monotonic() - began < 30
    assert result.counts == {"failed": 1, "done": 5}
    assert len(work.attempts("local 3 1")) == 1
    row = work.stored()["local 3 1"]
    assert re.findall(r"\d+", row["reason"]) == ["2"], "the seconds that it was given"
    assert row["seconds_total"] == 2
    assert work.logs() == {row["spec_hash"]}


def known_to_take(work: Scripted, seconds: float) -> None:
    """One run of the kind is stored with this time."""
    spec = resolve("cora", "non-overlapping", 3, "local", 99)
    code = fingerprint.code("local")
    with open_store(work.url, create=True) as store:
        numerics = {"method_numerics": code.method_numerics, "engine_numerics": code.engine_numerics}
        save(store, spec, done(3, seconds={"total": seconds}, partition_hash="p"), **numerics)


def test_nothing_starts_that_would_end_after_the_budget(work: Scripted) -> None:
    known_to_take(work, 3600)
    both = expand(grid(methods=("local", "fedavg"), seeds=(0, 1)))
    result = work.sweep(both, limits=Limits(budget=1800))
    # Runs of fedavg, whose time is unknown, may start; local is known to take an hour.
    assert result.counts == {"missing": 2, "done": 2}
    assert begun(work) == {"fedavg 3 0", "fedavg 3 1"}
    assert (result.left, result.failed) == ({"not to be done within the budget of 0.5 h": 2}, 0)
    assert work.sweep(both, limits=Limits(budget=7200)).counts == {"done": 4}


def test_nothing_starts_once_the_budget_is_used_up(work: Scripted) -> None:
    result = work.sweep(SIX, {"*": ["done 1.5"]}, limits=Limits(budget=2.5))
    done = result.counts["done"]
    assert 2 <= done < 6
    assert result.left == {f"not to be done within the budget of {2.5 / 3600:g} h": 6 - done}


def test_a_method_whose_first_three_runs_fail_is_held_back(work: Scripted) -> None:
    planned = expand(grid(methods=("local", "fedavg"), seeds=(0, 1), clients=(3, 4, 5, 6)))
    script = {f"local {clients} {seed}": ["raise"] for clients in (3, 4, 5, 6) for seed in (0, 1)}
    result = work.sweep(planned, script, cpu(1))
    assert result.counts == {"failed": 3, "done": 8, "missing": 5}
    assert result.failed
    ((reason, count),) = result.left.items()
    assert count == 5
    assert reason.startswith("local is held back: its first 3 runs failed, the last with ValueError")
    assert {row["clients"] for key, row in work.stored().items() if key.startswith("local")} == {3, 4, 5}
    assert any(line.startswith("5 left: local is held back") for line in work.lines)
    # Mended, everything is done.
    assert work.sweep(planned).counts == {"done": 16}


def test_one_success_holds_nothing_back(work: Scripted) -> None:
    planned = expand(grid(methods=("local",), seeds=(0,), clients=(3, 4, 5, 6, 7)))
    raising = {f"local {clients} 0": ["raise"] for clients in (4, 5, 6, 7)}
    result = work.sweep(planned, raising, cpu(1))
    assert (result.left, result.ran) == ({}, 5)


@pytest.mark.parametrize(
    ("word", "limit"),
    [("exit 3", None), pytest.param("hang", 1.0, marks=pytest.mark.slow), ("unready", None), ("disk", None)],
)
def test_what_no_run_has_raised_holds_nothing_back(work: Scripted, word: str, limit: float | None) -> None:
    planned = expand(grid(methods=("local",), seeds=(0,), clients=(3, 4, 5, 6)))
    script = {f"local {clients} 0": [word] for clients in (3, 4, 5)}
    result = work.sweep(planned, script, cpu(1), Limits(timeout=limit))
    assert (result.counts, result.left) == ({"failed": 3, "done": 1}, {})


@pytest.mark.slow
def test_a_run_that_must_be_alone_on_its_node_waits_for_no_other_node(tmp_path: Path) -> None:
    work = Scripted(tmp_path)
    planned = expand(grid(methods=("local",), seeds=(0, 1)))
    script = {"local 3 0": ["done 6"], "local 3 1": ["oom", "done"]}
    work.sweep(planned, script, Slots(("cpu",) * 2, 1, elsewhere=True))
    assert {row["state"] for row in work.stored().values()} == {"done"}
    tries = work.attempts("local 3 1")
    assert [attempt["shrink"] for attempt in tries] == [1, 1], "alone first, then smaller"
    assert tries[1]["began"] < work.ended("local 3 0")


@contextmanager
def meanwhile(act: Callable[[], None]) -> Iterator[None]:
    """Something happens while a sweep runs in the main thread, which hears signals."""
    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_one_interrupt_finishes_and_stores_what_runs(work: Scripted) -> None:
    def act() -> None:
        wait_for(lambda: work.attempts("local 3 1"))
        interrupt()

    (work.folder / "attempts").mkdir()
    with meanwhile(act), pytest.raises(KeyboardInterrupt):
        work.sweep(SIX, {"*": ["done 2"]})
    assert any("running to be finished and stored; Ctrl-C again stops now" in line for line in work.lines)
    kept = work.stored().keys()
    assert kept == begun(work), "every run that had begun is stored"
    assert f"{6 - len(kept)} left: interrupted" in work.lines
    assert sweeps(work.url) == []
    assert not workers_below(os.getpid())
    assert work.sweep(SIX).ran == 6 - len(kept)
    assert [len(work.attempts(key)) for key in work.stored()] == [1] * 6, "what was stored is not run again"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_two_interrupts_or_a_request_to_terminate_stop_at_once(
    work: Scripted, number: signal.Signals
) -> None:
    def act() -> None:
        wait_for(lambda: work.attempts("local 3 1"))
        if number == signal.SIGINT:
            interrupt()
            wait_for(lambda: any("Ctrl-C again stops now" in line for line in work.lines))
        os.kill(os.getpid(), number)

    (work.folder / "attempts").mkdir()
    with meanwhile(act), pytest.raises(KeyboardInterrupt):
        work.sweep(SIX, {"*": ["hang"]})
    assert not workers_below(os.getpid())
    assert work.stored() == {}
    assert sweeps(work.url) == []
