"""The order of a sweep's runs: what starts when and where, what is tried again, and when to stop."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any, Self

from bench.engine.result import RunResult
from bench.store.queries import COMPLETE
from bench.store.store import now
from bench.sweep.federations import Federations
from bench.sweep.order import Checkpoints, Order
from bench.sweep.plan import Estimator, Step
from bench.sweep.policy import (
    FAILURES,
    Attempt,
    Demand,
    Limits,
    Pauses,
    Slots,
    after_loss,
    after_memory,
    must_be_alone,
    noted,
    out_of_memory,
    place,
)
from bench.sweep.workers import Lost, Workers
from bench.sweep.writer import Writer

TICK = 0.2
"""Seconds after which interrupts and the budget are looked at while nothing ends."""

ASK_AGAIN = 1.0
"""Seconds after which a run that another sweep was at is asked for again."""

Ended = tuple[Step, RunResult, datetime]


class Interrupts:
    """Counts what asks the sweep to stop; used as a context manager around it.

    Outside of the main thread, and for a signal that the process was started to ignore, nothing is
    installed.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._announced = False
        self._before: dict[signal.Signals, Any] = {}
        self.finish = False
        """Start nothing new."""
        self.now = False
        """Do not wait for what runs either."""

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self.now = self.finish or number == signal.SIGTERM
        self.finish = True

    def announce(self, count: int) -> None:
        """Say once what an interrupt does."""
        if self._before and not self.now and not self._announced:
            self._announced = True
            self._say(f"interrupted: {count} running to be finished and stored; Ctrl-C again stops now")


@dataclass(frozen=True, eq=False)
class Waiting:
    """A run that has not begun, or is to be tried again."""

    step: Step
    attempt: Attempt = field(default_factory=Attempt)


@dataclass(frozen=True)
class Running:
    """A run in a worker."""

    step: Step
    attempt: Attempt
    slot: int
    device: str
    demand: Demand
    started: datetime


@dataclass(frozen=True)
class Services:
    """What a scheduler works with.

    ``deadline`` is the end of the budget on the monotonic clock; ``note`` takes a line for people;
    ``logs`` is where the output of runs goes, ``checkpoints`` where they are saved (None: nowhere).
    """

    roots: tuple[str, ...]
    slots: Slots
    workers: Workers
    limits: Limits
    deadline: float
    estimator: Estimator
    interrupts: Interrupts
    writer: Writer
    note: Callable[[str], None]
    logs: Path | None
    checkpoints: Checkpoints | None
    federations: Federations


