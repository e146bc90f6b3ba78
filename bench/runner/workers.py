"""Orders to make runs, and worker processes: one for each slot, so that the death of one touches one run."""

from __future__ import annotations

import os
import platform
import re
import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.engine.result import RunResult
from bench.errors import NoDataError, NotApplicableError, unknown
from bench.spec import RunSpec

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

PER_GPU = 4
"""Runs that share a GPU unless somebody says otherwise."""

OUT_OF_MEMORY = (  # torch raises plain errors for these
    "DefaultCPUAllocator: can't allocate memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)


PACKAGES = (  # whose versions are kept with a run
    "alembic",
    "numpy",
    "pandas",
    "pydantic",
    "pymetis",
    "scipy",
    "sqlalchemy",
    "torch",
    "torch-geometric",
)


@dataclass(frozen=True)
class Order:
    """What a worker is to run: a spec, with folders of raw files, on a device, with so many threads.

    shrink           how many times smaller than usual the blocks of clients are
    checkpoint       the file in which the run is saved every so many ``minutes``, if it is
    federation_hash  of the federation that the run is to be made on, where that is known
    federation       the file that holds the federation, if there is one
    """

    spec: RunSpec
    roots: tuple[str, ...]
    device: str
    threads: int
    shrink: int = 1
    checkpoint: Path | None = None
    minutes: float = 0.0
    federation_hash: str = ""
    federation: Path | None = None


Execute = Callable[[Order], RunResult]


def attempt(execute: Execute, order: Order) -> RunResult:
    """Execute an order and return its outcome; no exception leaves."""
    try:
        return execute(order)
    except (Exception, SystemExit) as error:
        return outcome(error)
    finally:
        if order.device.startswith("cuda"):  # other runs share the GPU's memory
            import torch

            torch.cuda.empty_cache()


def outcome(error: BaseException) -> RunResult:
    """The state that an exception, the one being handled, stands for."""
    if isinstance(error, NoDataError):
        return RunResult("no_data", str(error))
    if isinstance(error, NotApplicableError):
        return RunResult("not_applicable", str(error))
    is_memory = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    is_memory = is_memory or any(text in str(error) for text in OUT_OF_MEMORY)
    lines = str(error).strip().splitlines()
    reason = ": ".join((type(error).__name__, *lines[:1]))
    return RunResult("oom" if is_memory else "failed", reason, traceback.format_exc())


# Pools of workers -------------------------------------------------------------------------------


class Lost(RunResult):
    """What came of a run whose worker was killed or could not be reached: another try may end otherwise."""


class Pool:
    """What makes the runs, one at a time in each slot: processes here, or machines of a cluster.

    ``devices`` has the device (``cpu``, ``cuda:0``) of each slot; a run has so many ``threads``.
    ``elsewhere``: a cluster chooses the machine of each run and sees that there is room.
    """

    elsewhere = False

    def __init__(self, devices: tuple[str, ...], threads: int) -> None:
        self.devices, self.threads = devices, threads

    def open(self, execute: Execute, timeout: float | None) -> None:
        """Get ready to execute orders with a function, each within so many seconds."""
        self._execute, self._timeout = execute, timeout

    def start(self, slot: int, order: Order) -> Future[RunResult]:
        """Begin a run; nothing of the slot's last run may reach it."""
        raise NotImplementedError

    def close(self) -> None:
        """End everything, also in the middle of a run, and also if it has ended before."""


def thread_variables(threads: int) -> AbstractContextManager[Any]:
    """Processes started meanwhile load their numerical libraries with so many threads."""
    return patch.dict(os.environ, dict.fromkeys(THREAD_VARIABLES, str(threads)))


def attempt_on_node(execute: Execute, order: Order, timeout: float | None) -> RunResult:
    """Execute an order on this machine of a cluster, in a process of its own."""
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
    here = gpus or ["cpu"]
    is_all = devices is None or (devices == "cuda" and gpus)
    names = here if is_all else str(devices).split(",")
    for name in names:
        if name not in here:
            raise unknown("device for --devices", name, ["cpu", *gpus])
    default = cores() if names == ["cpu"] else min(PER_GPU * len(names), max(cores(), len(names)))
    count = max(1, min(jobs or default, runs))
    return LocalPool(tuple(names[index % len(names)] for index in range(count)), threads or 1)


def processor() -> str:
    """Model name of the processor, as the operating system gives it."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: *(.+)$", info.read_text(), re.MULTILINE) if info.exists() else []
    return names[0].strip() if names else platform.processor() or platform.machine()


def accelerator(device: str) -> str:
    """Name of the accelerator behind a device such as ``cuda:0``; empty for ``cpu``."""
    if device == "cpu":
        return ""
    import torch

    return str(torch.cuda.get_device_name(device))


@cache
def describe(device: str, threads: int) -> Mapping[str, Any]:
    """Versions, processor, memory in bytes, device and threads of a run on this machine; asked once."""
    import psutil

    return {
        "python": platform.python_version(),
        "packages": {package: version(package) for package in PACKAGES},
        "system": platform.system(),
        "release": ".".join(platform.release().split(".")[:2]),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()).strip(),
        "processor": processor(),
        "cores": psutil.cpu_count(logical=False) or psutil.cpu_count(),
        "logical_cores": psutil.cpu_count(),
        "memory": psutil.virtual_memory().total,
        "accelerator": accelerator(device),
        "threads": threads,
    }


class Worker:
    """A process that executes orders with a function, one at a time, and loads it before there are any."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._executor = ProcessPoolExecutor(1, get_context("spawn"), prepare)
        can_hold = hasattr(signal, "pthread_sigmask")
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if can_hold else set()
        try:  # a process that starts now hears no interrupt
            self._loaded = self._executor.submit(callable, execute)  # to unpickle it loads what runs need
        finally:
            if can_hold:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
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


def prepare() -> None:
    """Set up a worker: it ends with the sweep, ignores interrupts, and prints on standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)
    end_with_parent()


def end_with_parent() -> None:
    """End this process, which another Python process has started, when that one ends or is killed."""
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent.sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


class LocalPool(Pool):
    """A worker for each slot, and a thread that waits for it."""

    def __init__(self, devices: tuple[str, ...], threads: int) -> None:
        super().__init__(devices, threads)
        self._waiting = ThreadPoolExecutor(len(devices), "worker")
        self._workers: list[Worker | None] = []
        self._is_closed = False

    def open(self, execute: Execute, timeout: float | None) -> None:
        """Start the workers, which load what runs need while the sweep prepares."""
        super().open(execute, timeout)
        self._workers = [Worker(execute) for _ in self.devices]

    def start(self, slot: int, order: Order) -> Future[RunResult]:
        """Begin a run in a slot."""
        return self._waiting.submit(self._make, slot, order)

    def _make(self, slot: int, order: Order) -> RunResult:
        """What comes of an order. The next run of a slot whose worker has ended starts a new one."""
        try:
            worker = self._workers[slot] = self._workers[slot] or Worker(self._execute)
            if self._is_closed:  # before it was among the workers, so that ``close`` has not seen it
                worker.end()
            result = worker.make(order, self._timeout)
            if result.state == "oom" or (result.state == "failed" and order.device != "cpu"):
                self._end(slot)  # some errors of a device stay
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
            result = outcome(error)
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


class OwnProcess(Pool):
    """Makes runs in this process, one after the other: of methods that no other process can import."""

    def start(self, slot: int, order: Order) -> Future[RunResult]:
        """Make a run, to its end."""
        future: Future[RunResult] = Future()
        result = attempt(self._execute, order)
        result.environment = describe(order.device, self.threads)
        future.set_result(result)
        return future
