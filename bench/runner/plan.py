"""What of a grid is done, what is missing and why, and how long the rest takes."""

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
"""Data set, scenario, clients and method: runs of one kind take alike."""


@dataclass(frozen=True)
class Step:
    """A planned run and where it stands.

    status   the state in which it has ended, ``missing``, or ``stale``: its numbers are of older code
    stored   what the database had of it when the plan was made
    changed  it is settled, but its sources have changed since, without a new numerics version
    to_run   a sweep makes it
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
        """The run in words, and its variant."""
        name = run_name(*self.planned.names)
        return f"{name} ({self.planned.variant})" if self.planned.variant else name

    def is_new(self, row: Stored) -> bool:
        """Whether the stored run is another one than when the plan was made."""
        return self.stored is None or row.started != self.stored.started

    def ended_elsewhere(self, row: Stored | None) -> str:
        """The state in which another sweep has since stored the run, by today's code; empty if none has."""
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
    """Compare a grid's runs with what a database holds. To run is what is not settled or is stale, and what
    is done and ``lacks_models``; with ``rerun`` exactly that level. ``data_gap``: why data are not at hand.
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
    """A run's status and the reason for it."""
    is_settled = row is not None and row.state in SETTLED
    if row and is_settled and not _is_stale(spec, row):
        return row.state, row.reason
    if gap := data_gap(spec.dataset):
        return "no_data", gap
    if is_settled:
        return "stale", "its numbers are of older code"
    return ("missing", "") if row is None or row.state == "no_data" else (row.state, row.reason)


def _is_stale(spec: RunSpec, row: Stored) -> bool:
    """Whether the numbers of a stored run are of older code."""
    code = fingerprint.of(spec)
    return row.method_numerics < code.method_numerics or row.engine_numerics < code.engine_numerics


def data_at_hand(roots: tuple[Path, ...]) -> Callable[[str], str]:
    """A function from a data set to why its raw files are not at hand; empty where they are."""
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
    """How many seconds a run takes on the sort of a device (``cpu``, ``cuda:0``): the median of runs of its
    kind there, by local epoch, of those whose number of epochs is nearest. Runs of ``elsewhere``, another
    machine, count where ``history`` has none of a kind.
    """

    def __init__(self, history: Iterable[Stored], device: str, elsewhere: Iterable[Stored] = ()) -> None:
        self._rates: dict[Kind, list[tuple[int, float]]] = {}  # local epochs, and seconds of each
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
        """Expected seconds; None where no like run is known on such a device."""
        rates, epochs = self._rates.get(kind_of(spec)), spec.protocol.rounds * spec.protocol.local_epochs
        if rates is None:
            return None
        nearest = min((number for number, _ in rates), key=lambda number: abs(log(number / epochs)))
        return median(rate for number, rate in rates if number == nearest) * epochs


def sort_of(device: str) -> str:
    """``cuda`` of ``cuda:0``."""
    return device.partition(":")[0]


def kind_of(spec: RunSpec) -> Kind:
    """The kind of a run."""
    return (spec.dataset, spec.scenario, spec.clients, spec.method)
