"""Compare a grid with a database: what is done, what is missing and why, and how long the rest takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log
from pathlib import Path
from statistics import median

from bench.dataset import DATASETS
from bench.engine.states import COMPLETE, FAILURES, SETTLED
from bench.grids import Planned
from bench.runner import Level, fingerprint
from bench.sources import Sources
from bench.spec import RunSpec, run_name
from bench.store.tables import Stored

Kind = tuple[str, str, int, str]
"""Data set, scenario, clients and method: runs of one kind take a similar time."""


@dataclass(frozen=True)
class Step:
    """A planned run and its status.

    status   the state in which the run has ended, ``missing``, or ``stale``: its numbers are of older code
    stored   the run's row in the database when the plan was made; None if there was none
    changed  the run is settled, but its sources have changed since, without a new numerics version
    to_run   a sweep makes the run
    """

    planned: Planned
    status: str
    reason: str = ""
    stored: Stored | None = None
    changed: bool = False
    to_run: bool = False

    @property
    def spec(self) -> RunSpec:
        """The run's spec."""
        return self.planned.spec

    @property
    def name(self) -> str:
        """The name of the run, followed by its variant if it has one."""
        name = run_name(*self.planned.names)
        return f"{name} ({self.planned.variant})" if self.planned.variant else name

    def is_new(self, row: Stored) -> bool:
        """Return whether the row was stored after the plan was made."""
        return self.stored is None or row.started != self.stored.started

    def ended_elsewhere(self, row: Stored | None) -> str:
        """Return the state that another sweep has stored since, by today's code; empty if there is none."""
        if row is None or not self.is_new(row) or _is_stale(self.spec, row):
            return ""
        return row.state if row.state in (*SETTLED, *FAILURES) else ""


def make_plan(
    runs: Iterable[Planned],
    rows: Mapping[str, Stored],
    data_gap: Callable[[str], str],
    rerun: Level | None = None,
    lacks_models: Callable[[RunSpec], bool] | None = None,
) -> list[Step]:
    """Compare a grid's runs with a database's rows. A run is to run if it is not settled, is stale, or is
    done and ``lacks_models``; with ``rerun``, only if of that level. ``data_gap``: why data are missing.
    """
    steps = []
    for run in runs:
        row = rows.get(run.spec.hash)
        status, reason = _status(run.spec, row, data_gap)
        is_settled = status in SETTLED
        is_changed = bool(row and is_settled and row.source_hash != fingerprint.of(run.spec).source)
        is_wanted = not is_settled or bool(status == "done" and lacks_models and lacks_models(run.spec))
        levels = {"changed": is_changed, "failed": status in FAILURES, "stale": status == "stale"}
        steps.append(Step(run, status, reason, row, is_changed, levels[rerun] if rerun else is_wanted))
    return steps


def _status(spec: RunSpec, row: Stored | None, data_gap: Callable[[str], str]) -> tuple[str, str]:
    """Return a run's status and its reason."""
    is_settled = row is not None and row.state in SETTLED
    if row and is_settled and not _is_stale(spec, row):
        return row.state, row.reason
    if gap := data_gap(spec.dataset):
        return "no_data", gap
    if is_settled:
        return "stale", "its numbers are of older code"
    return ("missing", "") if row is None or row.state == "no_data" else (row.state, row.reason)


def _is_stale(spec: RunSpec, row: Stored) -> bool:
    """Return whether the numbers of a stored run are of older code."""
    code = fingerprint.of(spec)
    return row.method_numerics < code.method_numerics or row.engine_numerics < code.engine_numerics


def data_at_hand(roots: tuple[Path, ...]) -> Callable[[str], str]:
    """Return a function that says why a data set's raw files are not at hand; empty if they are."""
    sources = Sources(roots, download=False)

    @cache
    def lacking(dataset: str) -> str:
        names = [file.path for file in DATASETS.named(dataset).files if sources.at_hand(file) is None]
        tail = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"not in any data root: {names[0]}{tail}" if names else ""

    return lacking


def to_run(steps: Sequence[Step]) -> list[Step]:
    """The steps that a sweep makes, each spec once."""
    unique: dict[str, Step] = {}
    for step in steps:
        if step.to_run:
            unique.setdefault(step.spec.hash, step)
    return list(unique.values())


class Estimator:
    """Estimates the seconds of a run on a type of device (``cpu``, ``cuda:0``). Of the runs of the same kind
    there, take those with the nearest number of local epochs; the estimate is their median time per epoch,
    times epochs. Runs of another machine (``elsewhere``) count if ``history`` has none of the kind.
    """

    def __init__(self, history: Iterable[Stored], device: str, elsewhere: Iterable[Stored] = ()) -> None:
        self._rates: dict[Kind, list[tuple[int, float]]] = {}  # local epochs, and seconds per epoch
        for runs in (history, elsewhere):
            known = set(self._rates)
            for run in runs:
                if run.state not in COMPLETE or sort_of(run.device) != sort_of(device):
                    continue
                tree = json.loads(run.spec)
                kind = (tree["dataset"], tree["scenario"], tree["clients"], tree["method"])
                if kind not in known:
                    epochs = tree["protocol"]["rounds"] * tree["protocol"]["local_epochs"]
                    self._rates.setdefault(kind, []).append((epochs, run.seconds_total / epochs))

    def seconds(self, spec: RunSpec) -> float | None:
        """Expected seconds; None if no run of this kind is known on such a device."""
        rates, epochs = self._rates.get(kind_of(spec)), spec.protocol.rounds * spec.protocol.local_epochs
        if rates is None:
            return None
        nearest = min((number for number, _ in rates), key=lambda number: abs(log(number / epochs)))
        return median(rate for number, rate in rates if number == nearest) * epochs


def sort_of(device: str) -> str:
    """Return the type of a device: ``cuda`` for ``cuda:0``."""
    return device.partition(":")[0]


def kind_of(spec: RunSpec) -> Kind:
    """The kind of a run."""
    return (spec.dataset, spec.scenario, spec.clients, spec.method)
