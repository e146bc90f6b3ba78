"""Sweeps in worker processes: how runs end, what is tried again, what is redone, and what stops a sweep."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_execute import told
from fake_runs import Scripted, grid, here, no_citeseer
from processes import wait_for, workers_below
from sqlalchemy import update
from stored_runs import FakeFederation, done, save

from bench.engine.states import FAILURES
from bench.errors import NoDataError, RequestError
from bench.grids import Planned, expand
from bench.runner import fingerprint
from bench.runner.claims import Claims, status
from bench.runner.plan import Step
from bench.runner.run import Outcome
from bench.runner.workers import LocalPool
from bench.store import Store, open_store
from bench.store.models import Run


@pytest.fixture
def work(tmp_path: Path) -> Scripted:
    (tmp_path / "attempts").mkdir()
    return Scripted(tmp_path)


def local_runs(*seeds: int, method: str = "local", clients: tuple[int, ...] = (3,)) -> list[Planned]:
    return expand(grid(methods=(method,), seeds=seeds, clients=clients))


def begun(work: Scripted) -> set[str]:
    return {path.name for path in (work.folder / "attempts").iterdir()}


# How a run ends -------------------------------------------------------------------------------------

ENDS = [
    # tries, state, blocks of each try, reason, whether what was saved of the run stays
    (["done"], "done", [1], "", False),
    (["raise"], "failed", [1], "ValueError: seed 0", True),
    (["leave"], "failed", [1], "SystemExit: left", True),
    (["disk"], "failed", [1], "OSError: [Errno 5] Input/output error", True),
    (["exit 3"], "failed", [1], "the worker process died (exit code 3)", True),
    (["hang"], "failed", [1], "timed out after 2 s", True),
    (["signal 9", "oom", "oom", "done"], "done", [1, 1, 2, 4], "", False),
    (["oom"], "oom", [1, 1, 2, 4], "MemoryError: no more; tried 4 times, at last in blocks of 1/4", True),
]


def test_every_way_in_which_a_run_can_end(work: Scripted) -> None:
    """One sweep, each run of a kind of its own; what has not ended well is done by the next."""
    clients = range(3, 3 + len(ENDS))
    # Three failures before the first success would hold a method back, and either worker may be the slower.
    methods = ["fedavg" if tries in (["raise"], ["leave"]) else "local" for tries, *_ in ENDS]
    planned = [
        local_runs(0, method=method, clients=(k,))[0] for method, k in zip(methods, clients, strict=True)
    ]
    keys = [f"{method} {k} 0" for method, k in zip(methods, clients, strict=True)]
    saved = {key: checkpoint(work.folder, run.spec.hash) for key, run in zip(keys, planned, strict=True)}
    states = [state for _, state, *_ in ENDS]
    script = {key: tries for key, (tries, *_) in zip(keys, ENDS, strict=True)}
    outcome = work.sweep(planned, script, timeout=2)
    assert outcome.counts == {state: states.count(state) for state in states}
    assert outcome.failed == sum(states.count(state) for state in FAILURES)
    for key, (tries, state, shrinks, reason, stays) in zip(keys, ENDS, strict=True):
        row, attempts = work.stored()[key], work.attempts(key)
        assert (row["state"], row["reason"]) == (state, reason), tries
        assert [attempt["shrink"] for attempt in attempts] == shrinks, tries
        if shrinks != [1]:
            assert len({attempt["pid"] for attempt in attempts}) == len(shrinks), "a fresh process each time"
        assert saved[key].exists() == stays, tries
    assert "raise ValueError" in work.stored()[keys[1]]["traceback"]
    assert work.stored()[keys[5]]["seconds_total"] == 2, "it took as long as it may"
    assert work.sweep(planned, pool=here()).counts == {"done": len(ENDS)}


def checkpoint(home: Path, spec_hash: str) -> Path:
    """What was saved of a run."""
    file = home / "checkpoints" / f"{spec_hash}.pt"
    file.parent.mkdir(exist_ok=True)
    file.write_text("rounds of days")
    return file


def overlaps(work: Scripted, attempt: dict[str, float], ended: float, other: str) -> bool:
    return work.attempts(other)[0]["began"] < ended and work.ended(other) > attempt["began"]


def test_a_kind_of_run_that_ran_out_of_memory_is_alone_from_then_on(work: Scripted) -> None:
    last_until_told = "done 1"
    script = {"local 3 0": ["oom", "oom", "done 0.2"], "local 3 1": [last_until_told], "*": ["done 0.2"]}
    assert work.sweep(local_runs(0, 1, 2, 3), script).counts == {"done": 4}
    tries = work.attempts("local 3 0")
    for other in ("local 3 1", "local 3 2", "local 3 3"):
        assert not overlaps(work, tries[1], work.ended("local 3 0"), other), "the second and third try"
    for run, other in (("local 3 2", "local 3 1"), ("local 3 3", "local 3 2")):
        assert not overlaps(work, work.attempts(run)[0], work.ended(run), other)


@pytest.mark.slow
def test_a_run_that_fails_on_a_gpu_leaves_its_process_to_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some errors every later call of the process to its device fails."""
    monkeypatch.setattr("bench.runner.workers.describe", lambda device, threads: {})  # a mere name here
    for device, processes in (("cuda:0", 2), ("cpu", 1)):
        (tmp_path / device).mkdir()
        work = Scripted(tmp_path / device)
        result = work.sweep(local_runs(0, 1, 2), {"local 3 0": ["raise"]}, LocalPool((device,), 1))
        assert result.counts == {"done": 2, "failed": 1}
        assert len({work.attempts(f"local 3 {seed}")[0]["pid"] for seed in range(3)}) == processes


