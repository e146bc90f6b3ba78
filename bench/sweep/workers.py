"""Worker processes: one for each slot, so that the death of one touches one run."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol
from unittest.mock import patch

from bench.engine.result import RunResult
from bench.environment import describe
from bench.errors import RequestError, unknown
from bench.process import end_with_parent
from bench.sweep.order import Execute, Order, attempt, outcome
from bench.sweep.policy import PER_GPU, Slots

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

KILLED = -getattr(signal, "SIGKILL", 9)
"""Exit code of a process that the system has killed; no process ends so where there is no such signal."""


class Lost(RunResult):
    """The outcome of a run whose worker was killed or could not be reached: another try may end otherwise."""


class Pool(Protocol):
    """What makes the runs, one at a time in each slot: processes here, or machines of a cluster."""

    def start(self, slot: int, order: Order) -> Future[RunResult]:
        """Begin a run; nothing of the slot's last run may reach it."""

    def stop(self) -> None:
        """End everything, also in the middle of a run."""


MakePool = Callable[[int, Execute, float | None], Pool]
"""A pool of so many slots that executes orders with a function, each within so many seconds."""


# Slots of this machine ----------------------------------------------------------------------------


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def visible_gpus() -> list[str]:
    """Every visible GPU, by name."""
    import torch

    return [f"cuda:{index}" for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0)]


def choose(devices: str | None, jobs: int | None, threads: int | None, runs: int) -> Slots:
    """Slots for ``runs`` runs.

    Without ``devices``: every visible GPU, else the CPU. ``jobs`` is the number of slots over all
    devices; without it, one a core on the CPU, and on GPUs as many as there are cores, at most
    ``PER_GPU`` and at least one on each. A run has one thread unless ``threads`` says otherwise: the
    number of threads changes the last bits of sums, so it must not follow from how many runs there
    are.

    Raises:
        RequestError: no such device, or devices of two sorts.
    """
    gpus = [] if devices == "cpu" else visible_gpus()
    if devices == "cuda" and not gpus:
        raise RequestError("--devices cuda: no GPU is visible, there is cpu alone")
    here = gpus or ["cpu"]
    names = here if devices in (None, "cuda") else str(devices).split(",")
    for name in names:
        if name not in here:
            raise RequestError(f"--devices: {unknown('device', name, ['cpu', *gpus])}")
    default = cores() if names == ["cpu"] else min(PER_GPU * len(names), max(cores(), len(names)))
    count = max(1, min(jobs or default, runs))
    return Slots(tuple(names[index % len(names)] for index in range(count)), threads or 1)


# Processes ----------------------------------------------------------------------------------------


class Worker:
    """A process that executes orders with a function, one at a time, in an executor of the standard library.

    It loads the function, and with it what runs need, before there is any order: then it is ``ready``.
    """

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._executor = ProcessPoolExecutor(1, get_context("spawn"), prepare)
        with _interrupts_held():
            self.ready = self._executor.submit(_load, execute)
        (self._process,) = (self._executor._processes or {}).values()

    def submit(self, order: Order) -> Future[RunResult]:
        """Begin an order."""
        return self._executor.submit(attempt, self._execute, order)

    def end(self, grace: float = 0.0) -> int:
        """Kill the process, unless it ends by itself within some seconds; returns its exit code."""
        self._process.join(grace)
        self._process.kill()
        self._executor.shutdown(wait=False, cancel_futures=True)
        end = time.monotonic() + 5.0
        while self._process.exitcode is None and time.monotonic() < end:
            time.sleep(0.01)  # the executor has asked first, and is about to be told
        return self._process.exitcode or 0


def _load(execute: Execute) -> None:
    """Do nothing: to unpickle the function has loaded what runs need."""


