"""Makes the runs of a plan, with one writer: what starts when and where, and what is tried again."""

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
from typing import Any, NamedTuple

from bench.engine.checkpoint import MINUTES
from bench.engine.result import RunResult
from bench.engine.states import FAILURES, SETTLED
from bench.errors import NoDataError, RequestError
from bench.federation.build import build as build_federation
from bench.replacement import unfinished_files
from bench.runner import fingerprint
from bench.runner.claims import Claims
from bench.runner.display import Display
from bench.runner.execution import Build, build_all, execute
from bench.runner.order import Execute, Order
from bench.runner.plan import Kind, Step, kind_of, to_run
from bench.runner.policy import Placement
from bench.runner.workers import Lost, Pool, choose, thread_variables
from bench.spec import FederationKey, RunSpec
from bench.store import Store, open_store
from bench.store.store import now

BLOCKS = (1, 1, 2, 4)
"""How many times smaller than usual the blocks of clients are in each try of a run whose worker was lost or
that ran out of memory. No number depends on blocks."""

HELD_BACK = 3
"""Runs of a method that fail before any succeeds, after which the rest of its runs is held back."""

TICK = 0.2
CLAIM_PAUSE = 1.0
"""Seconds after which signals are looked at, and a run that another sweep was at is asked for again."""

FollowUp = Callable[[Store, Mapping[str, str]], Sequence[Step]]
"""Says, whenever a run has ended, what else is to run, given the states of ended runs by spec hash. Its runs
are on federations of the plan."""


class Outcome(NamedTuple):
    """The planned runs by state, how many a sweep ran, how many of these went wrong, and how many it held
    back by reason.
    """

    counts: dict[str, int]
    ran: int
    failed: int
    left: dict[str, int]


@dataclass(eq=False)
class Job:
    """A step that waits for its try of some ``number``, not before ``held_until`` on the monotonic clock; or
    that runs in a slot.
    """

    step: Step
    number: int = 1
    held_until: float = 0.0
    slot: int = -1
    started: datetime | None = None


