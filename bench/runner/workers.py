"""Worker processes: one for each slot, so that the death of one touches one run."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, closing, contextmanager
from multiprocessing import get_context
from typing import Any, Protocol
from unittest.mock import patch

from bench.engine.result import RunResult
from bench.environment import describe
from bench.errors import RequestError, unknown
from bench.process import end_with_parent
from bench.runner.order import Execute, Order, attempt, outcome
from bench.runner.policy import PER_GPU

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Lost(RunResult):
    """The outcome of a run whose worker was killed or could not be reached: another try may end otherwise."""


class Pool(Protocol):
    """What makes the runs, one at a time in each slot: processes here, or machines of a cluster.

    ``devices`` has the device (``cpu``, ``cuda:0``) of each slot; a run has so many ``threads``.
    ``elsewhere``: a cluster chooses the machine of each run and sees that there is room.
    """

    devices: tuple[str, ...]
    threads: int
    elsewhere: bool

    def open(self, execute: Execute, timeout: float | None) -> None:
        """Get ready to execute orders with a function, each within so many seconds."""

    def start(self, slot: int, order: Order) -> Future[RunResult]:
        """Begin a run; nothing of the slot's last run may reach it."""

    def close(self) -> None:
        """End everything, also in the middle of a run, and also if it has ended before."""


def thread_variables(threads: int) -> AbstractContextManager[Any]:
    """Processes started meanwhile load their numerical libraries with so many threads."""
    return patch.dict(os.environ, dict.fromkeys(THREAD_VARIABLES, str(threads)))


def attempt_on_node(execute: Execute, order: Order, timeout: float | None) -> RunResult:
    """Execute an order on this machine of a cluster, in a process that dies, hangs and runs out of memory
    alone.
    """
    with thread_variables(order.threads), closing(LocalPool((order.device,), order.threads)) as pool:
        pool.open(execute, timeout)
        return pool.start(0, order).result()


# On this machine ----------------------------------------------------------------------------------


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def visible_gpus() -> list[str]:
    """Every visible GPU, by name."""
    import torch

    return [f"cuda:{index}" for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0)]


def choose(devices: str | None, jobs: int | None, threads: int | None, runs: int) -> LocalPool:
    """A pool on this machine for ``runs`` runs. Raises ``RequestError`` where there is no such device.

    Without ``devices``: every visible GPU, else the CPU. Without ``jobs``, the number of slots: one a core on
    the CPU, and on GPUs as many as there are cores, at most ``PER_GPU`` and at least one on each. Threads
    change the last bits of sums, so their number must not follow from how many runs there are.
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
    return LocalPool(tuple(names[index % len(names)] for index in range(count)), threads or 1)


class Worker:
    """A process that executes orders with a function, one at a time, in an executor of the standard library.
    It loads the function, and with it what runs need, before there is any order.
    """

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._executor = ProcessPoolExecutor(1, get_context("spawn"), prepare)
        with _interrupts_held():
            self._loaded = self._executor.submit(_load, execute)
        (self._process,) = (self._executor._processes or {}).values()

    def make(self, order: Order, timeout: float | None) -> RunResult:
        """Execute an order, within so many seconds from when everything is loaded."""
        self._loaded.result()
        return self._executor.submit(attempt, self._execute, order).result(timeout)

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


def prepare() -> None:
    """Set up a worker to end with the sweep, and not by an interrupt, which the parent alone handles."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


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


class LocalPool:
    """A worker for each slot, and a thread that waits for it."""

    elsewhere = False

    def __init__(self, devices: tuple[str, ...], threads: int) -> None:
        self.devices, self.threads = devices, threads
        self._waiting = ThreadPoolExecutor(len(devices), "worker")
        self._workers: list[Worker | None] = []
        self._is_closed = False

    def open(self, execute: Execute, timeout: float | None) -> None:
        """Start the workers, which load what runs need while the sweep prepares."""
        self._execute, self._timeout = execute, timeout
        self._workers = [Worker(execute) for _ in self.devices]

    def start(self, slot: int, order: Order) -> Future[RunResult]:
        """Begin a run in a slot."""
        return self._waiting.submit(self._make, slot, order)

    def _make(self, slot: int, order: Order) -> RunResult:
        """What comes of an order; it was made on this machine. The next run of a slot whose worker has ended
        starts a new one.
        """
        try:
            worker = self._workers[slot] = self._workers[slot] or Worker(self._execute)
            if self._is_closed:  # before it was among the workers, so that ``close`` has not seen it
                worker.end()
            result = worker.make(order, self._timeout)
            is_broken = result.state == "failed" and order.device != "cpu"  # some errors of a device stay
            if is_broken or result.state == "oom":
                self._end(slot)
        except TimeoutError:
            self._end(slot)
            result = RunResult("failed", f"timed out after {self._timeout:g} s")
            result.seconds["total"] = self._timeout or 0.0
        except BrokenProcessPool:
            code = self._end(slot, grace=1.0)
            result = RunResult("failed", f"the worker process died (exit code {code})")
            if code < 0 or self._is_closed:
                result = Lost("failed", f"the worker process died (killed by signal {-code})")
        except Exception as error:  # no process to be had, or one that cannot take the function or the order
            self._end(slot)
            result = outcome(error, order.device)
        result.environment = describe(order.device, self.threads)
        return result

    def _end(self, slot: int, grace: float = 0.0) -> int:
        """End a slot's worker; returns its exit code."""
        worker, self._workers[slot] = self._workers[slot], None
        return 0 if worker is None else worker.end(grace)

    def close(self) -> None:
        """End every process, also in the middle of a run."""
        self._is_closed = True
        for worker in filter(None, self._workers):
            worker.end()
        self._waiting.shutdown(cancel_futures=True)


class OwnProcess(LocalPool):
    """Makes runs in this process, one after the other: of methods that no other process can import."""

    def open(self, execute: Execute, timeout: float | None) -> None:
        """Take what is to be executed."""
        self._execute = execute

    def start(self, slot: int, order: Order) -> Future[RunResult]:
        """Make a run, to its end."""
        future: Future[RunResult] = Future()
        result = attempt(self._execute, order)
        result.environment = describe(order.device, self.threads)
        future.set_result(result)
        return future
