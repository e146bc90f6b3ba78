"""Make the runs of a plan, with one writer: start runs in slots, store their results, retry some."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.engine.checkpoint import MINUTES
from bench.engine.result import RunResult
from bench.engine.states import FAILURES, SETTLED
from bench.errors import RequestError
from bench.federation.build import build as build_federation
from bench.runner import Placement, fingerprint
from bench.runner.claims import Claims
from bench.runner.display import Display
from bench.runner.execution import Build, build_all, execute
from bench.runner.plan import Kind, Step, kind_of, to_run
from bench.runner.workers import Execute, Lost, Order, Pool, choose, thread_variables
from bench.spec import FederationKey, RunSpec
from bench.store import Store, open_store
from bench.store.store import now

BLOCKS = (1, 1, 2, 4)
"""Factor by which blocks of clients are smaller than usual, for each try of a run. A run is retried if its
worker was lost or it ran out of memory. No number depends on blocks."""

HELD_BACK = 3
"""If so many runs of a method fail before any succeeds, the rest of its runs is held back."""

TICK = 0.2
CLAIM_PAUSE = 1.0
"""Seconds between looks at signals, and until a run that another sweep holds is asked for again."""

FollowUp = Callable[[Store, Mapping[str, str]], Sequence[Step]]
"""Returns the steps to run after a run that has ended, given the states of ended runs by spec hash. The
plan must have their federations."""


class Outcome(NamedTuple):
    """The result of a sweep."""

    counts: dict[str, int]  # planned runs by state
    ran: int
    failed: int
    left: dict[str, int]  # held-back runs by reason


@dataclass(eq=False)
class Job:
    """A step that waits for a try, or that runs in a slot."""

    step: Step
    number: int = 1  # the number of the try, from 1
    held_until: float = 0.0  # on the monotonic clock
    slot: int = -1
    started: datetime | None = None


@dataclass(eq=False)
class Sweep:
    """Makes the runs of a plan that are to run, one in each slot of a pool at a time, and stores each run
    when it ends; closes the pool. A run is stored as failed if it fails, takes longer than ``timeout``
    seconds or its process dies; the sweep goes on.

    Under ``home`` (``checkpoints/``) the sweep saves a checkpoint of every run each ``minutes`` minutes.
    """

    plan: Sequence[Step]
    database: str
    roots: tuple[Path, ...]
    pool: Pool
    display: Display
    execute: Execute = execute
    build: Build = build_federation
    home: Path | None = None
    minutes: float = MINUTES
    timeout: float | None = None
    follow_up: FollowUp = lambda store, states: ()

    def __post_init__(self) -> None:
        self._waiting: list[Job] = []
        self._running: dict[Future[RunResult], Job] = {}
        self._states: dict[str, str] = {}  # of every ended run, here or in another sweep, by spec hash
        self._ended: Counter[str] = Counter()  # results of this sweep by state
        self._left: Counter[str] = Counter()  # held-back runs by reason
        self._failures: Counter[str] = Counter()  # by method
        self._large_kinds: set[Kind] = set()  # kinds with a run that ran out of memory
        self._sound_methods: set[str] = set()  # methods with a run that succeeded

    def run(self) -> Outcome:
        """Make the runs. The database is created only after all federations have been built.

        Raises:
            RequestError: a federation cannot be built as asked, stored runs have other clients, every
                data set is missing, or the database cannot be written.
            KeyboardInterrupt: after one interrupt, once the running runs are stored; after two, or a
                request to terminate, once the workers are stopped: unfinished runs are not stored.
        """
        if steps := to_run(self.plan):
            folder = TemporaryDirectory(prefix="bench-")
            with thread_variables(self.pool.threads), folder as federations, closing(self.pool):
                self.pool.open(self.execute, self.timeout)  # workers load while federations are built
                self._build(steps, Path(federations))
                with open_store(self.database, create=True) as self._store:
                    self._make(steps)
        counts = Counter(self._states.get(step.spec.hash, step.status) for step in self.plan)
        failed = sum(self._ended[state] for state in FAILURES)
        return Outcome(dict(counts), self._ended.total(), failed, dict(self._left))

    def _build(self, steps: Sequence[Step], folder: Path) -> None:
        """Build every federation. Raise if runs were tuned on other clients, or if no data set is at hand."""
        specs = [step.spec for step in steps]
        self._federations, self._missing_data = build_all(specs, self.roots, self.build, folder)
        self._hashes = {key: shared.hash for key, shared in self._federations.items()}
        refuse_tuned_elsewhere(self.plan, self._hashes)
        if all(step.to_run and step.spec.dataset in self._missing_data for step in self.plan):
            raise next(iter(self._missing_data.values()))

    def _make(self, steps: Sequence[Step]) -> None:
        """Make the runs, and the runs that follow them."""
        self._store.refuse_other_clients(self._hashes, {step.spec.hash for step in steps})
        with (
            self.display,
            heard_signals() as self._signals,
            Claims(self._store, self._stops_now) as self._claims,
            closing(self.pool),  # the pool closes before the claims end
        ):
            self.display.started(len(steps))
            for step in steps:
                if problem := self._missing_data.get(step.spec.dataset):
                    self._save(step, RunResult("no_data", str(problem)))
                else:
                    self._waiting.append(Job(step))
            self._loop()
        for reason, count in self._left.items():
            self.display.note(f"{count:,} left: {reason}")
        if self._signals:
            raise KeyboardInterrupt

    def _loop(self) -> None:
        is_announced = False
        while self._running or (self._waiting and not self._signals):
            self._fill()
            if not self._running:
                time.sleep(TICK)  # other sweeps hold all runs that are left
            for future in wait(self._running, TICK, FIRST_COMPLETED).done:
                self._end(self._running.pop(future), future.result())
            self._claims.renew()
            if self._stops_now():
                raise KeyboardInterrupt
            if self._signals and not is_announced:
                is_announced = True
                runs = f"{len(self._running)} running to be finished and stored"
                self.display.note(f"interrupted: {runs}; Ctrl-C again stops now")

    def _stops_now(self) -> bool:
        """Return whether the sweep stops without waiting for running runs."""
        return len(self._signals) > 1 or signal.SIGTERM in self._signals

    # What starts --------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Start waiting jobs in their order while slots are free; drop jobs that another sweep has done."""
        for job in [job for job in self._waiting if job.held_until <= time.monotonic()]:
            slot = self._free_slot(job)
            if slot is None or self._signals:
                return
            step, spec_hash = job.step, job.step.spec.hash
            is_taken = self._claims.take(spec_hash, step.name, self.pool.devices[slot])
            stored = self._claims.ask(partial(self._store.states, spec_hash)).get(spec_hash)
            state = step.ended_elsewhere(stored)
            if state:
                self._waiting.remove(job)
                self._claims.drop(spec_hash)
                self._states[spec_hash] = state
                self.display.note(f"{step.name}: {state} in another sweep")
                self._follow(step, state)
            elif is_taken:
                self._waiting.remove(job)
                self._begin(job, slot)
            else:
                job.held_until = time.monotonic() + CLAIM_PAUSE

    def _free_slot(self, job: Job) -> int | None:
        """Return a free slot on the device with the fewest runs; None if there is none. A job is alone on its
        device from its second try on, or if a run of its kind has run out of memory. This does not hold on a
        cluster: what else runs on its machines is not known.
        """
        devices = self.pool.devices
        loads = Counter(devices[other.slot] for other in self._running.values())
        slots = {*range(len(devices))} - {other.slot for other in self._running.values()}
        if not self.pool.elsewhere:
            closed = {devices[other.slot] for other in self._running.values() if self._is_large(other)}
            closed |= loads.keys() if self._is_large(job) else set()
            slots = {slot for slot in slots if devices[slot] not in closed}
        return min(slots, key=lambda slot: (loads[devices[slot]], slot), default=None)

    def _is_large(self, job: Job) -> bool:
        return job.number > 1 or kind_of(job.step.spec) in self._large_kinds

    def _begin(self, job: Job, slot: int) -> None:
        job.slot, job.started = slot, now()
        spec = job.step.spec
        shared = self._federations[spec.federation_key]
        order = Order(
            spec,
            tuple(str(root.absolute()) for root in self.roots),
            self.pool.devices[slot],
            self.pool.threads,
            BLOCKS[job.number - 1],
            self._checkpoint(spec),
            self.minutes,
            shared.hash,
            shared.file,
        )
        self._running[self.pool.start(slot, order)] = job

    def _checkpoint(self, spec: RunSpec) -> Path | None:
        return None if self.home is None else self.home / "checkpoints" / f"{spec.hash}.pt"

    # What ends ------------------------------------------------------------------------------------

    def _end(self, job: Job, result: RunResult) -> None:
        """Store the result of a job, or queue the job for a retry."""
        step = job.step
        result.device, result.started = self.pool.devices[job.slot], job.started
        if result.state == "oom":
            self._large_kinds.add(kind_of(step.spec))
        if result.state == "oom" or isinstance(result, Lost):
            if job.number < len(BLOCKS):
                shrink = BLOCKS[job.number]
                how = f" in blocks of 1/{shrink}" if shrink > 1 else ""
                self._waiting.insert(0, Job(step, job.number + 1))
                self.display.note(f"{step.name}: {result.reason}; trying again{how}")
                return
            result.reason += f"; tried {len(BLOCKS)} times, at last in blocks of 1/{BLOCKS[-1]}"
        self._ended[result.state] += 1
        self._hold_back(step.spec.method, result)
        self._fill()  # the free slot works while the result is stored
        self._save(step, result)
        self._follow(step, result.state)

    def _hold_back(self, method: str, result: RunResult) -> None:
        """Drop a method's waiting runs if its first runs have all failed."""
        if result.state in SETTLED:
            self._sound_methods.add(method)
        self._failures[method] += result.state == "failed" and not isinstance(result, Lost)
        others = [job for job in self._waiting if job.step.spec.method != method]
        count = len(self._waiting) - len(others)
        if count and self._failures[method] >= HELD_BACK and method not in self._sound_methods:
            failures = f"its first {HELD_BACK} runs failed, the last with {result.reason}"
            self._left[f"{method} is held back: {failures}"] += count
            self._waiting = others

    def _save(self, step: Step, result: RunResult) -> None:
        """Store a result by the rule of ``Store.save``, and display it."""
        shared = self._federations.get(step.spec.federation_key)
        result.code = result.code or fingerprint.of(step.spec)
        provenance = shared.provenance if shared else {}
        row = self._claims.ask(lambda: self._store.save(step.spec, result, provenance))
        self._states[step.spec.hash] = row.state if step.is_new(row) else step.status
        self.display.finished(step, result)

    def _follow(self, step: Step, state: str) -> None:
        """Queue the steps that follow an ended run (of any sweep); remove a settled run's checkpoint."""
        checkpoint = self._checkpoint(step.spec)
        if checkpoint is not None and state in SETTLED:
            with suppress(OSError):  # a file that stays costs only space
                checkpoint.unlink(missing_ok=True)
        if not self._signals:
            self._waiting += map(Job, self.follow_up(self._store, self._states))


