"""Worker processes: how they end, what is left of them, and what may be asked of them."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from fake_execute import faulty, instant
from fake_runs import grid
from processes import workers_below

from bench.errors import RequestError
from bench.grids import expand
from bench.runner import Placement, workers
from bench.runner.run import opened_pool
from bench.runner.workers import Execute, LocalPool, Lost, Order, choose, cores, describe

PLANNED = expand(grid(methods=("local",), seeds=(0, 1, 2)))
ORDER = Order(PLANNED[0].spec, (), "cpu", 1)


@contextmanager
def one(execute: Execute, timeout: float | None = None) -> Iterator[LocalPool]:
    pool = LocalPool(("cpu",), 1)
    pool.open(execute, timeout)
    try:
        yield pool
    finally:
        pool.close()
    assert not workers_below(os.getpid())


def test_a_worker_that_dies_between_two_runs_loses_none() -> None:
    with one(instant) as pool:
        for _ in range(2):
            result = pool.start(0, ORDER).result()
            if isinstance(result, Lost):  # its death was seen when the next run was handed over
                result = pool.start(0, ORDER).result()
            assert result.state == "done"
            (process,) = workers_below(os.getpid())
            process.kill()


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="this system holds no signals back")
def test_an_interrupt_while_a_process_still_imports_does_not_end_it(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with one(instant) as pool:
        for _ in range(10):
            time.sleep(0.05)
            (child,) = workers_below(os.getpid())
            child.send_signal(signal.SIGINT)
        assert pool.start(0, ORDER).result(60.0).state == "done"
    assert "KeyboardInterrupt" not in capfd.readouterr().err


def test_a_slot_a_core_and_threads_that_do_not_follow_from_the_number_of_runs() -> None:
    assert len(choose("cpu", None, None, runs=1000).devices) == cores()
    assert choose("cpu", None, None, runs=1).devices == ("cpu",)
    assert {choose("cpu", jobs, None, runs).threads for jobs in (None, 1, 9) for runs in (1, 1000)} == {1}
    assert choose("cpu", 1, 2, runs=4).threads == 2
    for device in ("gpu", "cuda:77"):
        with pytest.raises(RequestError, match="--device"):
            choose(device, None, None, runs=4)


def test_slots_on_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = ["cuda:0", "cuda:1"]
    monkeypatch.setattr(workers, "visible_gpus", lambda: gpus)
    monkeypatch.setattr(workers, "cores", lambda: 6)
    assert choose(None, None, None, runs=99).devices == ("cuda:0", "cuda:1") * 3, "as many as cores"
    assert choose("cuda:1", None, None, runs=99).devices == ("cuda:1",) * 4, "at most four each"
    assert choose(None, 3, None, runs=9).devices == ("cuda:0", "cuda:1", "cuda:0")
    assert choose("cuda:1,cuda:0", 2, None, runs=9).devices == ("cuda:1", "cuda:0")
    assert choose("cuda", None, None, runs=1).devices == ("cuda:0",)
    assert set(choose("cpu", None, None, runs=9).devices) == {"cpu"}
    for wrong in ("cpu,cuda:0", "cuda:2"):
        with pytest.raises(RequestError, match="--devices"):
            choose(wrong, None, None, runs=9)
    gpus.clear()
    assert set(choose(None, None, None, runs=9).devices) == {"cpu"}
    with pytest.raises(RequestError, match="unknown device for --devices 'cuda': there is cpu"):
        choose("cuda", None, None, runs=9)


# On a node of a cluster -----------------------------------------------------------------------------


def test_on_a_node_a_run_ends_as_here_and_says_which_machine_made_it() -> None:
    ends = []
    for execute, seed in ((instant, 0), (faulty, 1), (faulty, 2)):
        order = Order(PLANNED[seed].spec, (), "cpu", 1)
        ends.append(workers.attempt_on_node(execute, order, 60))
    assert [(end.state, end.reason, isinstance(end, Lost)) for end in ends] == [
        ("done", "", False),
        ("failed", "the worker process died (exit code 3)", False),
        ("failed", "the worker process died (killed by signal 9)", True),
    ]
    assert all(end.environment == describe("cpu", 1) for end in ends)


@pytest.mark.parametrize(("name", "package"), [("ray", "ray"), ("slurm", "submitit")])
def test_missing_extras_are_refused(
    name: Literal["ray", "slurm"], package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delitem(sys.modules, f"bench.runner.{name}_workers", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(RequestError, match=rf"--backend .*pip install 'pfl-bench\[{name}\]'"):
        opened_pool(Placement(backend=name), 1, tmp_path)
