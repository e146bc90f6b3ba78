"""Runs what a plan says is to run, in worker processes, with one writer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.engine.checkpoint import MINUTES
from bench.engine.result import RunResult
from bench.engine.states import FAILURES
from bench.errors import RequestError
from bench.federation.build import build as build_federation
from bench.spec import FederationKey, RunSpec
from bench.store import Store, open_store
from bench.store.store import now
from bench.sweep import fingerprint
from bench.sweep.claims import Claims
from bench.sweep.display import Reporter
from bench.sweep.execution import execute
from bench.sweep.federations import Build, build_all
from bench.sweep.interrupts import Interrupts
from bench.sweep.order import Checkpoints, Execute
from bench.sweep.plan import Estimator, Plan, Step, make_plan, planned
from bench.sweep.policy import Limits, Placement, Slots
from bench.sweep.schedule import Job, Sweep
from bench.sweep.workers import LocalPool, MakePool, choose, thread_variables

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
    follow_up: FollowUp | None = None,
    make_claims: Callable[[Store, Callable[[], bool]], Claims] = Claims,
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
        stack.callback(pool.stop)  # where there is no loop yet that does
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
        loop = Sweep(
            slots,
            pool,
            store,
            stack.enter_context(make_claims(store, lambda: interrupts.now)),
            interrupts,
            reporter,
            limits,
            deadline,
            Estimator(plan.history, slots.sort),
            tuple(map(str, roots)),
            federations,
            Checkpoints(home / "checkpoints", minutes) if home else None,
            _log_folder(home),
            partial(follow_up, store) if follow_up else lambda states: (),
            list(map(Job, ready_steps)),
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
    failure_count = sum(loop.ended[state] for state in FAILURES)
    return Outcome(dict(counts), loop.ended.total(), failure_count, dict(loop.left))


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


def _log_folder(home: Path | None) -> Path | None:
    """Where the output of runs goes; None where that cannot be written, beside a database that can."""
    if home is not None:
        with suppress(OSError):
            (home / "logs").mkdir(parents=True, exist_ok=True)
            return home / "logs"
    return None


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
