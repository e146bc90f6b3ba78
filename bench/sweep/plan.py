"""What of a grid is done, what is missing and why, and what running the rest would cost."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import log
from pathlib import Path
from statistics import median

from bench.dataset import DATASETS
from bench.engine.result import Code
from bench.engine.states import COMPLETE, FAILURES, SETTLED
from bench.grids import Planned
from bench.sources import Sources
from bench.spec import RunSpec, run_name
from bench.store.store import Kind, Stored
from bench.sweep import fingerprint
from bench.sweep.policy import Level, sort_of


def kind_of(spec: RunSpec) -> Kind:
    """Data set, scenario, clients and method: runs of one kind take alike."""
    return (spec.dataset, spec.scenario, spec.clients, spec.method)


def planned(spec: RunSpec) -> Planned:
    """The run of a spec, of no grid."""
    return Planned(spec, spec.method)


def _epochs(spec: RunSpec) -> int:
    """Local epochs of a client over the whole run."""
    return spec.protocol.rounds * spec.protocol.local_epochs


class Estimator:
    """How many seconds a run takes on a sort of device (``cpu``, ``cuda``), from runs of the same kind there.

    It is the median of their seconds per local epoch, times the run's rounds and local epochs; of those
    alone whose number of epochs is nearest to the run's, since what is done once (a generator is trained,
    a graph is mended) is a larger part of a short run.
    """

    def __init__(self, history: Iterable[Stored], device: str) -> None:
        self._device = device
        self._rates: defaultdict[Kind, defaultdict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        for run in history:
            if run.state in COMPLETE:
                protocol = json.loads(run.spec)["protocol"]
                epochs = protocol["rounds"] * protocol["local_epochs"]
                self._add(run.kind, epochs, run.seconds_total, run.device)

    def add(self, spec: RunSpec, seconds: float, device: str) -> None:
        """Take a run that has just ended into account."""
        self._add(kind_of(spec), _epochs(spec), seconds, device)

    def _add(self, kind: Kind, epochs: int, seconds: float, device: str) -> None:
        if sort_of(device) == self._device:
            self._rates[kind][epochs].append(seconds / epochs)

    def seconds(self, spec: RunSpec) -> float | None:
        """Expected seconds; None where no like run is known on such a device."""
        kind = kind_of(spec)
        if kind not in self._rates:
            return None
        epochs, rates = _epochs(spec), self._rates[kind]
        nearest = min(rates, key=lambda number: abs(log(number / epochs)))
        return median(rates[nearest]) * epochs


@dataclass(frozen=True)
class Step:
    """A planned run and where it stands.

    status   the state in which it has ended, ``missing``, or ``stale``: its numbers are of older code
    stored   what the database had of it when the plan was made
    seconds  what it would take to do it now
    changed  it is settled, but its sources have changed since, without a new numerics version
    to_run   a sweep of this plan runs it
    """

    planned: Planned
    status: str
    reason: str = ""
    stored: Stored | None = None
    seconds: float | None = None
    changed: bool = False
    to_run: bool = False

    @property
    def spec(self) -> RunSpec:
        """The run's spec."""
        return self.planned.spec

    def is_new(self, row: Stored) -> bool:
        """Whether the stored run is another one than when the plan was made."""
        return self.stored is None or row.started != self.stored.started

    def ended_elsewhere(self, row: Stored | None) -> str | None:
        """The state in which another sweep has stored the run since the plan was made: settled or failed by
        code of no older numerics, which spares making it. None where it has not.
        """
        if row is None or not self.is_new(row) or numerics_change(row, fingerprint.of(self.spec)):
            return None
        return row.state if row.state in (*SETTLED, *FAILURES) else None

    @property
    def name(self) -> str:
        """The run in words, and its variant."""
        name = run_name(*self.planned.names)
        return f"{name} ({self.planned.variant})" if self.planned.variant else name


