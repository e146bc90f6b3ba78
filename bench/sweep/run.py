"""Runs what a plan says is to run, in worker processes, with one writer: what starts when and where, what is
tried again, and when to stop.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, Self

from bench.engine.checkpoint import MINUTES
from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.federation.build import build as build_federation
from bench.spec import RunSpec
from bench.store import Store, open_store
from bench.store.queries import COMPLETE
from bench.store.store import now
from bench.sweep import fingerprint
from bench.sweep.execution import execute
from bench.sweep.federations import Build, FederationFile, build_all
from bench.sweep.order import Checkpoints, Execute, Order
from bench.sweep.plan import Estimator, Job, Plan, Step, make_plan, planned
from bench.sweep.policy import (
    FAILURES,
    SETTLED,
    Attempt,
    Demand,
    Limits,
    Pauses,
    Placement,
    Slots,
    after_loss,
    after_memory,
    must_be_alone,
    noted,
    out_of_memory,
    place,
)
from bench.sweep.reporters import Reporter
from bench.sweep.status import Board
from bench.sweep.workers import LocalWorkers, Lost, MakeWorkers, Workers, choose, thread_variables
from bench.sweep.writer import MakeWriter, Writer

TICK = 0.2
"""Seconds after which interrupts and the budget are looked at while nothing ends."""

ASK_AGAIN = 1.0
"""Seconds after which a run that another sweep was at is asked for again."""

FollowUp = Callable[[Store, Mapping[str, str]], Sequence[Step]]
"""What else is to run, given the states of the runs that have ended by spec hash; asked once or more after
each. Its federations are among those of the plan."""

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
            while True:
                if self._start():
                    yield None
                if self.running:
                    futures = wait(self.running, TICK, FIRST_COMPLETED).done
                elif not self._hold() and any(job.held_until > time.monotonic() for job in self.waiting):
                    futures = set()  # other sweeps are at all that is left
                    time.sleep(TICK)
                else:
                    break
                endings = [self._take_result(future) for future in futures]
                self._start()  # before what ended is stored, so that no slot waits for the disk
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
                job.held_until = time.monotonic() + ASK_AGAIN
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


@dataclass(frozen=True)
class Outcome:
    """Where every planned run stands after a sweep, by state; how many it ran and how many of those
    failed; and how many it left, by reason.
    """

    counts: dict[str, int]
    ran: int
    failed: int = 0
    left: dict[str, int] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """1 if a run failed or did not fit, else 0."""
        return int(self.failed > 0)


def sweep(
    plan: Plan,
    database: str,
    roots: tuple[Path, ...],
    slots: Slots,
    reporter: Reporter,
    execute: Execute = execute,
    build: Build = build_federation,
    limits: Limits | None = None,
    home: Path | None = None,
    minutes: float = MINUTES,
    make_workers: MakeWorkers = LocalWorkers,
    follow_up: FollowUp | None = None,
    make_writer: MakeWriter = Writer,
) -> Outcome:
    """Do the runs of a plan that are to do and store each one as it ends.

    The database is made only after every federation has been built. A run that fails, or whose
    process dies, is stored as such and the rest goes on, within ``limits``. Under ``home`` the sweep
    says what it does (``sweeps/``), keeps the output of failed runs (``logs/``) and saves what runs every
    so many ``minutes`` (``checkpoints/``), from where it goes on after a kill; without it, none of these.
    ``make_workers`` says where runs are made, ``make_writer`` who stores them. ``follow_up`` is asked for
    more whenever one has ended.

    Raises:
        RequestError: a federation cannot be what was asked for, stored runs are of other clients, or no
            data set is to be had; nothing is written then. Or the database cannot be written.
        KeyboardInterrupt: after one interrupt when what ran is stored, after two, or a request to
            terminate, when the workers are stopped; what had not ended leaves nothing.
    """
    steps = plan.to_run
    if not steps:
        return Outcome(plan.counts, 0)
    limits = limits or Limits()
    deadline = time.monotonic() + (limits.budget or float("inf"))
    checkpoints = Checkpoints(home / "checkpoints", minutes) if home else None
    states: dict[str, str] = {}
    new_counts: Counter[str] = Counter()
    with ExitStack() as stack:
        stack.enter_context(thread_variables(slots.threads))
        workers = make_workers(len(slots.devices), execute, limits.timeout)  # they load while this goes on
        stack.callback(workers.stop)  # where there is no scheduler yet that does
        for method, model in {(step.spec.method, step.spec.client.model) for step in steps}:
            fingerprint.code(method, model)  # as it is now: files may be edited before a run is stored
        file = None if slots.elsewhere else FederationFile()
        federations = build_all((step.spec for step in steps), roots, build, file)
        plan.refuse_other_clients(federations.hashes)
        ready_steps = [step for step in steps if step.spec.dataset not in federations.missing_data]
        if not ready_steps and all(step.to_run or step.status == "not_implemented" for step in plan.steps):
            raise next(iter(federations.missing_data.values()))
        store = stack.enter_context(open_store(database, create=True))
        stack.enter_context(store.held())
        stack.enter_context(reporter)
        interrupts = stack.enter_context(Interrupts(reporter.note))
        board = stack.enter_context(Board(home, database, len(ready_steps), len(slots.devices)))
        writer = stack.enter_context(make_writer(store, federations, slots, lambda: interrupts.now))

        def order(job: Job, device: str) -> Order:
            spec = job.step.spec
            return Order(
                spec,
                tuple(map(str, roots)),
                device,
                slots.threads,
                job.attempt.shrink,
                checkpoints,
                federations.hashes[spec.federation_key],
                federations.copies.get(spec.federation_key),
            )

        def save(step: Step, result: RunResult, start: datetime) -> None:
            states[step.spec.hash] = writer.save(step, result, start)
            reporter.finished(step, result)

        reporter.started(len(steps))
        for step in steps:
            if step.spec.dataset in federations.missing_data:
                save(step, RunResult("no_data", str(federations.missing_data[step.spec.dataset])), now())
        scheduler = Scheduler(
            slots,
            workers,
            limits,
            deadline,
            Estimator(plan.history, slots.sort),
            interrupts,
            writer,
            reporter.note,
            board.logs,
            order,
            [Job(step) for step in ready_steps],
        )
        with closing(scheduler.results()) as results:
            for ending in results:
                if ending is not None:
                    step, result, start = ending
                    save(step, result, start)
                    if checkpoints is not None:
                        checkpoints.tidy(step.spec.hash, result.raised or result.state in SETTLED)
                    new_counts[result.state] += 1
                    board.ended(step, result)
                if follow_up is not None and not interrupts.finish:
                    new_steps = follow_up(store, {**states, **scheduler.skipped})
                    scheduler.waiting += [Job(step) for step in new_steps]
                    board.total += len(new_steps)
                board.show(scheduler.running.values(), scheduler.waiting, scheduler.estimator)
        states.update(scheduler.skipped)
        if checkpoints is not None:
            for spec_hash, state in scheduler.skipped.items():
                checkpoints.tidy(spec_hash, state in SETTLED)
        for reason, count in scheduler.left.items():
            reporter.note(f"{count:,} left: {reason}")
        if interrupts.finish:
            raise KeyboardInterrupt
    counts = Counter(
        states.get(step.planned.spec.hash, step.status) if step.planned.spec else step.status
        for step in plan.steps
    )
    failure_count = sum(new_counts[state] for state in FAILURES)
    return Outcome(dict(counts), new_counts.total(), failure_count, dict(scheduler.left))


def refuse_unimplemented(plan: Plan) -> None:
    """Refuse a request of which nothing exists.

    Raises:
        RequestError: every run of the plan is of a method or data set that is not implemented.
    """
    if all(step.status == "not_implemented" for step in plan.steps):
        raise RequestError(f"nothing to run: {plan.steps[0].reason}")


@contextmanager
def opened_backend(placement: Placement, runs: int, home: Path) -> Iterator[tuple[Slots, MakeWorkers]]:
    """Slots for ``runs`` runs, and what makes runs in them; what a backend has started ends at the end.
    The placement is one that ``check`` accepts.

    Raises:
        RequestError: the devices or the cluster are not there, or cannot do what is asked.
    """
    if placement.backend == "ray":
        from bench.sweep import ray_workers

        with ray_workers.ray_cluster(placement, runs) as places:
            yield places
    elif placement.backend == "slurm":
        from bench.sweep import slurm_workers

        yield slurm_workers.slurm(home / "slurm", placement, runs)
    else:
        yield choose(placement.devices, placement.jobs, placement.threads, runs), LocalWorkers


@contextmanager
def temporary_runs(
    specs: Iterable[RunSpec],
    roots: tuple[Path, ...],
    slots: Slots,
    reporter: Reporter,
    execute: Execute,
    build: Build = build_federation,
) -> Iterator[Store]:
    """A database with the runs of some specs, made as a sweep makes them; it goes with the context.

    Raises:
        RequestError: a federation cannot be what was asked for.
    """
    plan = make_plan(map(planned, specs), {}, lambda dataset: "")
    with TemporaryDirectory(prefix="bench-") as folder:
        url = f"sqlite:///{Path(folder, 'runs.db')}"
        sweep(plan, url, roots, slots, reporter, execute, build)
        with open_store(url, create=False) as store:
            yield store