class LocalPool:
    """A worker for each slot, and a thread that waits for it."""

    def __init__(self, slots: int, execute: Execute, timeout: float | None) -> None:
        # They load what runs need while the sweep prepares.
        self._workers: list[Worker | None] = [Worker(execute) for _ in range(slots)]
        self._threads = ThreadPoolExecutor(slots, "worker")
        self._execute, self._timeout = execute, timeout
        self._is_stopped = False

    def start(self, slot: int, order: Order) -> Future[RunResult]:
        """Begin a run in a slot; nothing of the slot's last run may reach it."""
        return self._threads.submit(self._make, slot, order)

    def _make(self, slot: int, order: Order) -> RunResult:
        kills = kills_for_memory()
        try:
            worker = self._workers[slot] = self._workers[slot] or Worker(self._execute)
            if self._is_stopped:  # before it was among the workers, so that ``stop`` has not seen it
                worker.end()
                return Lost("failed", "the sweep stopped")
            worker.ready.result()
            result = worker.submit(order).result(self._timeout)
        except TimeoutError:
            self._end(slot)
            seconds = self._timeout or 0.0
            reason = f"timed out after {seconds:g} s"
            return RunResult("failed", reason, seconds={"total": seconds}, device=order.device)
        except BrokenProcessPool:
            code = self._end(slot, grace=1.0)
            if code == KILLED and kills_for_memory() > kills:
                reason = "the system killed the worker for want of memory"
                return RunResult("oom", reason, device=order.device)
            if code < 0 or self._is_stopped:
                return Lost("failed", f"the worker process died (killed by signal {-code})")
            reason = f"the worker process died (exit code {code})"
            return RunResult("failed", reason, device=order.device)
        except Exception as error:  # no process to be had, or one that cannot take the function or the order
            self._end(slot)
            return outcome(error, order.device)
        is_broken = result.state == "failed" and order.device != "cpu"  # some errors of a device stay
        if is_broken or result.state == "oom":
            self._end(slot)
        return result

    def _end(self, slot: int, grace: float = 0.0) -> int:
        """End a slot's worker, whose next run starts a new one; returns its exit code."""
        worker, self._workers[slot] = self._workers[slot], None
        return 0 if worker is None else worker.end(grace)

    def stop(self) -> None:
        """End every process, also in the middle of a run."""
        self._is_stopped = True
        for worker in filter(None, self._workers):
            worker.end()
        self._threads.shutdown(cancel_futures=True)


class OwnProcess:
    """Makes runs in this process, one after the other: of methods that no other process can import."""

    def __init__(self, slots: int, execute: Execute, timeout: float | None) -> None:
        self._execute = execute

    def start(self, slot: int, order: Order) -> Future[RunResult]:
        """Make a run, to its end."""
        future: Future[RunResult] = Future()
        future.set_result(attempt(self._execute, order))
        return future

    def stop(self) -> None:
        """Do nothing: no run goes on."""


def kills_for_memory() -> int:
    """How many processes the system has killed since it started because memory ran out; 0 where it
    does not say.
    """
    count = 0
    for source in ("/proc/vmstat", "/sys/fs/cgroup/memory.events"):
        with suppress(OSError):
            lines = Path(source).read_text().splitlines()
            count += sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return count


# On a node of a cluster ---------------------------------------------------------------------------


_shared_pool = cache(LocalPool)


def attempt_on_node(execute: Execute, order: Order, timeout: float | None, keep: bool) -> RunResult:
    """Execute an order on this machine as a sweep on it would, within so many seconds.

    The run's process dies, hangs and runs out of memory alone. To ``keep`` it is to give it the
    next order, too, which then finds libraries and federation loaded.
    """
    with thread_variables(order.threads):
        pool = (_shared_pool if keep else LocalPool)(1, execute, timeout)
        try:
            result = pool.start(0, order).result()
        finally:
            if not keep:
                pool.stop()
    result.environment = describe(order.device, order.threads)
    return result


# In a process -------------------------------------------------------------------------------------


def thread_variables(threads: int) -> AbstractContextManager[Any]:
    """Processes started meanwhile load their numerical libraries with so many threads."""
    return patch.dict(os.environ, dict.fromkeys(THREAD_VARIABLES, str(threads)))


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A process that is started meanwhile hears no interrupt."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def prepare() -> None:
    """Set up a worker to end with the sweep and by nothing else.

    An interrupt at the terminal reaches every process of the sweep; the parent alone handles it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
