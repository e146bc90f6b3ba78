"""The loop of a sweep: what starts when and where, what is tried again, and when nothing new starts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from bench.engine.result import RunResult
from bench.engine.states import COMPLETE, FAILURES, SETTLED
from bench.environment import describe
from bench.store import Store
from bench.store.store import Kind, now
from bench.sweep import fingerprint
from bench.sweep.claims import Claims
from bench.sweep.display import Reporter, side_by_side
from bench.sweep.federations import Federations
from bench.sweep.interrupts import Interrupts
from bench.sweep.order import Checkpoints, Order
from bench.sweep.plan import Estimator, Step, kind_of
from bench.sweep.policy import HELD_BACK, TRIES, Limits, Slots
from bench.sweep.workers import Lost, Pool

TICK = 0.2
"""Seconds after which interrupts and the budget are looked at while nothing ends."""

CLAIM_PAUSE = 1.0
"""Seconds after which a run that another sweep was at is asked for again."""


@dataclass(eq=False)
class Job:
    """A step that a sweep is to do: the ``number`` of its next try, not before ``held_until`` on the
    monotonic clock; and, once it runs, where and since when.
    """

    step: Step
    number: int = 1
    held_until: float = 0.0
    slot: int = -1
    device: str = ""
    started: datetime = datetime.min

    @property
    def shrink(self) -> int:
        """How many times smaller than usual the blocks of clients are."""
        return 1 << max(0, self.number - 2)

    @property
    def how(self) -> str:
        """The try in words."""
        if self.shrink > 1:
            return f"in blocks of 1/{self.shrink}"
        return "alone on the device" if self.number > 1 else "beside other runs"


@dataclass(eq=False)
class Sweep:
    """Gives jobs to a pool, one for each slot, and stores what comes of them.

    ``deadline`` is the end of the budget on the monotonic clock. ``roots``, ``federations`` and
    ``checkpoints`` are for the orders. ``logs`` is where the output of runs goes (None: nowhere).
    ``follow_up`` says what else is to run, given the ``states``; it is asked whenever a run has ended.

    Afterwards ``states`` holds where every run stands that has ended, by spec hash, those that other sweeps
    have done included; ``ended`` counts the results of this one by state, and ``left`` the runs that were not
    begun by reason.
    """

    slots: Slots
    pool: Pool
    store: Store
    claims: Claims
    interrupts: Interrupts
    reporter: Reporter
    limits: Limits
    deadline: float
    estimator: Estimator
    roots: tuple[str, ...]
    federations: Federations
    checkpoints: Checkpoints | None
    logs: Path | None
    follow_up: Callable[[Mapping[str, str]], Sequence[Step]]
    waiting: list[Job]
    running: dict[Future[RunResult | Lost], Job] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    ended: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._free_slots = list(range(len(self.slots.devices)))
        self._large: set[Kind] = set()
        self._raised: Counter[str] = Counter()
        self._sound: set[str] = set()

    def run(self) -> None:
        """Do the jobs that wait, and those that follow.

        Raises:
            RequestError: the database cannot be written.
            KeyboardInterrupt: the sweep is to stop now; what runs is stopped first.
        """
        try:
            while True:
                before = time.monotonic()
                self._fill()
                if self.running:
                    futures = wait(self.running, TICK, FIRST_COMPLETED).done
                elif not self._hold() and any(job.held_until > before for job in self.waiting):
                    futures = set()  # other sweeps are at all that is left
                    time.sleep(TICK)
                else:
                    break
                endings = [self._take_result(future) for future in futures]
                self._fill()  # before what ended is stored, so that no slot waits for the disk
                for job, result in filter(None, endings):
                    self.save(job.step, result, job.started)
                    self._follow(job.step, result.raised or result.state in SETTLED)
                    self._renew()  # a database that is busy may keep each waiting
                self._renew()
                self.interrupts.heed(len(self.running))
        finally:
            self.pool.stop()
        if self.waiting:
            budget = f"not to be done within the budget of {(self.limits.budget or 0) / 3600:g} h"
            self.left[self._hold() or budget] += len(self.waiting)

    # What starts --------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Start what can start, and leave out what another sweep has done."""
        while self._free_slots and not self._hold():
            choice = self._choice()
            if choice is None:
                return
            job, slot = choice
            spec_hash, device = job.step.spec.hash, self.slots.devices[slot]
            is_taken = self.claims.take(spec_hash, job.step.name, device, self._progress)
            self._renew()  # each may take a while, and a cluster takes many
            row = self.claims.ask(partial(self.store.stored, spec_hash))
            state = job.step.ended_elsewhere(row)
            if state is None and not is_taken:
                job.held_until = time.monotonic() + CLAIM_PAUSE
                continue
            self.waiting.remove(job)
            if state is None:
                self._begin(job, slot)
                continue
            if is_taken:
                self.claims.drop(spec_hash)
            self.states[spec_hash] = state
            self.reporter.note(f"{job.step.name}: {state} in another sweep")
            self._follow(job.step, state in SETTLED)

    def _hold(self) -> str:
        """Why nothing new starts; empty where it may."""
        if self.interrupts.finish:
            return "interrupted"
        failures = sum(self.ended[state] for state in FAILURES)
        if self.limits.failures is not None and failures >= self.limits.failures:
            return f"stopped after {failures} failed"
        return ""

    def _may_start(self, job: Job) -> bool:
        """Whether a job is expected to end in time, and was not just seen to be another sweep's."""
        moment = time.monotonic()
        seconds = self.deadline - moment
        expected = self.estimator.seconds(job.step.spec) or 0.0
        return seconds > 0 and expected <= seconds and job.held_until <= moment

    def _is_alone(self, job: Job) -> bool:
        """Whether nothing else may run beside it: it is tried again, or its kind has run out of memory."""
        return job.number > 1 or kind_of(job.step.spec) in self._large

    def _choice(self) -> tuple[Job, int] | None:
        """The first job that can start now, and its slot, on the device with the fewest runs.

        One that must be alone keeps a device from taking anything else, so that its turn comes. A cluster
        sees to that itself.
        """
        devices, elsewhere = self.slots.devices, self.slots.elsewhere
        loads = Counter(job.device for job in self.running.values())
        reserved = {job.device for job in self.running.values() if self._is_alone(job) and not elsewhere}
        for job in filter(self._may_start, self.waiting):
            alone = self._is_alone(job) and not elsewhere
            open_devices = [name for name in dict.fromkeys(devices) if name not in reserved]
            slots = [
                slot
                for slot in reversed(self._free_slots)
                if devices[slot] in open_devices and not (alone and loads[devices[slot]])
            ]
            if slots:
                return job, min(slots, key=lambda slot: loads[devices[slot]])
            if alone and open_devices:
                reserved.add(min(open_devices, key=lambda name: loads[name]))
        return None

    def _begin(self, job: Job, slot: int) -> None:
        self._free_slots.remove(slot)
        job.slot, job.device, job.started = slot, self.slots.devices[slot], now()
        shared = self.federations[job.step.spec.federation_key]
        order = Order(
            job.step.spec,
            self.roots,
            job.device,
            self.slots.threads,
            job.shrink,
            self.checkpoints,
            shared.hash,
            shared.file,
            log=self._log(job.step),
            is_new=job.number == 1,
            alone=self._is_alone(job),
        )
        self.running[self.pool.start(slot, order)] = job

    def _log(self, step: Step) -> Path | None:
        return None if self.logs is None else self.logs / f"{step.spec.hash}.log"

    def _renew(self) -> None:
        lost_hashes = self.claims.renew(self._progress)
        for job in self.running.values():
            if job.step.spec.hash in lost_hashes:
                self.reporter.note(f"{job.step.name}: no longer claimed, another sweep may be at it, too")

    def _progress(self) -> dict[str, Any]:
        """How far the sweep is."""
        moment, jobs = now(), len(self.slots.devices)
        times = [self.estimator.seconds(job.step.spec) for job in self.waiting]
        for job in self.running.values():
            seconds = self.estimator.seconds(job.step.spec)
            times.append(seconds and max(seconds - (moment - job.started).total_seconds(), 0.0))
        known = [seconds for seconds in times if seconds is not None]
        return {
            "jobs": jobs,
            "total": self.ended.total() + len(times),
            "counts": dict(self.ended),
            "left": len(self.waiting),
            "ends": moment + timedelta(seconds=side_by_side(known, jobs)) if known else None,
            "unknown_times": times.count(None),
        }

    # What ends ------------------------------------------------------------------------------------

    def _take_result(self, future: Future[RunResult | Lost]) -> tuple[Job, RunResult] | None:
        """The result of a job that has ended; None where it is tried again."""
        job = self.running.pop(future)
        self._free_slots.append(job.slot)
        result = future.result()
        reason = result.how if isinstance(result, Lost) else result.reason
        is_large = isinstance(result, RunResult) and result.state == "oom"
        if is_large:
            self._large.add(kind_of(job.step.spec))
        if (is_large or isinstance(result, Lost)) and job.number < TRIES:
            next_job = Job(job.step, job.number + 1)
            self.waiting.insert(0, next_job)
            self.reporter.note(f"{job.step.name}: {reason}; trying again {next_job.how}")
            return None
        if isinstance(result, Lost):
            result = RunResult("failed", f"{reason}, {job.number} times", device=job.device)
        elif is_large:
            result.reason = f"{reason}; tried {job.number} times, at last {job.how}"
        self._learn(job.step, result)
        return job, result

    def _learn(self, step: Step, result: RunResult) -> None:
        """Learn from a result that will be stored, and keep the log of a failure alone."""
        log, method = self._log(step), step.spec.method
        self.ended[result.state] += 1
        if result.state in COMPLETE:
            self.estimator.add(step.spec, result.seconds.get("total", 0.0), result.device)
        if result.state in FAILURES:
            if log is not None and log.exists():
                result.traceback = f"{result.traceback}\nlog: logs/{log.name} in BENCH_HOME\n".lstrip()
        elif log is not None:
            log.unlink(missing_ok=True)
        if result.state in SETTLED:
            self._sound.add(method)
        self._raised[method] += result.raised
        if method not in self._sound and self._raised[method] >= HELD_BACK:
            reason = (
                f"{method} is held back: its first {HELD_BACK} runs failed, the last with {result.reason}"
            )
            self._hold_back(method, reason)

    def _hold_back(self, method: str, reason: str) -> None:
        """Leave the rest of a method's runs out."""
        held_jobs = [job for job in self.waiting if job.step.spec.method == method]
        if held_jobs:
            self.waiting = [job for job in self.waiting if job not in held_jobs]
            self.left[reason] += len(held_jobs)
            self.reporter.note(reason)

    def save(self, step: Step, result: RunResult, started: datetime) -> None:
        """Store a result by the rule of ``Store.save``, and say so.

        The machine is this one unless the result says another; it is unknown of a run lost elsewhere.
        """
        shared = self.federations.get(step.spec.federation_key)
        provenance = shared.provenance if shared else {}
        result.started, result.code = started, result.code or fingerprint.of(step.spec)
        if not result.environment and not self.slots.elsewhere:
            result.environment = describe(result.device, self.slots.threads)
        row = self.claims.ask(lambda: self.store.save(step.spec, result, provenance))
        self.states[step.spec.hash] = row.state if step.is_new(row) else step.status
        self.reporter.finished(step, result)

    def _follow(self, step: Step, is_over: bool) -> None:
        """Nothing is left of a run that has ended, here or elsewhere, but what follows it."""
        if self.checkpoints is not None:
            self.checkpoints.tidy(step.spec.hash, is_over)
        if not self.interrupts.finish:
            self.waiting += map(Job, self.follow_up(self.states))
