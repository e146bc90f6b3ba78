"""Runs what a plan says is to run, in worker processes, with one writer."""

from __future__ import annotations

import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from pebble import ProcessExpired, ProcessPool

import bench
from bench.engine.result import RunResult
from bench.environment import describe
from bench.errors import RequestError
from bench.store import Context, Store, open_store
from bench.sweep import fingerprint, worker
from bench.sweep.devices import Slots
from bench.sweep.federations import Build, Prepared, build_all
from bench.sweep.plan import Plan, Step
from bench.sweep.progress import Reporter

Execute = Callable[[str, tuple[str, ...], str, int], RunResult]

RUNS_PER_WORKER = 50
"""A worker is replaced after so many runs, so that memory it lost is given back."""

RETRIES = 3
"""How often a run is tried again that was lost with the pool, through no fault of its own."""

FAILURES: frozenset[str] = frozenset({"failed", "oom"})


@dataclass(frozen=True)
class Outcome:
    """Where every planned run stands after a sweep, by state, and how many it ran."""

    counts: dict[str, int]
    ran: int

    @property
    def exit_code(self) -> int:
        """1 if a run failed or did not fit, else 0."""
        return int(any(self.counts.get(state) for state in FAILURES))


def sweep(
    plan: Plan,
    database: str,
    roots: tuple[Path, ...],
    slots: Slots,
    reporter: Reporter,
    execute: Execute = worker.execute,
    build: Build | None = None,
) -> Outcome:
    """Do the runs of a plan that are to do and store each one as it ends.

    The database is made only after every federation has been built. A run that fails, or whose
    process dies, is stored as such and the rest goes on. On an interrupt the workers are stopped;
    runs that had not ended leave nothing.

    Raises:
        RequestError: a federation cannot be what was asked for, or no data set is to be had;
            nothing is written then. Or the database cannot be written.
        KeyboardInterrupt: passed on after the workers have been stopped.
    """
    steps = plan.to_run
    if not steps:
        return Outcome(plan.counts, 0)
    prepared = build_all((step.spec for step in steps), roots, build or _default_build())
    runnable = [step for step in steps if step.spec.dataset not in prepared.lacking]
    if not runnable and all(step.to_run or step.status == "not_implemented" for step in plan.steps):
        raise next(iter(prepared.lacking.values()))
    states: dict[str, str] = {}
    with open_store(database, create=True) as store, reporter:
        reporter.started(len(steps))
        writer = _Writer(store, prepared, slots.threads)
        results = _results(steps, runnable, prepared, roots, slots, execute)
        with worker.thread_variables(slots.threads), closing(results):
            for step, result, started in results:
                writer.save(step, result, started)
                states[step.spec.hash] = result.state
                reporter.finished(step, result)
    counts = Counter(
        states.get(step.planned.spec.hash, step.status) if step.planned.spec else step.status
        for step in plan.steps
    )
    return Outcome(dict(counts), len(runnable))


def _default_build() -> Build:
    from bench.federation.build import build

    return build


class _Writer:
    """Stores results with what surrounds them."""

    def __init__(self, store: Store, prepared: Prepared, threads: int) -> None:
        self._store = store
        self._prepared = prepared
        self._environment = cache(lambda device: describe(device, threads))

    def save(self, step: Step, result: RunResult, started: datetime) -> None:
        code = fingerprint.code(step.spec.method)
        context = Context(
            started=started,
            environment=self._environment(result.device),
            code_version=bench.__version__,
            method_numerics=code.method_numerics,
            engine_numerics=code.engine_numerics,
            source_hash=code.source,
            provenance=self._prepared.provenance.get(step.spec.federation_key, {}),
        )
        self._store.save(step.spec, result, context)


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


Ended = tuple[Step, RunResult, datetime]


def _results(
    steps: Sequence[Step],
    runnable: Sequence[Step],
    prepared: Prepared,
    roots: tuple[Path, ...],
    slots: Slots,
    execute: Execute,
) -> Generator[Ended, None, None]:
    """Every step's result, as it comes."""
    for step in steps:
        if step.spec.dataset in prepared.lacking:
            yield step, RunResult("no_data", str(prepared.lacking[step.spec.dataset])), _now()
    if runnable:
        yield from _pooled(runnable, tuple(str(root) for root in roots), slots, execute)


def _pooled(
    steps: Sequence[Step], roots: tuple[str, ...], slots: Slots, execute: Execute
) -> Generator[Ended, None, None]:
    """Run steps in worker processes, never more on a device than it has slots."""
    free = list(slots.devices)
    waiting = deque(steps)
    running: dict[Future[RunResult], tuple[Step, str, datetime]] = {}
    lost: Counter[str] = Counter()
    pool = _new_pool(len(free))
    try:
        while waiting or running:
            while waiting and free:
                if not pool.active:
                    pool = _replaced(pool, len(slots.devices))
                step, device = waiting.popleft(), free.pop(0)
                arguments: list[Any] = [step.spec.canonical(), roots, device, slots.threads]
                running[_scheduled(pool, execute, arguments)] = (step, device, _now())
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                step, device, started = running.pop(future)
                free.append(device)
                if isinstance(future.exception(), BrokenProcessPool) and lost[step.spec.hash] < RETRIES:
                    lost[step.spec.hash] += 1
                    waiting.appendleft(step)
                    continue
                yield step, _outcome(future, device), started
        pool.close()
    except BaseException:
        pool.stop()
        raise
    finally:
        pool.join()


def _new_pool(workers: int) -> Any:
    return ProcessPool(
        max_workers=workers,
        max_tasks=RUNS_PER_WORKER,
        initializer=worker.prepare,
        context=get_context("spawn"),
    )


def _replaced(pool: Any, workers: int) -> Any:
    """A new pool for one that broke: the library gives up when a worker dies as it takes up a run."""
    pool.stop()
    pool.join()
    return _new_pool(workers)


def _scheduled(pool: Any, execute: Execute, arguments: list[Any]) -> Future[RunResult]:
    """The future of a run; it has failed already where the pool broke at this very moment."""
    try:
        future: Future[RunResult] = pool.schedule(execute, args=arguments)
    except RuntimeError as error:
        future = Future()
        future.set_exception(BrokenProcessPool(str(error)))
    return future


def _outcome(future: Future[RunResult], device: str) -> RunResult:
    """What came of a run: its result, or why there is none."""
    try:
        return future.result()
    except ProcessExpired as error:
        code = error.exitcode
        how = f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return RunResult("failed", f"the worker process died ({how})", device=device)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        return RunResult("failed", reason, "".join(traceback.format_exception(error)), device=device)


def refuse_unimplemented(plan: Plan) -> None:
    """Refuse a request of which nothing exists.

    Raises:
        RequestError: every run of the plan is of a method or data set that is not implemented.
    """
    if all(step.status == "not_implemented" for step in plan.steps):
        raise RequestError(f"nothing to run: {plan.steps[0].reason}")
