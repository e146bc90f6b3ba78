"""Orders to make runs, and worker processes: one per slot, so that the death of a process ends one run."""

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
"""Runs that share a GPU by default."""

OUT_OF_MEMORY = (  # torch raises plain errors with these texts
    "DefaultCPUAllocator: can't allocate memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)

PACKAGES = (  # their versions are stored with a run
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
    """An order to a worker: run a spec, with folders of raw files, on a device, with a number of threads.

    shrink           factor by which blocks of clients are smaller than usual
    checkpoint       file in which the run is saved every ``minutes`` minutes; None: the run is not saved
    federation_hash  hash of the federation on which the run must be made; empty if it is not known
    federation       file that holds the federation; None if there is none
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
    """Execute an order and return its result; ``outcome`` turns an exception into a result."""
    try:
        return execute(order)
    except (Exception, SystemExit) as error:
        return outcome(error)
    finally:
        if order.device.startswith("cuda"):  # other runs use the GPU's memory
            import torch

            torch.cuda.empty_cache()


def outcome(error: BaseException) -> RunResult:
    """Return the result that an exception stands for; call this while the exception is handled."""
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
    """The result of a run whose worker was killed or could not be reached: a retry may end differently."""


class Pool:
    """Makes runs, one at a time in each slot: in processes here, or on machines of a cluster.

    ``devices``: the device (``cpu``, ``cuda:0``) of each slot. ``threads``: the number of threads of a run.
    ``elsewhere``: a cluster chooses the machine of each run and sees that there is room.
    """

    elsewhere = False

    def __init__(self, devices: tuple[str, ...], threads: int) -> None:
        self.devices, self.threads = devices, threads

    def open(self, execute: Execute, timeout: float | None) -> None:
        """Prepare to execute orders with a function, each within ``timeout`` seconds (None: no limit)."""
        self._execute, self._timeout = execute, timeout

    def start(self, slot: int, order: Order) -> Future[RunResult]:
        """Begin a run. The slot's last run must not affect it."""
        raise NotImplementedError

    def close(self) -> None:
        """End everything, also in the middle of a run. A second call does nothing more."""


def thread_variables(threads: int) -> AbstractContextManager[Any]:
    """Return a context in which new processes load their numerical libraries with ``threads`` threads."""
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
    """Names of the visible GPUs, such as ``cuda:0``."""
    import torch

    return [f"cuda:{index}" for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0)]


def choose(devices: str | None, jobs: int | None, threads: int | None, runs: int) -> LocalPool:
    """Return a pool on this machine for ``runs`` runs. Raises ``RequestError`` if a device does not exist.

    Default of ``devices``: every visible GPU, else the CPU. Default of ``jobs``, the number of slots: one per
    core on the CPU; on GPUs the number of cores, but from one to ``PER_GPU`` per GPU. Threads change the last
    bits of sums, so their number must not depend on the number of runs.
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
    """Return versions, processor, memory in bytes, device and threads of a run on this machine; cached."""
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
    """A process that executes orders, one at a time. It loads the function before the first order."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._executor = ProcessPoolExecutor(1, get_context("spawn"), prepare)
        can_hold = hasattr(signal, "pthread_sigmask")
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if can_hold else set()
        try:  # the new process inherits that interrupts are blocked
            self._loaded = self._executor.submit(callable, execute)  # unpickling loads what runs need
        finally:
            if can_hold:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        (self._process,) = (self._executor._processes or {}).values()

    def make(self, order: Order, timeout: float | None) -> RunResult:
        """Execute an order. The ``timeout`` in seconds starts when everything is loaded."""
        self._loaded.result()
        return self._executor.submit(attempt, self._execute, order).result(timeout)

    def end(self, grace: float = 0.0) -> int:
        """Kill the process, unless it ends by itself within ``grace`` seconds; return its exit code."""
        self._process.join(grace)
        self._process.kill()
        self._executor.shutdown(wait=False, cancel_futures=True)
        end = time.monotonic() + 5.0
        while self._process.exitcode is None and time.monotonic() < end:
            time.sleep(0.01)  # the executor's thread may have asked first; the code follows soon
        return self._process.exitcode or 0


def prepare() -> None:
    """Set up a worker: it ends with the sweep, ignores interrupts, and prints on standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)
    end_with_parent()


def end_with_parent() -> None:
    """End this process when the Python process that started it ends or is killed."""
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent.sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


class LocalPool(Pool):
    """Makes runs on this machine: each slot has a worker, and a thread that waits for the worker."""

    def __init__(self, devices: tuple[str, ...], threads: int) -> None:
        super().__init__(devices, threads)
        self._waiting = ThreadPoolExecutor(len(devices), "worker")
        self._workers: list[Worker | None] = []
        self._is_closed = False

    def open(self, execute: Execute, timeout: float | None) -> None:
        """Start the workers. They load what runs need while the sweep prepares."""
        super().open(execute, timeout)
        self._workers = [Worker(execute) for _ in self.devices]

    def start(self, slot: int, order: Order) -> Future[RunResult]:
        """Begin a run in a slot."""
        return self._waiting.submit(self._make, slot, order)

    def _make(self, slot: int, order: Order) -> RunResult:
        """Return the result of an order. If the slot's worker has ended, start a new worker first."""
        try:
            worker = self._workers[slot] = self._workers[slot] or Worker(self._execute)
            if self._is_closed:  # ``close`` came before this worker was in the list
                worker.end()
            result = worker.make(order, self._timeout)
            if result.state == "oom" or (result.state == "failed" and order.device != "cpu"):
                self._end(slot)  # some errors of a device persist in its process
        except TimeoutError:
            self._end(slot)
            result = RunResult("failed", f"timed out after {self._timeout:g} s")
            result.seconds["total"] = self._timeout or 0.0
        except BrokenProcessPool:
            code = self._end(slot, grace=1.0)
            result = RunResult("failed", f"the worker process died (exit code {code})")
            if code < 0 or self._is_closed:
                result = Lost("failed", f"the worker process died (killed by signal {-code})")
        except Exception as error:  # no process starts, or the process cannot load the function or the order
            self._end(slot)
            result = outcome(error)
        result.environment = describe(order.device, self.threads)
        return result

    def _end(self, slot: int, grace: float = 0.0) -> int:
        """End a slot's worker and return its exit code."""
        worker, self._workers[slot] = self._workers[slot], None
        return 0 if worker is None else worker.end(grace)

    def close(self) -> None:
        """End every process, also in the middle of a run."""
        self._is_closed = True
        for worker in filter(None, self._workers):
            worker.end()
        self._waiting.shutdown(cancel_futures=True)


class OwnProcess(Pool):
    """Makes runs in this process, one after the other, for methods that no other process can import."""

    def start(self, slot: int, order: Order) -> Future[RunResult]:
        """Make the whole run before returning."""
        future: Future[RunResult] = Future()
        result = attempt(self._execute, order)
        result.environment = describe(order.device, self.threads)
        future.set_result(result)
        return future
