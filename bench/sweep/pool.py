"""Worker processes: one for each slot, so that the death of one touches one run."""

from __future__ import annotations

import traceback
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from signal import SIGKILL
from typing import Any

from pebble import ProcessExpired, ProcessPool

from bench.engine.result import RunResult
from bench.sweep import worker
from bench.sweep.packing import Demand
from bench.sweep.worker import Execute, Order

RUNS_PER_WORKER = 200
"""A worker is replaced after so many runs, should it lose memory: it did not over 120 runs of four
methods, and a new one takes two or three seconds to start.
"""


@dataclass(frozen=True)
class Lost:
    """A run whose worker was killed or could not be reached; ``how`` says what happened."""

    how: str
    sigkill: bool = False


def judged(ended: RunResult | Lost, kills: int) -> RunResult | Lost:
    """What came of a run that began when this machine had killed so many processes for want of memory:
    out of memory where the run's was one more.
    """
    if isinstance(ended, Lost) and ended.sigkill and kills_for_memory() > kills:
        return RunResult("oom", "the system killed the worker for want of memory")
    return ended


class Workers:
    """A pool of one process for each slot, started when it is first used.

    The library gives up a pool when its worker dies while it takes up a run, and a lock that a killed
    worker held stays held. With a pool for each slot only that pool has to be replaced.
    """

    def __init__(self, slots: int, execute: Execute, timeout: float | None) -> None:
        self._pools: list[Any] = [None] * slots
        self._execute = execute
        self._timeout = timeout

    def start(
        self, slot: int, order: Order, log: Path | None, fresh: bool, demand: Demand | None = None
    ) -> Future[RunResult]:
        """Begin a run in a slot; the future has failed already where the worker could not be started.

        Whoever fills the slots has seen to the ``demand``.
        """
        if self._pools[slot] is None:
            self._pools[slot] = ProcessPool(
                max_workers=1,
                max_tasks=RUNS_PER_WORKER,
                initializer=worker.prepare,
                context=get_context("spawn"),
            )
        arguments = [self._execute, order, log, fresh]
        try:
            future: Future[RunResult] = self._pools[slot].schedule(
                worker.attempt, args=arguments, timeout=self._timeout
            )
        except RuntimeError as error:  # the pool broke at this very moment
            future = Future()
            future.set_exception(BrokenProcessPool(str(error)))
        return future

    def ended(self, slot: int, future: Future[RunResult], device: str) -> RunResult | Lost:
        """What came of a run. Unless it ended by itself, the slot gets a new process."""
        try:
            return future.result()
        except TimeoutError:
            taken = self._timeout or 0.0
            reason = f"timed out after {taken:g} s"
            return RunResult("failed", reason, seconds={"total": taken}, device=device)
        except BrokenProcessPool as error:
            self.replace(slot)
            return Lost(f"the worker process could not be reached ({error})")
        except ProcessExpired as error:
            self.replace(slot)
            code = error.exitcode
            if code is not None and code < 0:
                return Lost(f"the worker process died (killed by signal {-code})", code == -SIGKILL)
            return RunResult("failed", f"the worker process died (exit code {code})", device=device)
        except Exception as error:  # the result could not be sent
            reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            return RunResult("failed", reason, "".join(traceback.format_exception(error)), device=device)

    def replace(self, slot: int) -> None:
        """End a slot's process; its next run starts a new one."""
        pool, self._pools[slot] = self._pools[slot], None
        if pool is not None:
            pool.stop()
            pool.join()

    def stop(self) -> None:
        """End every process, also in the middle of a run."""
        for pool in self._pools:
            if pool is not None:
                pool.stop()
        for slot in range(len(self._pools)):
            self.replace(slot)


def kills_for_memory() -> int:
    """How many processes the system has killed since it started because memory ran out; 0 where it
    does not say.
    """
    count = 0
    for source in ("/proc/vmstat", "/sys/fs/cgroup/memory.events"):
        try:
            lines = Path(source).read_text().splitlines()
        except OSError:
            continue
        count += sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return count
