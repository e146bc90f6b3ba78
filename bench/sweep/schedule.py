"""The order of a sweep's runs: what starts when and where, what is tried again, and when to stop."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from bench.engine.result import RunResult
from bench.sweep import pool
from bench.sweep.clock import now
from bench.sweep.devices import Slots
from bench.sweep.estimate import Estimator
from bench.sweep.federations import Key
from bench.sweep.interrupts import Interrupts
from bench.sweep.limits import Limits
from bench.sweep.packing import Demand, must_be_alone, place
from bench.sweep.pauses import Pauses
from bench.sweep.plan import FAILURES, Step
from bench.sweep.pool import Lost
from bench.sweep.retries import Attempt, after_loss, after_memory, noted, out_of_memory
from bench.sweep.seams import Sharing, Workers
from bench.sweep.worker import Checkpoints, Order

TICK = 0.2
"""Seconds after which interrupts and the budget are looked at while nothing ends."""

ASK_AGAIN = 1.0
"""Seconds after which a run that another sweep was at is asked for again."""

Ended = tuple[Step, RunResult, datetime]


@dataclass(frozen=True, eq=False)
class Waiting:
    """A run that has not begun, or is to be tried again."""

    step: Step
    attempt: Attempt = field(default_factory=Attempt)


@dataclass(frozen=True)
class Running:
    """A run in a worker. ``kills`` is how often the system had killed for memory when it began."""

    step: Step
    attempt: Attempt
    slot: int
    device: str
    demand: Demand
    started: datetime
    kills: int


class Scheduler:
    """Gives steps to ``workers``, one for each of ``slots``; ``results`` yields what came of them.

    ``deadline`` is the end of the budget on the monotonic clock; ``note`` takes a line for people;
    ``logs`` is where the output of runs goes (None: nowhere), ``checkpoints`` where they are saved,
    ``clients`` the hash of every federation.
    ``running`` and ``waiting`` may be looked at meanwhile. Afterwards ``skipped`` holds the states of
    runs that other sweeps had done, by spec hash, and ``left`` how many were not begun, by reason.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        roots: tuple[str, ...],
        slots: Slots,
        workers: Workers,
        limits: Limits,
        deadline: float,
        estimator: Estimator,
        interrupts: Interrupts,
        sharing: Sharing,
        note: Callable[[str], None],
        logs: Path | None,
        checkpoints: Checkpoints | None,
        clients: Mapping[Key, str],
    ) -> None:
        self.waiting = [Waiting(step) for step in steps]
        self.running: dict[Future[RunResult], Running] = {}
        self.skipped: dict[str, str] = {}
        self.left: Counter[str] = Counter()
        self.estimator = estimator
        self._roots = roots
        self._slots = slots
        self._devices = {device.name: device for device in slots.shared}
        self._free = list(range(len(slots.devices)))
        self._workers = workers
        self._limits = limits
        self._deadline = deadline
        self._interrupts = interrupts
        self._sharing = sharing
        self._note = note
        self._logs = logs
        self._checkpoints = checkpoints
        self._clients = clients
        self._others: dict[Waiting, float] = {}
        self._pauses = Pauses()
        self._failures = 0

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
                    done = wait(self.running, TICK, FIRST_COMPLETED).done
                elif self._others and not self._hold():  # other sweeps are at all that is left
                    done = set()
                    time.sleep(TICK)
                else:
                    break
                ended = [self._ended(future) for future in done]
                self._start()  # before what ended is stored, so that no slot waits for the disk
                for each in ended:
                    yield each
                    self._renew()  # a database that is busy may keep each waiting
                self._renew()
                if self._interrupts.finish:
                    self._interrupts.announce(len(self.running))
                if self._interrupts.now:
                    raise KeyboardInterrupt
        finally:
            self._workers.stop()
        if self.waiting:
            self.left[self._hold() or self._over_budget()] += len(self.waiting)

    # Starting -----------------------------------------------------------------------------------

    def _hold(self) -> str:
        """Why nothing new starts; empty where it may."""
        if self._interrupts.finish:
            return "interrupted"
        if self._limits.failures is not None and self._failures >= self._limits.failures:
            return f"stopped after {self._failures} failed"
        return ""

    def _over_budget(self) -> str:
        return f"not to be done within the budget of {(self._limits.budget or 0) / 3600:g} h"

    def _candidates(self) -> list[Waiting]:
        """What could start now: expected to end in time, and not what another sweep is at."""
        present = time.monotonic()
        seconds = self._deadline - present
        self._others = {each: until for each, until in self._others.items() if until > present}
        return [
            each
            for each in self.waiting
            if seconds > 0
            and each not in self._others
            and (self.estimator.seconds(each.step.spec) or 0.0) <= seconds
        ]

    def _demand(self, waiting: Waiting) -> Demand:
        return Demand(self.estimator.memory(waiting.step.spec), waiting.attempt.alone)

    def _demand_here(self, waiting: Waiting) -> Demand:
        """What a run needs of this machine: nothing but a slot where a cluster finds the room."""
        return Demand() if self._slots.elsewhere else self._demand(waiting)

    def _start(self) -> bool:
        """Start what can start; whether anything did."""
        before = len(self.running)
        while self._free and not self._hold():
            candidates = self._candidates()
            at_work: dict[str, list[Demand]] = {name: [] for name in self._devices}
            for running in self.running.values():
                at_work[running.device].append(running.demand)
            choice = place(map(self._demand_here, candidates), at_work, list(self._devices.values()))
            if choice is None:
                break
            chosen = candidates[choice[0]]
            taken = self._sharing.take(chosen.step)
            self._renew()  # each may take a while, and a cluster takes many
            state = self._sharing.elsewhere(chosen.step)
            if state is None and not taken:
                self._others[chosen] = time.monotonic() + ASK_AGAIN
                continue
            self.waiting.remove(chosen)
            if state is None:
                self._begin(chosen, choice[1])
            else:
                self.skipped[chosen.step.spec.hash] = state
                self._note(f"{chosen.step.name}: {state} in another sweep")
        return len(self.running) > before

    def _renew(self) -> None:
        lost = self._sharing.renew()
        for running in self.running.values():
            if running.step.spec.hash in lost:
                self._note(f"{running.step.name}: no longer claimed, another sweep may be at it, too")

    def _begin(self, waiting: Waiting, device: str) -> None:
        slot = next(slot for slot in reversed(self._free) if self._slots.devices[slot] == device)
        self._free.remove(slot)
        demand = self._demand(waiting)
        attempt = replace(waiting.attempt, alone=self._alone(demand, device))
        spec = waiting.step.spec
        order = Order(
            spec.canonical(),
            self._roots,
            device,
            self._slots.threads,
            attempt.shrink,
            self._checkpoints,
            self._clients[spec.federation_key],
        )
        here = self._demand_here(waiting)
        running = Running(waiting.step, attempt, slot, device, here, now(), pool.kills_for_memory())
        log = self._log(waiting.step)
        future = self._workers.start(slot, order, log, attempt.number == 1, demand)
        self.running[future] = running

    def _alone(self, demand: Demand, device: str) -> bool:
        """Whether a run that starts now has its device to itself."""
        if self._slots.elsewhere:
            return demand.alone or (device != "cpu" and demand.memory is None)
        place_ = self._devices[device]
        return must_be_alone(demand, place_) or place_.slots == 1

    def _log(self, step: Step) -> Path | None:
        return None if self._logs is None else self._logs / f"{step.spec.hash}.log"

    # Ending -------------------------------------------------------------------------------------

    def _ended(self, future: Future[RunResult]) -> Ended | None:
        """The result of a run that has ended; None where it is tried again."""
        running = self.running.pop(future)
        self._free.append(running.slot)
        ended = self._workers.ended(running.slot, future, running.device)
        result = pool.judged(ended, running.kills)
        if isinstance(result, Lost):
            again = after_loss(running.attempt)
            if again is not None:
                self._again(running, again, result.how)
                return None
            result = RunResult("failed", f"{result.how}, {running.attempt.number} times")
        if isinstance(ended, Lost):
            result.device = running.device
        if result.state == "oom" or (result.state == "failed" and running.device != "cpu"):
            # What comes next finds nothing left: after some errors of a device its process is of no more use.
            self._workers.replace(running.slot)
        if result.state == "oom":
            attempt = noted(running.attempt, result)
            again = after_memory(attempt, running.step.spec.clients)
            if again is not None:
                self._again(running, again, result.reason)
                return None
            result = out_of_memory(attempt, result)
        self._final(running.step, result)
        return running.step, result, running.started

    def _again(self, running: Running, attempt: Attempt, why: str) -> None:
        self.waiting.insert(0, Waiting(running.step, attempt))
        self._note(f"{running.step.name}: {why}; trying again {attempt.how}")

    def _final(self, step: Step, result: RunResult) -> None:
        """Learn from a result that will be stored."""
        log = self._log(step)
        if result.state == "done":
            seconds = result.seconds.get("total", 0.0)
            self.estimator.add(step.spec, seconds, result.device, result.peak_memory)
        why = self._pauses.ended(step, result)
        if result.state in FAILURES:
            self._failures += 1
            if log is not None and log.exists():
                result.traceback = f"{result.traceback}\nlog: logs/{log.name} in BENCH_HOME\n".lstrip()
        elif log is not None:
            log.unlink(missing_ok=True)
        if why is not None:
            held = [each for each in self.waiting if each.step.spec.method == step.spec.method]
            self.waiting = [each for each in self.waiting if each not in held]
            self.left[f"{step.spec.method} is held back: {why}"] += len(held)
            self._note(f"{step.spec.method} is held back for the rest of the sweep: {why}")