class Scheduler:
    """Gives steps to workers, one for each slot; ``results`` yields what came of them.

    ``running`` and ``waiting`` may be looked at meanwhile. Afterwards ``skipped`` holds the states of
    runs that other sweeps had done, by spec hash, and ``left`` how many were not begun, by reason.
    """

    def __init__(self, steps: Sequence[Step], services: Services) -> None:
        self.waiting = [Waiting(step) for step in steps]
        self.running: dict[Future[RunResult | Lost], Running] = {}
        self.skipped: dict[str, str] = {}
        self.left: Counter[str] = Counter()
        self.estimator = services.estimator
        self._services = services
        self._slots = services.slots
        self._devices = {device.name: device for device in services.slots.shared}
        self._free_slots = list(range(len(services.slots.devices)))
        self._retry_times: dict[Waiting, float] = {}
        self._pauses = Pauses()
        self._failures = 0

    def add(self, steps: Sequence[Step]) -> None:
        """More runs, which start behind those that wait."""
        self.waiting += [Waiting(step) for step in steps]

    def results(self) -> Generator[Ended | None, None, None]:
        """Every run's result as it comes; None where something else has changed.

        Raises:
            KeyboardInterrupt: the sweep is to stop now; what runs is stopped first.
        """
        try:
            while True:
                if self._start():
                    yield None
                if self.running:
                    futures = wait(self.running, TICK, FIRST_COMPLETED).done
                elif self._retry_times and not self._hold():  # other sweeps are at all that is left
                    futures = set()
                    time.sleep(TICK)
                else:
                    break
                endings = [self._take_result(future) for future in futures]
                self._start()  # before what ended is stored, so that no slot waits for the disk
                for ending in endings:
                    yield ending
                    self._renew()  # a database that is busy may keep each waiting
                self._renew()
                if self._services.interrupts.finish:
                    self._services.interrupts.announce(len(self.running))
                if self._services.interrupts.now:
                    raise KeyboardInterrupt
        finally:
            self._services.workers.stop()
        if self.waiting:
            self.left[self._hold() or self._budget_reason()] += len(self.waiting)

    # Starting -----------------------------------------------------------------------------------

    def _hold(self) -> str:
        """Why nothing new starts; empty where it may."""
        if self._services.interrupts.finish:
            return "interrupted"
        if self._services.limits.failures is not None and self._failures >= self._services.limits.failures:
            return f"stopped after {self._failures} failed"
        return ""

    def _budget_reason(self) -> str:
        return f"not to be done within the budget of {(self._services.limits.budget or 0) / 3600:g} h"

    def _candidates(self) -> list[Waiting]:
        """What could start now: expected to end in time, and not what another sweep is at."""
        time_now = time.monotonic()
        seconds = self._services.deadline - time_now
        self._retry_times = {candidate: end for candidate, end in self._retry_times.items() if end > time_now}
        return [
            candidate
            for candidate in self.waiting
            if seconds > 0
            and candidate not in self._retry_times
            and (self.estimator.seconds(candidate.step.spec) or 0.0) <= seconds
        ]

    def _demand(self, candidate: Waiting) -> Demand:
        return Demand(self.estimator.memory(candidate.step.spec), candidate.attempt.alone)

    def _local_demand(self, candidate: Waiting) -> Demand:
        """What a run needs of this machine: nothing but a slot where a cluster finds the room."""
        return Demand() if self._slots.elsewhere else self._demand(candidate)

    def _start(self) -> bool:
        """Start what can start; whether anything did, or was found done."""
        before = len(self.running), len(self.skipped)
        while self._free_slots and not self._hold():
            candidates = self._candidates()
            loads: dict[str, list[Demand]] = {name: [] for name in self._devices}
            for run in self.running.values():
                loads[run.device].append(run.demand)
            choice = place(map(self._local_demand, candidates), loads, list(self._devices.values()))
            if choice is None:
                break
            candidate = candidates[choice[0]]
            is_taken = self._services.writer.take(candidate.step)
            self._renew()  # each may take a while, and a cluster takes many
            state = self._services.writer.elsewhere(candidate.step)
            if state is None and not is_taken:
                self._retry_times[candidate] = time.monotonic() + ASK_AGAIN
                continue
            self.waiting.remove(candidate)
            if state is None:
                self._begin(candidate, choice[1])
            else:
                self.skipped[candidate.step.spec.hash] = state
                self._services.note(f"{candidate.step.name}: {state} in another sweep")
        return (len(self.running), len(self.skipped)) != before

    def _renew(self) -> None:
        lost_hashes = self._services.writer.renew()
        for run in self.running.values():
            if run.step.spec.hash in lost_hashes:
                self._services.note(f"{run.step.name}: no longer claimed, another sweep may be at it, too")

    def _begin(self, candidate: Waiting, device: str) -> None:
        slot = next(slot for slot in reversed(self._free_slots) if self._slots.devices[slot] == device)
        self._free_slots.remove(slot)
        demand = self._demand(candidate)
        attempt = replace(candidate.attempt, alone=self._has_own_device(demand, device))
        spec = candidate.step.spec
        order = Order(
            spec,
            self._services.roots,
            device,
            self._slots.threads,
            attempt.shrink,
            self._services.checkpoints,
            self._services.federations.hashes[spec.federation_key],
            self._services.federations.copies.get(spec.federation_key),
        )
        local_demand = self._local_demand(candidate)
        run = Running(candidate.step, attempt, slot, device, local_demand, now())
        log = self._log(candidate.step)
        future = self._services.workers.start(slot, order, log, attempt.number == 1, demand)
        self.running[future] = run

    def _has_own_device(self, demand: Demand, device: str) -> bool:
        """Whether a run that starts now has its device to itself."""
        if self._slots.elsewhere:
            return demand.alone or (device != "cpu" and demand.memory is None)
        place_ = self._devices[device]
        return must_be_alone(demand, place_) or place_.slots == 1

    def _log(self, step: Step) -> Path | None:
        return None if self._services.logs is None else self._services.logs / f"{step.spec.hash}.log"

    # Ending -------------------------------------------------------------------------------------

    def _take_result(self, future: Future[RunResult | Lost]) -> Ended | None:
        """The result of a run that has ended; None where it is tried again."""
        run = self.running.pop(future)
        self._free_slots.append(run.slot)
        result = future.result()
        if isinstance(result, Lost):
            next_attempt = after_loss(run.attempt)
            if next_attempt is not None:
                self._retry(run, next_attempt, result.how)
                return None
            reason = f"{result.how}, {run.attempt.number} times"
            result = RunResult("failed", reason, device=run.device)
        if result.state == "oom":
            attempt = noted(run.attempt, result)
            next_attempt = after_memory(attempt, run.step.spec.clients)
            if next_attempt is not None:
                self._retry(run, next_attempt, result.reason)
                return None
            result = out_of_memory(attempt, result)
        self._close(run.step, result)
        return run.step, result, run.started

    def _retry(self, run: Running, attempt: Attempt, reason: str) -> None:
        self.waiting.insert(0, Waiting(run.step, attempt))
        self._services.note(f"{run.step.name}: {reason}; trying again {attempt.how}")

    def _close(self, step: Step, result: RunResult) -> None:
        """Learn from a result that will be stored."""
        log = self._log(step)
        if result.state in COMPLETE:
            seconds = result.seconds.get("total", 0.0)
            self.estimator.add(step.spec, seconds, result.device, result.peak_memory)
        reason = self._pauses.ended(step.spec, result)
        if result.state in FAILURES:
            self._failures += 1
            if log is not None and log.exists():
                result.traceback = f"{result.traceback}\nlog: logs/{log.name} in BENCH_HOME\n".lstrip()
        elif log is not None:
            log.unlink(missing_ok=True)
        if reason is not None:
            entries = [entry for entry in self.waiting if entry.step.spec.method == step.spec.method]
            self.waiting = [entry for entry in self.waiting if entry not in entries]
            self.left[f"{step.spec.method} is held back: {reason}"] += len(entries)
            self._services.note(f"{step.spec.method} is held back for the rest of the sweep: {reason}")
