"""Short runs of kinds that were never run, to know what they will take."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

from bench.grids import Planned
from bench.spec import RunSpec
from bench.store import open_store
from bench.store.queries import Timing
from bench.sweep import worker
from bench.sweep.devices import Slots
from bench.sweep.estimate import Kind, kind_of
from bench.sweep.federations import Build
from bench.sweep.plan import Plan, make_plan
from bench.sweep.progress import Reporter
from bench.sweep.run import sweep
from bench.sweep.worker import Execute

ROUNDS = 3


def probe(
    plan: Plan,
    roots: tuple[Path, ...],
    slots: Slots,
    reporter: Reporter,
    execute: Execute = worker.execute,
    build: Build | None = None,
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
    runs = [_short(spec, rounds) for rounds in (2, 1, ROUNDS) for spec in kinds.values()]
    short = make_plan(runs, {}, lambda dataset: "")
    one = replace(slots, devices=slots.devices[:1])
    with tempfile.TemporaryDirectory(prefix="bench-probe-") as folder:
        url = f"sqlite:///{Path(folder, 'probe.db')}"
        sweep(short, url, roots, one, reporter, execute, build)
        with open_store(url, create=False) as store:
            return _steady(store.history())


def _short(spec: RunSpec, rounds: int) -> Planned:
    rounds = min(rounds, spec.protocol.rounds)
    short = spec.model_copy(update={"protocol": spec.protocol.model_copy(update={"rounds": rounds})})
    return Planned(spec.dataset, spec.scenario, spec.clients, spec.method, spec.seed, short)


def _steady(history: list[Timing]) -> list[Timing]:
    """The longest run of each kind, with the seconds that so many later rounds take."""
    kinds: dict[Kind, list[tuple[int, Timing]]] = {}
    for timing in history:
        rounds = json.loads(timing.spec)["protocol"]["rounds"]
        kind = (timing.dataset, timing.scenario, timing.clients, timing.method)
        kinds.setdefault(kind, []).append((rounds, timing))
    found = []
    for several in kinds.values():
        (few, first), (many, last) = min(several, key=itemgetter(0)), max(several, key=itemgetter(0))
        more = last.seconds - first.seconds
        steady = many > few and more > 0  # a busy machine may have held up the first one
        found.append(last._replace(seconds=more / (many - few) * many) if steady else last)
    return found