@dataclass(frozen=True)
class Plan:
    """Every planned run in the order in which it would be run, and what earlier runs took."""

    steps: tuple[Step, ...]
    history: tuple[Stored, ...] = ()

    def timed(self, history: Iterable[Stored], device: str, elsewhere: Iterable[Stored] = ()) -> Plan:
        """The plan with what its runs would take on a sort of ``device`` (``cpu``, ``cuda``), by like runs of
        ``history`` or, where there are none, of ``elsewhere``, another machine.
        """
        known_runs = tuple(history)
        here, there = Estimator(known_runs, device), Estimator(elsewhere, device)
        steps = []
        for step in self.steps:
            seconds = here.seconds(step.spec)
            steps.append(replace(step, seconds=there.seconds(step.spec) if seconds is None else seconds))
        return Plan(tuple(steps), known_runs)

    @property
    def counts(self) -> dict[str, int]:
        """Number of runs by status."""
        return dict(Counter(step.status for step in self.steps))

    @cached_property
    def to_run(self) -> list[Step]:
        """Runs that a sweep does, each spec once."""
        unique: dict[str, Step] = {}
        for step in self.steps:
            if step.to_run:
                unique.setdefault(step.spec.hash, step)
        return list(unique.values())

    @property
    def ready(self) -> list[Step]:
        """Runs to do whose data are at hand; a sweep tries to download those of the others."""
        return [step for step in self.to_run if step.status != "no_data"]

    @property
    def times(self) -> list[float]:
        """Expected seconds of the ready runs whose time is known."""
        return [step.seconds for step in self.ready if step.seconds is not None]

    @property
    def unknown_times(self) -> int:
        """Number of ready runs without an expectation."""
        return len(self.ready) - len(self.times)


def data_at_hand(roots: tuple[Path, ...]) -> Callable[[str], str]:
    """A function from a data set to why its raw files are not at hand; empty where they are."""
    sources = Sources(roots, download=False)

    @cache
    def lacking(dataset: str) -> str:
        names = [file.path for file in DATASETS.named(dataset).files if sources.at_hand(file) is None]
        tail = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"not in any data root: {names[0]}{tail}" if names else ""

    return lacking


def make_plan(
    runs: Iterable[Planned],
    rows: Mapping[str, Stored],
    data_gap: Callable[[str], str],
    rerun: Level | None = None,
    lacks_models: Callable[[RunSpec], bool] | None = None,
) -> Plan:
    """Compare a grid's runs with what a database holds.

    A settled run (done, diverged, not applicable) is ``stale`` when its method's or the engine's
    numerics version was older than the installed code's. ``data_gap`` says why a data set is not at
    hand. To run is whatever is not settled or stale, and what is done and ``lacks_models``; with ``rerun``
    exactly the runs of that level.
    """
    steps = []
    for run in runs:
        step = _step(run, rows.get(run.spec.hash), data_gap)
        wanted = {
            None: step.status not in SETTLED,
            "changed": step.changed,
            "failed": step.status in FAILURES,
            "stale": step.status == "stale",
        }[rerun]
        if rerun is None and step.status == "done" and lacks_models is not None:
            wanted = lacks_models(step.spec)
        steps.append(replace(step, to_run=wanted))
    return Plan(tuple(steps))


def _step(run: Planned, row: Stored | None, data_gap: Callable[[str], str]) -> Step:
    change = ""
    if row is not None and row.state in SETTLED:
        code = fingerprint.of(run.spec)
        change = numerics_change(row, code)
        if not change:
            is_changed = row.source_hash != code.source
            return Step(run, row.state, row.reason, row, changed=is_changed)
    gap = data_gap(run.spec.dataset)
    if gap:
        return Step(run, "no_data", gap, row)
    if change:
        return Step(run, "stale", change, row)
    if row is None or row.state == "no_data":
        return Step(run, "missing", "", row)
    return Step(run, row.state, row.reason, row)


def numerics_change(row: Stored, code: Code) -> str:
    """Why a stored run's numbers are of older code; empty where they are not."""
    if row.method_numerics < code.method_numerics:
        return f"method numerics {row.method_numerics}, now {code.method_numerics}"
    if row.engine_numerics < code.engine_numerics:
        return f"engine numerics {row.engine_numerics}, now {code.engine_numerics}"
    return ""