def refuse_tuned_elsewhere(plan: Sequence[Step], hashes: Mapping[FederationKey, str]) -> None:
    """Refuse configurations tuned on other clients: their training items may be test items now."""
    for step in plan:
        tuned_on = step.planned.tuned_on
        if tuned_on and hashes.get(step.spec.federation_key, tuned_on) != tuned_on:
            problem = f"{step.name} was tuned on other clients than there are now"
            raise RequestError(f"--use-tuned: {problem}: run bench tune for it, or leave it out")


def opened_pool(placement: Placement, runs: int, home: Path) -> Pool:
    """Return a pool for ``runs`` runs. Raises ``RequestError`` if an extra, device or cluster is missing."""
    try:
        if placement.backend == "ray":
            from bench.runner.ray_workers import RayPool

            return RayPool(placement, runs)
        if placement.backend == "slurm":
            from bench.runner.slurm_workers import SlurmPool

            return SlurmPool(home / "slurm", placement, runs)
    except ImportError as error:
        extra = f"pip install 'pfl-bench[{placement.backend}]'"
        raise RequestError(f"--backend {placement.backend}: {extra}") from error
    return choose(placement.devices, placement.jobs, placement.threads, runs)


@contextmanager
def heard_signals() -> Iterator[list[int]]:
    """Collect interrupts and requests to terminate, in the main thread; ignored signals stay ignored."""
    heard: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    heeded = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda number, _: heard.append(number)) for number in heeded}
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
