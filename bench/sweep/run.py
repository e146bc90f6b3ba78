"""Runs what a plan says is to run, in worker processes, with one writer."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from bench.engine.checkpoint import MINUTES
from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.store import open_store
from bench.sweep import fingerprint, pool, worker
from bench.sweep.clock import now
from bench.sweep.devices import Slots
from bench.sweep.estimate import Estimator
from bench.sweep.federations import Build, build_all
from bench.sweep.interrupts import Interrupts
from bench.sweep.limits import Limits
from bench.sweep.nodes import NodeWriter
from bench.sweep.plan import FAILURES, SETTLED, Plan
from bench.sweep.progress import Reporter
from bench.sweep.schedule import Scheduler
from bench.sweep.seams import MakeWorkers
from bench.sweep.status import Board
from bench.sweep.worker import Checkpoints, Execute
from bench.sweep.writer import Writer


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
    execute: Execute = worker.execute,
    build: Build | None = None,
    limits: Limits | None = None,
    home: Path | None = None,
    minutes: float = MINUTES,
    make_workers: MakeWorkers = pool.Workers,
) -> Outcome:
    """Do the runs of a plan that are to do and store each one as it ends.

    The database is made only after every federation has been built. A run that fails, or whose
    process dies, is stored as such and the rest goes on, within ``limits``. Under ``home`` the sweep
    says what it does (``sweeps/``), keeps the output of failed runs (``logs/``) and saves what runs every
    so many ``minutes`` (``checkpoints/``), from where it goes on after a kill; without it, none of these.
    ``make_workers`` says where runs are made.

    Raises:
        RequestError: a federation cannot be what was asked for, stored runs are of other clients, or no
            data set is to be had; nothing is written then. Or the database cannot be written.
        KeyboardInterrupt: after one interrupt when what ran is stored, after two, or a request to
            terminate, when the workers are stopped; what had not ended leaves nothing.
    """
    steps = plan.to_run
    if not steps:
        return Outcome(plan.counts, 0)
    for method, model in {(step.spec.method, step.spec.client.model) for step in steps}:
        fingerprint.code(method, model)  # as it is now: files may be edited before a run is stored
    limits = limits or Limits()
    deadline = time.monotonic() + (limits.budget or float("inf"))
    prepared = build_all((step.spec for step in steps), roots, build or default_build())
    plan.refuse_other_clients(prepared.hashes)
    runnable = [step for step in steps if step.spec.dataset not in prepared.lacking]
    if not runnable and all(step.to_run or step.status == "not_implemented" for step in plan.steps):
        raise next(iter(prepared.lacking.values()))
    states: dict[str, str] = {}
    checkpoints = Checkpoints(home / "checkpoints", minutes) if home else None
    with (
        open_store(database, create=True) as store,
        store.held(),
        reporter,
        Interrupts(reporter.note) as interrupts,
        Board(home, database, len(runnable), len(slots.devices)) as board,
        (NodeWriter if slots.elsewhere else Writer)(store, prepared, slots.threads, interrupts) as writer,
        worker.thread_variables(slots.threads),
    ):
        reporter.started(len(steps))
        for step in steps:
            if step.spec.dataset in prepared.lacking:
                result = RunResult("no_data", str(prepared.lacking[step.spec.dataset]))
                states[step.spec.hash] = writer.save(step, result, now())
                reporter.finished(step, result)
        scheduler = Scheduler(
            runnable,
            tuple(map(str, roots)),
            slots,
            make_workers(len(slots.devices), execute, limits.timeout),
            limits,
            deadline,
            Estimator(plan.history, slots.sort),
            interrupts,
            writer,
            reporter.note,
            board.logs,
            checkpoints,
            prepared.hashes,
        )
        ended: Counter[str] = Counter()
        with closing(scheduler.results()) as results:
            for each in results:
                if each is not None:
                    step, result, started = each
                    states[step.spec.hash] = writer.save(step, result, started)
                    if checkpoints is not None:
                        checkpoints.tidy(step.spec.hash, result.raised or result.state in SETTLED)
                    ended[result.state] += 1
                    reporter.finished(step, result)
                    board.ended(step, result)
                board.show(scheduler)
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
    failed = sum(ended[state] for state in FAILURES)
    return Outcome(dict(counts), sum(ended.values()), failed, dict(scheduler.left))


def default_build() -> Build:
    """The function that makes federations; what it needs is imported where one is made."""
    from bench.federation.build import build

    return build


def refuse_unimplemented(plan: Plan) -> None:
    """Refuse a request of which nothing exists.

    Raises:
        RequestError: every run of the plan is of a method or data set that is not implemented.
    """
    if all(step.status == "not_implemented" for step in plan.steps):
        raise RequestError(f"nothing to run: {plan.steps[0].reason}")
