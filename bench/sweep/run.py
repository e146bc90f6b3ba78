"""Runs what a plan says is to run, in worker processes, with one writer.

The loop decides what starts when and where, what is tried again, and when nothing new starts.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from bench.engine.checkpoint import MINUTES
from bench.engine.result import RunResult
from bench.engine.states import COMPLETE, FAILURES, SETTLED
from bench.environment import describe
from bench.errors import RequestError
from bench.federation.build import build as build_federation
from bench.replacement import unfinished_files
from bench.spec import FederationKey
from bench.store import Store, open_store
from bench.store.store import Kind, now
from bench.sweep import fingerprint
from bench.sweep.claims import Claims
from bench.sweep.display import Reporter, side_by_side
from bench.sweep.execution import Build, Federations, build_all, execute
from bench.sweep.order import Execute, Order
from bench.sweep.plan import Estimator, Plan, Step, kind_of
from bench.sweep.policy import Limits, Placement, Slots
from bench.sweep.workers import LocalPool, Lost, MakePool, Pool, choose, thread_variables

TRIES = 4
"""How often a run is tried whose worker was lost or that ran out of memory: beside other runs, alone on its
device, and in blocks of a half and of a quarter of the clients. No number depends on blocks."""

HELD_BACK = 3
"""Runs of a method that fail before any succeeds, after which the rest of its runs is held back."""

TICK = 0.2
"""Seconds after which interrupts and the budget are looked at while nothing ends."""

CLAIM_PAUSE = 1.0
"""Seconds after which a run that another sweep was at is asked for again."""

FollowUp = Callable[[Store, Mapping[str, str]], Sequence[Step]]
"""What else is to run, given the states of the runs that have ended by spec hash; asked whenever one has.
Its federations are among those of the plan."""


@dataclass(frozen=True)
class Outcome:
    """Where every planned run stands after a sweep, by state; how many it ran and how many of those
    failed or did not fit; and how many it left, by reason.
    """

    counts: dict[str, int]
    ran: int
    failed: int = 0
    left: dict[str, int] = field(default_factory=dict)


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
    make_pool: MakePool = LocalPool,
    follow_up: FollowUp = lambda store, states: (),
) -> Outcome:
    """Do the runs of a plan that are to do and store each one as it ends.

    The database is made only after every federation has been built. A run that fails, or whose
    process dies, is stored as such and the rest goes on, within ``limits``. Under ``home`` the sweep
    keeps the output of failed runs (``logs/``) and saves what runs every
    so many ``minutes`` (``checkpoints/``), from where it goes on after a kill; without it, neither.
    ``make_pool`` says where runs are made. ``follow_up`` is asked for more whenever one has ended.

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
    with ExitStack() as stack:
        stack.enter_context(thread_variables(slots.threads))
        pool = make_pool(len(slots.devices), execute, limits.timeout)  # workers load while this goes on
        stack.callback(pool.stop)
        for step in steps:
            fingerprint.of(step.spec)  # as it is now: files may be edited before a run is stored
        folder = None if slots.elsewhere else Path(stack.enter_context(TemporaryDirectory(prefix="bench-")))
        federations, missing_data = build_all((step.spec for step in steps), roots, build, folder)
        hashes = {key: shared.hash for key, shared in federations.items()}
        refuse_tuned_elsewhere(plan, hashes)
        ready_steps = [step for step in steps if step.spec.dataset not in missing_data]
        if not ready_steps and all(step.to_run for step in plan.steps):
            raise next(iter(missing_data.values()))
        store = stack.enter_context(open_store(database, create=True))
        store.refuse_other_clients(hashes, {step.spec.hash for step in steps})
        stack.enter_context(reporter)
        interrupts = stack.enter_context(Interrupts(reporter.note))
        claims = stack.enter_context(Claims(store, lambda: interrupts.now))
        stack.callback(pool.stop)  # before the claims end
        loop = Loop(
            slots=slots,
            pool=pool,
            store=store,
            claims=claims,
            interrupts=interrupts,
            reporter=reporter,
            limits=limits,
            deadline=deadline,
            estimator=Estimator(plan.history, slots.sort),
            roots=tuple(map(str, roots)),
            federations=federations,
            home=home,
            minutes=minutes,
            follow_up=follow_up,
            waiting=list(map(Job, ready_steps)),
        )
        reporter.started(len(steps))
        for step in steps:
            if step.spec.dataset in missing_data:
                loop.save(step, RunResult("no_data", str(missing_data[step.spec.dataset])), now())
        loop.run()
        for reason, count in loop.left.items():
            reporter.note(f"{count:,} left: {reason}")
        if interrupts.finish:
            raise KeyboardInterrupt
    counts = Counter(loop.states.get(step.spec.hash, step.status) for step in plan.steps)
    return Outcome(dict(counts), loop.ended.total(), loop.failures, dict(loop.left))