# What is run and stored -----------------------------------------------------------------------------


def test_missing_data_is_a_state_unless_there_is_nothing_else(work: Scripted) -> None:
    with pytest.raises(NoDataError, match=r"citeseer\.x"):
        work.sweep(expand(grid(datasets=("citeseer",))), pool=here(), build=no_citeseer)
    assert not (work.folder / "bench.db").exists()
    both = expand(grid(datasets=("cora", "citeseer")))
    assert work.sweep(both, pool=here(), build=no_citeseer) == Outcome({"done": 4, "no_data": 4}, 4, 0, {})
    # Once the data are there, they are run.
    assert work.sweep(both, pool=here()) == Outcome({"done": 8}, 4, 0, {})


def test_workers_are_told_device_and_threads_and_say_which_code_they_have(
    work: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files may be edited while a sweep lasts; a new worker has what is there then. On another machine only
    whole paths help.
    """
    monkeypatch.chdir(work.folder)
    work.folder = Path()
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    assert work.sweep(local_runs(0), pool=LocalPool(("cpu",), 2), execute=told).ran == 1
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ
    row = work.stored()["local 3 0"]
    assert (row["device"], row["peak_memory"]) == ("cpu", 2), "the threads passed to the run"
    assert row["bytes_up"] == 2, "OMP_NUM_THREADS of the worker"
    assert row["bytes_down"] == 1, "an interrupt must reach the parent alone"
    assert (row["method_numerics"], row["engine_numerics"], row["source_hash"]) == (7, 8, "edited")


def test_a_sweep_does_not_mix_clients(work: Scripted) -> None:
    """A request makes others after a federation was imported, or once a data set has changed."""

    def other_federation(*key: Any, roots: tuple[Path, ...]) -> Any:
        return FakeFederation(hash="another")

    assert work.sweep(local_runs(0), pool=here()).counts == {"done": 1}
    for planned in (local_runs(0, 1), local_runs(2), local_runs(0, method="fedavg")):
        words = r"^local .* seed 0 is stored, made on other clients \(p\) .*now \(another\); use another"
        with pytest.raises(RequestError, match=words):
            work.sweep(planned, pool=here(), build=other_federation)
    assert work.stored().keys() == {"local 3 0"}, "nothing is written"
    assert work.sweep(local_runs(0, clients=(4,)), pool=here(), build=other_federation).counts == {"done": 1}
    with open_store(work.url, create=True) as store, store.transaction() as session:
        session.execute(update(Run).values(source_hash="earlier"))
    again = work.sweep(local_runs(0), pool=here(), rerun="changed", build=other_federation)
    assert again.counts == {"done": 1}, "what is made again may be on others"


# Other sweeps, and what follows ---------------------------------------------------------------------


class Following:
    """Asks for one more run once a run has ended, wherever that was made."""

    def __init__(self, first: Planned, second: Planned) -> None:
        self._first = first.spec.hash
        self._steps = [Step(second, "missing", to_run=True)]

    def __call__(self, store: Store, states: Mapping[str, str]) -> list[Step]:
        steps, self._steps = (self._steps, []) if self._first in states else ([], self._steps)
        return steps


def test_what_follows_a_run_that_another_sweep_was_at_is_run(
    work: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing that was saved of it stays."""
    monkeypatch.setattr("bench.runner.run.CLAIM_PAUSE", 0.1)
    first, second = local_runs(0, 1)
    saved = checkpoint(work.folder, first.spec.hash)
    with open_store(work.url, create=True) as store:
        other = Claims(store)  # of this very process, which is alive
        assert other.take(first.spec.hash)

        def end() -> None:
            time.sleep(0.5)  # until this sweep has seen the claim
            save(store, first.spec, done(3, partition_hash="p", code=fingerprint.code("local")))
            other.__exit__()

        plan = work.plan([first])
        with meanwhile(end):
            outcome = work.sweep([], pool=here(), plan=plan, follow_up=Following(first, second))
    assert (outcome.counts, outcome.ran) == ({"done": 1}, 1), "what follows was not planned"
    assert begun(work) == {"local 3 1"}
    assert not saved.exists()


# What stops a sweep ---------------------------------------------------------------------------------

SIX = local_runs(*range(6))


def test_a_method_whose_first_three_runs_fail_is_held_back(work: Scripted) -> None:
    planned = expand(grid(methods=("local", "fedavg"), seeds=(0,), clients=(3, 4, 5, 6, 7)))
    # fedavg succeeds once, which holds nothing back.
    script = {f"{run.method} {run.spec.clients} 0": ["raise"] for run in planned}
    result = work.sweep(planned, {**script, "fedavg 3 0": ["done"]}, here())
    assert result.counts == {"failed": 7, "done": 1, "missing": 2}
    ((reason, count),) = result.left.items()
    assert count == 2
    assert reason.startswith("local is held back: its first 3 runs failed, the last with ValueError")
    assert any(line.startswith("2 left: local is held back") for line in work.lines)
    assert work.sweep(planned, pool=here()).counts == {"done": 10}, "mended"


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
    """Until then others see what the sweep is at."""
    seen: list[str] = []

    def act() -> None:
        wait_for(lambda: work.attempts("local 3 1"))
        seen.extend(status(work.url).splitlines())
        interrupt()

    with meanwhile(act), pytest.raises(KeyboardInterrupt):
        work.sweep(SIX, {"*": ["done 1"]})
    assert seen[0].startswith(f"sweep {os.getpid()} on")
    assert seen[1].startswith("  cpu: local cora non-overlapping 3 seed ")
    assert any("running to be finished and stored; Ctrl-C again stops now" in line for line in work.lines)
    kept = work.stored().keys()
    assert kept == begun(work), "every run that had begun is stored"
    assert status(work.url) == "no sweep is running"
    assert not workers_below(os.getpid())
    assert work.sweep(SIX, pool=here()).ran == 6 - len(kept)
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

    with meanwhile(act), pytest.raises(KeyboardInterrupt):
        work.sweep(SIX, {"*": ["hang"]})
    assert not workers_below(os.getpid())
    assert work.stored() == {}
    assert status(work.url) == "no sweep is running"
