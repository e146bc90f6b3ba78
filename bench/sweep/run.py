"""Makes the runs that a plan says are to make, in worker processes, with one writer.

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
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, NamedTuple

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
from bench.sweep.display import Display, side_by_side
from bench.sweep.execution import Build, build_all, execute
from bench.sweep.order import Execute, Order
from bench.sweep.plan import Estimator, Step, kind_of, to_run
from bench.sweep.policy import NO_LIMITS, Limits, Placement, Slots
from bench.sweep.workers import LocalPool, Lost, MakePool, choose, thread_variables

BLOCKS = (1, 1, 2, 4)
"""How many times smaller than usual the blocks of clients are in each try of a run whose worker was lost or
that ran out of memory. It is alone on its device from the second try on. No number depends on blocks."""

HELD_BACK = 3
"""Runs of a method that fail before any succeeds, after which the rest of its runs is held back."""

TICK = 0.2
"""Seconds after which interrupts and the budget are looked at while nothing ends."""

CLAIM_PAUSE = 1.0
"""Seconds after which a run that another sweep was at is asked for again."""

FollowUp = Callable[[Store, Mapping[str, str]], Sequence[Step]]
"""Says what else is to run, given the states of ended runs by spec hash. It is asked whenever a run has
ended. Its runs are on federations of the plan."""


class Outcome(NamedTuple):
    """What a sweep came to: the planned runs by state, how many it ran, how many of these failed or ran out
    of memory, and how many it left by reason.
    """

    counts: dict[str, int]
    ran: int
    failed: int
    left: dict[str, int]


@dataclass(eq=False)
class Job:
    """A step that a sweep is to make: the ``number`` of its next try, not before ``held_until`` on the
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
        return BLOCKS[self.number - 1]

    @property
    def how(self) -> str:
        """The try in words."""
        return f"in blocks of 1/{self.shrink}" if self.shrink > 1 else "alone on the device"


