"""Short runs of kinds that were never run, to know what they will take."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

from bench.federation.build import build as build_federation
from bench.grids import Planned
from bench.spec import RunSpec
from bench.store import open_store
from bench.store.queries import Timing
from bench.sweep.execution import execute
from bench.sweep.federations import Build
from bench.sweep.order import Execute
from bench.sweep.plan import Kind, Plan, kind_of, make_plan
from bench.sweep.policy import Slots
from bench.sweep.reporters import Reporter
from bench.sweep.run import sweep

ROUNDS = 3


def probe(
    plan: Plan,
    roots: tuple[Path, ...],
    slots: Slots,
    reporter: Reporter,
    execute: Execute = execute,
    build: Build = build_federation,
) -> list[Timing]:
    """What ``ROUNDS`` rounds take of every kind of ready run whose time the plan does not know.

    What is done once (setting up, warming up) must not count for every round: a run of one round is
    made, too, and the difference counts; and before both another run, since the first in a process is
    slow. They run as a sweep's do, one at a time, into a database that is thrown away.

    Raises:
        RequestError: a federation cannot be what was asked for.
    """
    kinds: dict[Kind, RunSpec] = {}
    for step in plan.ready:
        if step.seconds is None:
            kinds.setdefault(kind_of(step.spec), step.spec)
    if not kinds:
        return []
    runs = [_short_run(spec, rounds) for rounds in (2, 1, ROUNDS) for spec in kinds.values()]
    short_plan = make_plan(runs, {}, lambda dataset: "")
    one_slot = replace(slots, devices=slots.devices[:1])
    with tempfile.TemporaryDirectory(prefix="bench-probe-") as folder:
        url = f"sqlite:///{Path(folder, 'probe.db')}"
        sweep(short_plan, url, roots, one_slot, reporter, execute, build)
        with open_store(url, create=False) as store:
            return steady_timings(store.history())


def _short_run(spec: RunSpec, rounds: int) -> Planned:
    rounds = min(rounds, spec.protocol.rounds)
    short_spec = spec.model_copy(update={"protocol": spec.protocol.model_copy(update={"rounds": rounds})})
    return Planned(spec.dataset, spec.scenario, spec.clients, spec.method, spec.seed, short_spec)


def steady_timings(history: list[Timing]) -> list[Timing]:
    """The longest run of each kind, with the seconds that so many later rounds take."""
    kinds: dict[Kind, list[tuple[int, Timing]]] = {}
    for timing in history:
        rounds = json.loads(timing.spec)["protocol"]["rounds"]
        kind = (timing.dataset, timing.scenario, timing.clients, timing.method)
        kinds.setdefault(kind, []).append((rounds, timing))
    timings = []
    for runs in kinds.values():
        (low, short_run), (high, long_run) = min(runs, key=itemgetter(0)), max(runs, key=itemgetter(0))
        seconds = long_run.seconds - short_run.seconds
        is_steady = high > low and seconds > 0  # a busy machine may have held up the first one
        timings.append(long_run._replace(seconds=seconds / (high - low) * high) if is_steady else long_run)
    return timings
