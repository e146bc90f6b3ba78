"""What of a sweep starts when and where, what is tried again, and when nothing new starts."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any, Self

from bench.engine.result import RunResult
from bench.engine.states import COMPLETE, FAILURES
from bench.store.store import now
from bench.sweep.order import Order
from bench.sweep.plan import Estimator, Job, Step
from bench.sweep.policy import (
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

CLAIM_PAUSE = 1.0
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


@dataclass(eq=False)
class Scheduler:
    """Gives jobs to workers, one for each slot; ``results`` yields what came of them.

    ``order`` says what a worker is told of a job on a device; ``deadline`` is the end of the budget on the
    monotonic clock; ``note`` takes a line for people; ``logs`` is where the output of runs goes (None:
    nowhere). ``running`` and ``waiting`` may be looked at meanwhile. Afterwards ``skipped`` holds the states
    of runs that other sweeps had done, by spec hash, and ``left`` how many were not begun, by reason.
    """

    slots: Slots
    workers: Workers
    limits: Limits
    deadline: float
    estimator: Estimator
    interrupts: Interrupts
    writer: Writer
    note: Callable[[str], None]
    logs: Path | None
    order: Callable[[Job, str], Order]
    waiting: list[Job]
    running: dict[Future[RunResult | Lost], Job] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._devices = {device.name: device for device in self.slots.shared}
        self._free_slots = list(range(len(self.slots.devices)))
        self._pauses = Pauses()
        self._failures = 0

    def results(self) -> Generator[Ended | None, None, None]:
        """Every run's result as it comes; None where something else has changed.

        Raises:
            KeyboardInterrupt: the sweep is to stop now; what runs is stopped first.
        """
        try:
            has_changed = False
            while True:
                before = time.monotonic()
                has_changed |= self._start()
                if has_changed:
                    has_changed = False
                    yield None
                    continue  # who hears of it may have more to run
                if self.running:
                    futures = wait(self.running, TICK, FIRST_COMPLETED).done
                elif not self._hold() and any(job.held_until > before for job in self.waiting):
                    futures = set()  # other sweeps are at all that is left
                    time.sleep(TICK)
                else:
                    break
                endings = [self._take_result(future) for future in futures]
                has_changed = self._start()  # before what ended is stored, so that no slot waits for the disk
                for ending in endings:
                    yield ending
                    self._renew()  # a database that is busy may keep each waiting
                self._renew()
                if self.interrupts.finish:
                    self.interrupts.announce(len(self.running))
                if self.interrupts.now:
                    raise KeyboardInterrupt
        finally:
            self.workers.stop()
        if self.waiting:
            budget = f"not to be done within the budget of {(self.limits.budget or 0) / 3600:g} h"
            self.left[self._hold() or budget] += len(self.waiting)

    def _hold(self) -> str:
        """Why nothing new starts; empty where it may."""
        if self.interrupts.finish:
            return "interrupted"
        if self.limits.failures is not None and self._failures >= self.limits.failures:
            return f"stopped after {self._failures} failed"
        return ""

    def _candidates(self) -> list[Job]:
        """What could start now: expected to end in time, and not what another sweep is at."""
        time_now = time.monotonic()
        seconds = self.deadline - time_now
        return [
            job
            for job in self.waiting
            if seconds > 0
            and job.held_until <= time_now
            and (self.estimator.seconds(job.step.spec) or 0.0) <= seconds
        ]

    def _demand(self, job: Job) -> Demand:
        return Demand(self.estimator.memory(job.step.spec), job.attempt.alone)

    def _local_demand(self, job: Job) -> Demand:
        """What a run needs of this machine: nothing but a slot where a cluster finds the room."""
        return Demand() if self.slots.elsewhere else self._demand(job)

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
            job = candidates[choice[0]]
            is_taken = self.writer.take(job.step)
            self._renew()  # each may take a while, and a cluster takes many
            state = self.writer.elsewhere(job.step)
            if state is None and not is_taken:
                job.held_until = time.monotonic() + CLAIM_PAUSE
                continue
            self.waiting.remove(job)
            if state is None:
                self._begin(job, choice[1])
            else:
                self.skipped[job.step.spec.hash] = state
                self.note(f"{job.step.name}: {state} in another sweep")
        return (len(self.running), len(self.skipped)) != before

    def _renew(self) -> None:
        lost_hashes = self.writer.renew()
        for job in self.running.values():
            if job.step.spec.hash in lost_hashes:
                self.note(f"{job.step.name}: no longer claimed, another sweep may be at it, too")

    def _begin(self, job: Job, device: str) -> None:
        job.slot = next(slot for slot in reversed(self._free_slots) if self.slots.devices[slot] == device)
        self._free_slots.remove(job.slot)
        demand = self._demand(job)
        job.attempt = replace(job.attempt, alone=self._has_own_device(demand, device))
        order = self.order(job, device)
        job.device, job.demand, job.started = device, self._local_demand(job), now()
        future = self.workers.start(job.slot, order, self._log(job.step), job.attempt.number == 1, demand)
        self.running[future] = job

    def _has_own_device(self, demand: Demand, name: str) -> bool:
        """Whether a run that starts now has its device to itself."""
        if self.slots.elsewhere:
            return demand.alone or (name != "cpu" and demand.memory is None)
        device = self._devices[name]
        return must_be_alone(demand, device) or device.slots == 1

    def _log(self, step: Step) -> Path | None:
        return None if self.logs is None else self.logs / f"{step.spec.hash}.log"

    def _take_result(self, future: Future[RunResult | Lost]) -> Ended | None:
        """The result of a run that has ended; None where it is tried again."""
        job = self.running.pop(future)
        self._free_slots.append(job.slot)
        result = future.result()
        if isinstance(result, Lost):
            next_attempt = after_loss(job.attempt)
            if next_attempt is not None:
                self._retry(job, next_attempt, result.how)
                return None
            reason = f"{result.how}, {job.attempt.number} times"
            result = RunResult("failed", reason, device=job.device)
        if result.state == "oom":
            attempt = noted(job.attempt, result)
            next_attempt = after_memory(attempt, job.step.spec.clients)
            if next_attempt is not None:
                self._retry(job, next_attempt, result.reason)
                return None
            result = out_of_memory(attempt, result)
        self._close(job.step, result)
        return job.step, result, job.started

    def _retry(self, job: Job, attempt: Attempt, reason: str) -> None:
        self.waiting.insert(0, Job(job.step, attempt))
        self.note(f"{job.step.name}: {reason}; trying again {attempt.how}")

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
            held_jobs = [job for job in self.waiting if job.step.spec.method == step.spec.method]
            self.waiting = [job for job in self.waiting if job not in held_jobs]
            self.left[f"{step.spec.method} is held back: {reason}"] += len(held_jobs)
            self.note(f"{step.spec.method} is held back for the rest of the sweep: {reason}")