@dataclass(eq=False)
class Sweep:
    """Makes the runs of a plan that are to make, one in each slot of a pool at a time, and stores each one as
    it ends. The pool is closed in the end.

    A run that fails, that takes longer than ``timeout`` seconds or whose process dies, is stored as failed,
    and the rest goes on. Under ``home`` the sweep keeps the output of failed runs (``logs/``) and checkpoints
    (``checkpoints/``), one every so many ``minutes``; without a home, neither.
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
        self._states: dict[str, str] = {}  # of every run that has ended, here or in another sweep
        self._ended: Counter[str] = Counter()  # results of this sweep by state
        self._left: Counter[str] = Counter()  # runs that were held back by reason
        self._failures: Counter[str] = Counter()  # by method
        self._large_kinds: set[Kind] = set()  # those of which a run has run out of memory
        self._sound_methods: set[str] = set()  # those of which a run has succeeded

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
            with (
                thread_variables(self.pool.threads),
                TemporaryDirectory(prefix="bench-") as folder,
                closing(self.pool),
            ):
                self.pool.open(self.execute, self.timeout)  # workers load while federations are built
                missing_data = self._build(steps, Path(folder))
                with open_store(self.database, create=True) as self._store:
                    self._make(steps, missing_data)
        counts = Counter(self._states.get(step.spec.hash, step.status) for step in self.plan)
        failed = sum(self._ended[state] for state in FAILURES)
        return Outcome(dict(counts), self._ended.total(), failed, dict(self._left))

    def _build(self, steps: Sequence[Step], folder: Path) -> dict[str, NoDataError]:
        """Build every federation; returned is why data sets are not to be had."""
        specs = [step.spec for step in steps]
        self._federations, missing_data = build_all(specs, self.roots, self.build, folder)
        self._hashes = {key: shared.hash for key, shared in self._federations.items()}
        refuse_tuned_elsewhere(self.plan, self._hashes)
        if all(step.to_run and step.spec.dataset in missing_data for step in self.plan):
            raise next(iter(missing_data.values()))
        return missing_data

    def _make(self, steps: Sequence[Step], missing_data: Mapping[str, NoDataError]) -> None:
        """Make the runs, and those that follow them."""
        self._store.refuse_other_clients(self._hashes, {step.spec.hash for step in steps})
        with (
            self.display,
            heard_signals() as self._signals,
            Claims(self._store, self._stops_now, self._progress) as self._claims,
            closing(self.pool),  # before the claims end
        ):
            self.display.started(len(steps))
            for step in steps:
                if problem := missing_data.get(step.spec.dataset):
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
                time.sleep(TICK)  # other sweeps are at all that is left
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
        """Whether what runs is not waited for either."""
        return len(self._signals) > 1 or signal.SIGTERM in self._signals

    def _progress(self) -> dict[str, Any]:
        """How far the sweep is: columns of ``RunningSweep``."""
        ended, jobs = self._ended.total(), len(self._waiting) + len(self._running)
        slots, counts = len(self.pool.devices), dict(self._ended)
        return {"jobs": slots, "total": ended + jobs, "counts": counts, "left": len(self._waiting)}

    # What starts --------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Start what can start, the first first, and leave out what another sweep has done."""
        for job in [job for job in self._waiting if job.held_until <= time.monotonic()]:
            slot = self._free_slot(job)
            if slot is None or self._signals:
                return
            step, spec_hash = job.step, job.step.spec.hash
            is_taken = self._claims.take(spec_hash, step.name, self.pool.devices[slot])
            state = step.ended_elsewhere(self._claims.ask(partial(self._store.stored, spec_hash)))
            if not is_taken and not state:
                job.held_until = time.monotonic() + CLAIM_PAUSE
                continue
            self._waiting.remove(job)
            if not state:
                self._begin(job, slot)
                continue
            if is_taken:
                self._claims.drop(spec_hash)
            self._states[spec_hash] = state
            self.display.note(f"{step.name}: {state} in another sweep")
            self._follow(step, state)

    def _free_slot(self, job: Job) -> int | None:
        """A free slot on the device with the fewest runs. From its second try on a job is alone on a device,
        as is every run of a kind that has run out of memory; what else runs on the machines of a cluster is
        not known.
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
            self._file(spec, "checkpoints", "pt"),
            self.minutes,
            shared.hash,
            shared.file,
            fingerprint.of(spec).source if self.pool.elsewhere else "",
            log=self._file(spec, "logs", "log"),
        )
        self._running[self.pool.start(slot, order)] = job

    def _file(self, spec: RunSpec, folder: str, suffix: str) -> Path | None:
        return None if self.home is None else self.home / folder / f"{spec.hash}.{suffix}"

    # What ends ------------------------------------------------------------------------------------

    def _end(self, job: Job, result: RunResult) -> None:
        """Store what came of a job, or have it tried again."""
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
        log = self._file(step.spec, "logs", "log")
        if log is not None and log.exists() and result.state in FAILURES:
            result.traceback = f"{result.traceback}\nlog: logs/{log.name} in BENCH_HOME\n".lstrip()
        self._hold_back(step.spec.method, result)
        self._save(step, result)
        self._follow(step, result.state)

    def _hold_back(self, method: str, result: RunResult) -> None:
        """Leave the rest of a method's runs whose first ones have all failed."""
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
        """Store a result by the rule of ``Store.save``, and say so."""
        shared = self._federations.get(step.spec.federation_key)
        result.code = result.code or fingerprint.of(step.spec)
        provenance = shared.provenance if shared else {}
        row = self._claims.ask(lambda: self._store.save(step.spec, result, provenance))
        self._states[step.spec.hash] = row.state if step.is_new(row) else step.status
        self.display.finished(step, result)

    def _follow(self, step: Step, state: str) -> None:
        """Ask what follows a run that has ended, here or in another sweep. What it needs no more goes: what a
        killed worker has half-written, the log of a run that did not fail, the checkpoint of a settled one.
        """
        checkpoint, log = self._file(step.spec, "checkpoints", "pt"), self._file(step.spec, "logs", "log")
        old_files = [] if checkpoint is None else [*unfinished_files(checkpoint)]
        old_files += [checkpoint] if checkpoint and state in SETTLED else []
        old_files += [log] if log and state not in FAILURES else []
        for file in old_files:
            with suppress(OSError):  # what stays there costs room alone
                file.unlink(missing_ok=True)
        if not self._signals:
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


def opened_pool(placement: Placement, runs: int, home: Path) -> Pool:
    """A pool for ``runs`` runs, which ``Sweep`` opens and closes. Raises ``RequestError`` for an option of
    another backend, and where an extra, devices or a cluster are not there.
    """
    backend = placement.backend
    if placement.slurm and backend != "slurm":
        raise RequestError(f"--slurm goes with --backend slurm, got --backend {backend}")
    if placement.address != "auto" and backend != "ray":
        raise RequestError(f"--address goes with --backend ray, got --backend {backend}")
    try:
        if backend == "ray":
            from bench.runner.ray_workers import RayPool

            return RayPool(placement, runs)
        if backend == "slurm":
            from bench.runner.slurm_workers import SlurmPool

            return SlurmPool(home / "slurm", placement, runs)
    except ImportError as error:
        raise RequestError(f"--backend {backend}: pip install 'pfl-bench[{backend}]'") from error
    return choose(placement.devices, placement.jobs, placement.threads, runs)


@contextmanager
def heard_signals() -> Iterator[list[int]]:
    """The interrupts and requests to terminate that have come so far; none outside of the main thread, nor
    signals that the process was started to ignore.
    """
    heard: list[int] = []
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, lambda number, frame: heard.append(number))
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