def refuse_tuned_elsewhere(plan: Plan, hashes: Mapping[FederationKey, str]) -> None:
    """Raises ``RequestError`` where a configuration was tuned on other clients than those of ``hashes``,
    as it may have been trained on items that test now.
    """
    for step in plan.steps:
        tuned_on, partition = step.planned.tuned_on, hashes.get(step.spec.federation_key, "")
        if tuned_on and partition and tuned_on != partition:
            raise RequestError(
                f"--use-tuned: {step.name} was tuned on other clients ({tuned_on[:8]}) than there are "
                f"now ({partition[:8]}): run bench tune for it, or leave it out"
            )


@contextmanager
def opened_backend(placement: Placement, runs: int, home: Path) -> Iterator[tuple[Slots, MakePool]]:
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
        yield choose(placement.devices, placement.jobs, placement.threads, runs), LocalPool


class Interrupts:
    """Counts what asks the sweep to stop; used as a context manager around it.

    Outside of the main thread, and for a signal that the process was started to ignore, nothing is
    installed. ``finish``: start nothing new. ``now``: do not wait for what runs either.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._is_announced = False
        self._before: dict[signal.Signals, Any] = {}
        self.finish = self.now = False

    def __enter__(self) -> Interrupts:
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

    def heed(self, running: int) -> None:
        """Say once what an interrupt does; raise ``KeyboardInterrupt`` where the sweep is to stop now."""
        if self.now:
            raise KeyboardInterrupt
        if self.finish and not self._is_announced:
            self._is_announced = True
            self._say(f"interrupted: {running} running to be finished and stored; Ctrl-C again stops now")


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


@dataclass(eq=False, kw_only=True)
class Loop:
    """Gives jobs to a pool, one for each slot, and stores what comes of them.

    ``deadline`` is the end of the budget on the monotonic clock; the other fields are as of ``sweep``.

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
    home: Path | None
    minutes: float
    follow_up: FollowUp
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
        self._logs: Path | None = None
        with suppress(OSError):  # they cannot be written, beside a database that can
            if self.home is not None:
                (self.home / "logs").mkdir(parents=True, exist_ok=True)
                self._logs = self.home / "logs"

    def run(self) -> None:
        """Do the jobs that wait, and those that follow.

        Raises:
            RequestError: the database cannot be written.
            KeyboardInterrupt: the sweep is to stop now.
        """
        while True:
            before = time.monotonic()
            self._fill()
            if self.running:
                for future in wait(self.running, TICK, FIRST_COMPLETED).done:
                    self._end(self.running.pop(future), future.result())
                    self._renew()  # a database that is busy may keep each waiting
            elif not self._hold() and any(job.held_until > before for job in self.waiting):
                time.sleep(TICK)  # other sweeps are at all that is left
            else:
                break
            self._renew()
            self.interrupts.heed(len(self.running))
        if self.waiting:
            budget = f"not to be done within the budget of {(self.limits.budget or 0) / 3600:g} h"
            self.left[self._hold() or budget] += len(self.waiting)

    @property
    def failures(self) -> int:
        """How many runs have failed or did not fit."""
        return sum(self.ended[state] for state in FAILURES)

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
            state = job.step.ended_elsewhere(self.claims.ask(partial(self.store.stored, spec_hash)))
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
        if self.limits.failures is not None and self.failures >= self.limits.failures:
            return f"stopped after {self.failures} failed"
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
            self._checkpoint(job.step),
            self.minutes,
            shared.hash,
            shared.file,
            log=self._log(job.step),
            is_new=job.number == 1,
            alone=self._is_alone(job),
        )
        self.running[self.pool.start(slot, order)] = job

    def _log(self, step: Step) -> Path | None:
        return None if self._logs is None else self._logs / f"{step.spec.hash}.log"

    def _checkpoint(self, step: Step) -> Path | None:
        return None if self.home is None else self.home / "checkpoints" / f"{step.spec.hash}.pt"

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

    def _end(self, job: Job, result: RunResult | Lost) -> None:
        """Store what came of a job, or have it tried again."""
        self._free_slots.append(job.slot)
        reason = result.how if isinstance(result, Lost) else result.reason
        is_large = isinstance(result, RunResult) and result.state == "oom"
        if is_large:
            self._large.add(kind_of(job.step.spec))
        if (is_large or isinstance(result, Lost)) and job.number < TRIES:
            next_job = Job(job.step, job.number + 1)
            self.waiting.insert(0, next_job)
            self.reporter.note(f"{job.step.name}: {reason}; trying again {next_job.how}")
            return
        if isinstance(result, Lost):
            result = RunResult("failed", f"{reason}, {job.number} times", device=job.device)
        elif is_large:
            result.reason = f"{reason}; tried {job.number} times, at last {job.how}"
        self._learn(job.step, result)
        self.save(job.step, result, job.started)
        self._follow(job.step, result.raised or result.state in SETTLED)

    def _learn(self, step: Step, result: RunResult) -> None:
        """Learn from a result that will be stored, and keep the log of a failure alone."""
        log, method = self._log(step), step.spec.method
        self.ended[result.state] += 1
        if result.state in COMPLETE:
            self.estimator.add(step.spec, result.seconds.get("total", 0.0), result.device)
        if log is not None and log.exists():
            if result.state in FAILURES:
                result.traceback = f"{result.traceback}\nlog: logs/{log.name} in BENCH_HOME\n".lstrip()
            else:
                log.unlink()
        if result.state in SETTLED:
            self._sound.add(method)
        self._raised[method] += result.raised
        if method not in self._sound and self._raised[method] >= HELD_BACK:
            held_jobs = [job for job in self.waiting if job.step.spec.method == method]
            self.waiting = [job for job in self.waiting if job not in held_jobs]
            if held_jobs:
                reason = f"{method} is held back: its first {HELD_BACK} runs failed, the last with "
                self.left[reason + result.reason] += len(held_jobs)
                self.reporter.note(reason + result.reason)

    def save(self, step: Step, result: RunResult, started: datetime) -> None:
        """Store a result by the rule of ``Store.save``, and say so.

        The machine is this one unless the result says another; it is unknown of a run lost elsewhere.
        """
        shared = self.federations.get(step.spec.federation_key)
        result.started, result.code = started, result.code or fingerprint.of(step.spec)
        if not result.environment and not self.slots.elsewhere:
            result.environment = describe(result.device, self.slots.threads)
        provenance = shared.provenance if shared else {}
        row = self.claims.ask(lambda: self.store.save(step.spec, result, provenance))
        self.states[step.spec.hash] = row.state if step.is_new(row) else step.status
        self.reporter.finished(step, result)

    def _follow(self, step: Step, is_over: bool) -> None:
        """Nothing is left of a run that has ended, here or elsewhere, but what follows it: not what a killed
        worker has half-written, nor what was saved of a run that ``is_over``.
        """
        checkpoint = self._checkpoint(step)
        if checkpoint is not None:
            with suppress(OSError):  # what stays there costs room alone
                for file in (*unfinished_files(checkpoint), *([checkpoint] if is_over else [])):
                    file.unlink(missing_ok=True)
        if not self.interrupts.finish:
            self.waiting += map(Job, self.follow_up(self.store, self.states))
