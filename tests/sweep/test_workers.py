"""Worker processes: how their ends become outcomes, and what is left of them."""

import errno
import gc
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fake_execute import WhileTakenUp, faulty, frozen, instant
from fake_runs import (
    cpu,
    grid,
)
from processes import wait_for, workers_below
from scripted import Scripted

from bench.engine.result import RunResult
from bench.environment import describe
from bench.errors import RequestError
from bench.grids import expand
from bench.resolve import resolve
from bench.spec import RunSpec
from bench.sweep import fingerprint, workers
from bench.sweep.order import Execute, Order
from bench.sweep.workers import LocalPool, Lost, Worker, choose, cores

PLANNED = expand(grid(methods=("local",), seeds=(0, 1, 2)))


def order(*roots: Path) -> Order:
    spec = PLANNED[0].spec
    return Order(spec, tuple(map(str, roots)), "cpu", 1)


@contextmanager
def one(execute: Execute, timeout: float | None = None, **options: Any) -> Iterator[LocalPool]:
    workers = LocalPool(1, execute, timeout, **options)
    try:
        yield workers
    finally:
        workers.stop()
    assert not workers_below(os.getpid())


def test_a_run_whose_worker_dies_whenever_it_takes_it_up_fails_and_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("9 11 9 9")
    work = Scripted(tmp_path)
    outcome = work.sweep(PLANNED, slots=cpu(1), execute=WhileTakenUp(tmp_path / "script"))
    assert outcome.counts == {"failed": 1, "done": 2}
    assert sum("killed by signal 11" in line for line in work.lines) == 1
    assert not workers_below(os.getpid())


def test_what_is_silent_is_killed_and_lost(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(str(int(signal.SIGSTOP)))
    with one(WhileTakenUp(tmp_path / "script"), silence=0.5) as workers:
        assert isinstance(workers.start(0, order()).result(timeout=60), Lost)
        assert not workers_below(os.getpid())


def test_a_worker_that_dies_between_two_runs_loses_none(tmp_path: Path) -> None:
    with one(instant) as workers:
        for _ in range(2):
            result = workers.start(0, order()).result()
            if isinstance(result, Lost):  # its death was seen when the next run was handed over
                result = workers.start(0, order()).result()
            assert isinstance(result, RunResult)
            assert result.state == "done"
            (process,) = workers_below(os.getpid())
            process.kill()


def test_a_process_that_cannot_be_started_loses_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(execute: Execute) -> Worker:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    with monkeypatch.context() as patch:
        patch.setattr(workers, "Worker", none)
        pool = LocalPool(1, instant, None)
        assert isinstance(pool.start(0, order()).result(), Lost)
    assert isinstance(pool.start(0, order()).result(), RunResult)
    pool.stop()


def test_a_function_that_cannot_be_handed_over_fails_every_run() -> None:
    with one(lambda order: instant(order)) as workers:
        for _ in range(2):
            result = workers.start(0, order()).result()
            assert isinstance(result, RunResult)
            assert result.state == "failed"
            assert "<lambda>" in result.reason
        assert not workers_below(os.getpid())


def test_workers_load_before_there_is_a_run(tmp_path: Path) -> None:
    with one(WhileTakenUp(tmp_path / "script")) as workers:
        wait_for((tmp_path / "script").exists)
        assert isinstance(workers.start(0, order()).result(), RunResult)


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="this system holds no signals back")
def test_an_interrupt_while_a_process_still_imports_does_not_end_it(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with one(instant) as pool:
        for _ in range(20):
            for child in workers_below(os.getpid()):
                child.send_signal(signal.SIGINT)
            time.sleep(0.05)
        assert isinstance(pool.start(0, order()).result(60.0), RunResult)
    assert "KeyboardInterrupt" not in capfd.readouterr().err


def majority() -> RunSpec:
    return resolve("cora", "non-overlapping", 3, "majority", 0)


def test_garbage_collection_passes_by_what_a_worker_has_imported_and_by_nobody_elses() -> None:
    wanted = Order(majority(), (), "cpu", 1)
    before = gc.get_freeze_count()
    assert frozen(wanted).bytes_up <= before
    with one(frozen, 60.0) as workers:
        result = workers.start(0, wanted).result()
        assert isinstance(result, RunResult)
        assert result.bytes_up > 10_000


def test_a_slot_a_core_and_threads_that_do_not_follow_from_the_number_of_runs() -> None:
    assert len(choose("cpu", None, None, runs=1000).devices) == cores()
    assert choose("cpu", None, None, runs=1).devices == ("cpu",)
    assert {choose("cpu", jobs, None, runs).threads for jobs in (None, 1, 9) for runs in (1, 1000)} == {1}
    assert choose("cpu", 1, 2, runs=4).threads == 2
    for device in ("gpu", "cuda:77"):
        with pytest.raises(RequestError, match="--device"):
            choose(device, None, None, runs=4)


def test_slots_on_gpus() -> None:
    gpus = ["cuda:0", "cuda:1"]
    choose = partial(workers.choose, visible=lambda: gpus, cores=lambda: 6)
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
    with pytest.raises(RequestError, match="no GPU is visible, there is cpu"):
        choose("cuda", None, None, runs=9)


# On a node of a cluster -----------------------------------------------------------------------------


def on_node(execute: Execute, seed: int) -> RunResult | Lost:
    spec = expand(grid(methods=("local",), seeds=(seed,)))[0].spec
    return workers.attempt_on_node(execute, workers.order_for_node(Order(spec, (), "cpu", 1)), 60, False)


def test_a_run_comes_back_with_the_machine_that_made_it() -> None:
    result = on_node(instant, 0)
    assert isinstance(result, RunResult)
    assert (result.state, result.environment) == ("done", describe("cpu", 1))


def test_on_a_node_a_kill_is_lost_and_an_exit_has_failed() -> None:
    assert on_node(faulty, 2) == Lost("the worker process died (killed by signal 9)")
    ended = on_node(faulty, 1)
    assert isinstance(ended, RunResult)
    assert (ended.state, ended.reason) == ("failed", "the worker process died (exit code 3)")


def test_a_node_is_told_folders_and_sources_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    order = workers.order_for_node(Order(PLANNED[0].spec, ("raw", "/data"), "cpu", 1))
    assert order.roots == (str(tmp_path / "raw"), "/data")
    assert order.source == fingerprint.code("local").source
