"""Short runs of kinds that were never run, to know what they will take."""

from __future__ import annotations

import json
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

from bench.federation.build import build as build_federation
from bench.spec import RunSpec
from bench.store.queries import Kind, Timing
from bench.sweep.execution import execute
from bench.sweep.federations import Build
from bench.sweep.order import Execute
from bench.sweep.plan import Plan, kind_of
from bench.sweep.policy import Slots
from bench.sweep.reporters import Reporter
from bench.sweep.run import temporary_runs

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
    specs = [_shortened(spec, rounds) for rounds in (2, 1, ROUNDS) for spec in kinds.values()]
    one_slot = replace(slots, devices=slots.devices[:1])
    with temporary_runs(specs, roots, one_slot, reporter, execute, build) as store:
        return steady_timings(store.history())


def _shortened(spec: RunSpec, rounds: int) -> RunSpec:
    rounds = min(rounds, spec.protocol.rounds)
    return spec.model_copy(update={"protocol": spec.protocol.model_copy(update={"rounds": rounds})})


def steady_timings(history: list[Timing]) -> list[Timing]:
    """The longest run of each kind, with the seconds that so many later rounds take."""
    kinds: dict[Kind, list[tuple[int, Timing]]] = {}
    for timing in history:
        rounds = json.loads(timing.spec)["protocol"]["rounds"]
        kinds.setdefault(timing.kind, []).append((rounds, timing))
    timings = []
    for runs in kinds.values():
        (low, short_run), (high, long_run) = min(runs, key=itemgetter(0)), max(runs, key=itemgetter(0))
        seconds = long_run.seconds - short_run.seconds
        is_steady = high > low and seconds > 0  # a busy machine may have held up the first one
        timings.append(long_run._replace(seconds=seconds / (high - low) * high) if is_steady else long_run)
    return timings