@dataclass(eq=False)
class Sweep:
    """Makes the runs of a plan that are to make, one in each slot at a time, and stores each one as it ends.

    A run that fails, or whose process dies, is stored as failed, and the rest goes on within ``limits``.
    Under ``home`` the sweep keeps the output of failed runs (``logs/``) and checkpoints (``checkpoints/``),
    one every so many ``minutes``; without a home, neither. ``make_pool`` says where runs are made,
    ``estimator`` how long they take.
    """

    plan: Sequence[Step]
    database: str
    roots: tuple[Path, ...]
    slots: Slots
    display: Display
    estimator: Estimator
    execute: Execute = execute
    build: Build = build_federation
    limits: Limits = NO_LIMITS
    home: Path | None = None
    minutes: float = MINUTES
    make_pool: MakePool = LocalPool
    follow_up: FollowUp = lambda store, states: ()

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + (self.limits.budget or float("inf"))
        self._waiting: list[Job] = []
        self._running: dict[Future[RunResult], Job] = {}
        self._states: dict[str, str] = {}  # of every run that has ended, here or in another sweep
        self._ended: Counter[str] = Counter()  # results of this sweep by state
        self._left: Counter[str] = Counter()  # runs that were not begun by reason
        self._large_kinds: set[Kind] = set()
        self._raised: Counter[str] = Counter()
        self._sound_methods: set[str] = set()
        self._free_slots: dict[str, list[int]] = {}
        for slot, device in enumerate(self.slots.devices):
            self._free_slots.setdefault(device, []).append(slot)

    def run(self) -> Outcome:
        """Make the runs. The database is made only after every federation has been built.

        Raises:
            RequestError: a federation cannot be what was asked for, stored runs are of other clients, or no
                data set is to be had; nothing is written then. Or the database cannot be written.
            KeyboardInterrupt: after one interrupt when what ran is stored, after two, or a request to
                terminate, when the workers are stopped; what had not ended leaves nothing.
        """
        steps = to_run(self.plan)
        if steps:
            with ExitStack() as stack:
                self._make(steps, stack)
        counts = Counter(self._states.get(step.spec.hash, step.status) for step in self.plan)
        return Outcome(dict(counts), self._ended.total(), self._failures, dict(self._left))

    def _make(self, steps: Sequence[Step], stack: ExitStack) -> None:
        stack.enter_context(thread_variables(self.slots.threads))
        # Workers load while this goes on.
        self._pool = self.make_pool(len(self.slots.devices), self.execute, self.limits.timeout)
        stack.callback(self._pool.stop)
        for step in steps:
            fingerprint.of(step.spec)  # as it is now: files may be edited before a run is stored
        folder = stack.enter_context(TemporaryDirectory(prefix="bench-"))
        specs = [step.spec for step in steps]
        self._federations, missing_data = build_all(specs, self.roots, self.build, Path(folder))
        hashes = {key: shared.hash for key, shared in self._federations.items()}
        refuse_tuned_elsewhere(self.plan, hashes)
        ready_steps = [step for step in steps if step.spec.dataset not in missing_data]
        if not ready_steps and all(step.to_run for step in self.plan):
            raise next(iter(missing_data.values()))
        self._store = stack.enter_context(open_store(self.database, create=True))
        self._store.refuse_other_clients(hashes, {spec.hash for spec in specs})
        if self.home is not None:
            with suppress(OSError):  # no log can be written then, beside a database that can
                (self.home / "logs").mkdir(parents=True, exist_ok=True)
        stack.enter_context(self.display)
        self._interrupts = stack.enter_context(heard_interrupts())
        claims = Claims(self._store, lambda: self._interrupts.now, self._progress)
        self._claims = stack.enter_context(claims)
        stack.callback(self._pool.stop)  # before the claims end
        self.display.started(len(steps))
        for step in steps:
            if step.spec.dataset in missing_data:
                self._save(step, RunResult("no_data", str(missing_data[step.spec.dataset])), now())
        self._waiting = list(map(Job, ready_steps))
        self._loop()
        for reason, count in self._left.items():
            self.display.note(f"{count:,} left: {reason}")
        if self._interrupts.finish:
            raise KeyboardInterrupt

    def _loop(self) -> None:
        """Make the jobs that wait, and those that follow."""
        is_announced = False
        while True:
            before = time.monotonic()
            self._fill()
            if self._running:
                for future in wait(self._running, TICK, FIRST_COMPLETED).done:
                    self._end(self._running.pop(future), future.result())
            elif not self._hold() and any(job.held_until > before for job in self._waiting):
                time.sleep(TICK)  # other sweeps are at all that is left
            else:
                break
            self._claims.renew()
            if self._interrupts.now:
                raise KeyboardInterrupt
            if self._interrupts.finish and not is_announced:
                is_announced = True
                runs = f"{len(self._running)} running to be finished and stored"
                self.display.note(f"interrupted: {runs}; Ctrl-C again stops now")
        if self._waiting:
            budget = f"not to be done within the budget of {(self.limits.budget or 0) / 3600:g} h"
            self._left[self._hold() or budget] += len(self._waiting)

    @property
    def _failures(self) -> int:
        """How many runs have failed or did not fit."""
        return sum(self._ended[state] for state in FAILURES)

    # What starts --------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Start what can start, and leave out what another sweep has done."""
        while not self._hold() and (choice := self._choice()):
            job, device = choice
            spec_hash = job.step.spec.hash
            is_taken = self._claims.take(spec_hash, job.step.name, device)
            state = job.step.ended_elsewhere(self._claims.ask(partial(self._store.stored, spec_hash)))
            if not is_taken and not state:
                job.held_until = time.monotonic() + CLAIM_PAUSE
                continue
            self._waiting.remove(job)
            if not state:
                self._begin(job, device)
                continue
            if is_taken:
                self._claims.drop(spec_hash)
            self._states[spec_hash] = state
            self.display.note(f"{job.step.name}: {state} in another sweep")
            self._follow(job.step, state in SETTLED)

    def _hold(self) -> str:
        """Why nothing new starts; empty where it may."""
        if self._interrupts.finish:
            return "interrupted"
        if self.limits.failures is not None and self._failures >= self.limits.failures:
            return f"stopped after {self._failures} failed"
        return ""

    def _is_alone(self, job: Job) -> bool:
        """Whether nothing else may run beside it: it is tried again, or its kind has run out of memory."""
        return job.number > 1 or kind_of(job.step.spec) in self._large_kinds

    def _choice(self) -> tuple[Job, str] | None:
        """The first job that can start now and is expected to end in time, and the device with the fewest
        runs.

        A device takes nothing beside a job that must be alone, nor before it while that waits for the device
        to be empty. A cluster sees to that itself.
        """

        def fills_device(job: Job) -> bool:
            return self._is_alone(job) and not self.slots.elsewhere

        loads = Counter(job.device for job in self._running.values())
        closed = {job.device for job in self._running.values() if fills_device(job)}
        moment = time.monotonic()
        for job in self._waiting:
            seconds = self.estimator.seconds(job.step.spec) or 0.0
            if job.held_until > moment or moment + seconds > self._deadline:
                continue
            devices = [device for device in self._free_slots if device not in closed]
            if not devices:
                return None
            device = min(devices, key=lambda name: loads[name])
            if fills_device(job) and loads[device]:
                closed.add(device)
            elif self._free_slots[device]:
                return job, device
        return None

    def _begin(self, job: Job, device: str) -> None:
        job.slot, job.device, job.started = self._free_slots[device].pop(), device, now()
        shared = self._federations[job.step.spec.federation_key]
        order = Order(
            job.step.spec,
            tuple(str(root.absolute()) for root in self.roots),
            device,
            self.slots.threads,
            job.shrink,
            self._file(job.step, "checkpoints", "pt"),
            self.minutes,
            shared.hash,
            shared.file,
            fingerprint.of(job.step.spec).source if self.slots.elsewhere else "",
            log=self._file(job.step, "logs", "log"),
            is_new=job.number == 1,
            alone=self._is_alone(job),
        )
        self._running[self._pool.start(job.slot, order)] = job

    def _file(self, step: Step, folder: str, suffix: str) -> Path | None:
        return None if self.home is None else self.home / folder / f"{step.spec.hash}.{suffix}"

    def _progress(self) -> dict[str, Any]:
        """How far the sweep is."""
        moment, jobs = now(), len(self.slots.devices)
        times = [self.estimator.seconds(job.step.spec) for job in self._waiting]
        for job in self._running.values():
            seconds = self.estimator.seconds(job.step.spec)
            times.append(seconds and max(seconds - (moment - job.started).total_seconds(), 0.0))
        known = [seconds for seconds in times if seconds is not None]
        return {
            "jobs": jobs,
            "total": self._ended.total() + len(times),
            "counts": dict(self._ended),
            "left": len(self._waiting),
            "ends": moment + timedelta(seconds=side_by_side(known, jobs)) if known else None,
            "unknown_times": times.count(None),
        }

    # What ends ------------------------------------------------------------------------------------

    def _end(self, job: Job, result: RunResult) -> None:
        """Store what came of a job, or have it tried again."""
        self._free_slots[job.device].append(job.slot)
        if result.state == "oom":
            self._large_kinds.add(kind_of(job.step.spec))
        if result.state == "oom" or isinstance(result, Lost):
            if job.number < len(BLOCKS):
                next_job = Job(job.step, job.number + 1)
                self._waiting.insert(0, next_job)
                self.display.note(f"{job.step.name}: {result.reason}; trying again {next_job.how}")
                return
            result.reason += f"; tried {job.number} times, at last {job.how}"
            result.device = job.device
        self._ended[result.state] += 1
        if result.state in COMPLETE:
            self.estimator.add(job.step.spec, result.seconds.get("total", 0.0), result.device)
        log = self._file(job.step, "logs", "log")
        if log is not None and log.exists():
            if result.state in FAILURES:
                result.traceback = f"{result.traceback}\nlog: logs/{log.name} in BENCH_HOME\n".lstrip()
            else:
                with suppress(OSError):  # what stays there costs room alone
                    log.unlink()
        self._hold_back(job.step.spec.method, result)
        self._save(job.step, result, job.started)
        self._follow(job.step, result.raised or result.state in SETTLED)

    def _hold_back(self, method: str, result: RunResult) -> None:
        """Leave the rest of a method's runs whose first ones have all raised an exception."""
        if result.state in SETTLED:
            self._sound_methods.add(method)
        self._raised[method] += result.raised
        if method in self._sound_methods or self._raised[method] < HELD_BACK:
            return
        held_jobs = [job for job in self._waiting if job.step.spec.method == method]
        if held_jobs:
            reason = f"{method} is held back: its first {HELD_BACK} runs failed, the last with "
            self._waiting = [job for job in self._waiting if job not in held_jobs]
            self._left[reason + result.reason] += len(held_jobs)
            self.display.note(reason + result.reason)

    def _save(self, step: Step, result: RunResult, started: datetime) -> None:
        """Store a result by the rule of ``Store.save``, and say so.

        The machine is this one unless the result says another; it is unknown of a run lost elsewhere.
        """
        shared = self._federations.get(step.spec.federation_key)
        result.started, result.code = started, result.code or fingerprint.of(step.spec)
        if not result.environment and not self.slots.elsewhere:
            result.environment = describe(result.device, self.slots.threads)
        provenance = shared.provenance if shared else {}
        row = self._claims.ask(lambda: self._store.save(step.spec, result, provenance))
        self._states[step.spec.hash] = row.state if step.is_new(row) else step.status
        self.display.finished(step, result)

    def _follow(self, step: Step, is_over: bool) -> None:
        """Ask what follows a run that has ended, here or in another sweep. What a killed worker has
        half-written goes; so does the checkpoint of a run that ``is_over``.
        """
        checkpoint = self._file(step, "checkpoints", "pt")
        if checkpoint is not None:
            with suppress(OSError):  # what stays there costs room alone
                for file in (*unfinished_files(checkpoint), *([checkpoint] if is_over else [])):
                    file.unlink(missing_ok=True)
        if not self._interrupts.finish:
            self._waiting += map(Job, self.follow_up(self._store, self._states))


def refuse_tuned_elsewhere(plan: Sequence[Step], hashes: Mapping[FederationKey, str]) -> None:
    """Raises ``RequestError`` where a configuration was tuned on other clients than those of ``hashes``,
    as it may have been trained on items that test now.
    """
    for step in plan:
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
    """What a sweep was asked meanwhile. ``finish``: start nothing new. ``now``: do not wait for what runs
    either.
    """

    finish = now = False

    def hear(self, number: int, _frame: FrameType | None) -> None:
        """Take a signal."""
        self.now = self.finish or number == signal.SIGTERM
        self.finish = True


@contextmanager
def heard_interrupts() -> Iterator[Interrupts]:
    """Interrupts that signals are taken by; none outside of the main thread, nor signals that the process was
    started to ignore.
    """
    interrupts = Interrupts()
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, interrupts.hear)
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
