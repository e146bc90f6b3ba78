"""Tuned configurations, and planned runs in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from bench import paths
from bench.errors import RequestError, first_problem
from bench.grids import Planned
from bench.spec import RunSpec
from bench.tune.record import Record
from bench.tune.tuning import configured, no_search, numerics


@dataclass(frozen=True)
class Configuration:
    """The finished search of a cell. ``own``: by the user, not one that comes with the suite."""

    record: Record
    own: bool

    @property
    def current(self) -> bool:
        """Whether the search was made by code of the numerics that are installed; its method is at hand."""
        return self.record.numerics == numerics(self.record.spec.method)

    def apply(self, spec: RunSpec) -> RunSpec:
        """The spec in the winner's configuration."""
        return configured(spec, self.record.winner.overrides)


Configurations = dict[str, list[Configuration]]
"""Tuned configurations by the cell on any partition that was tuned, the user's own before the suite's."""


def configurations(home: Path | None = None, shipped: Path | None = None) -> Configurations:
    """The files of ``BENCH_HOME/tuned`` and those that come with the suite, or of such a home and folder; a
    damaged one is a ``RequestError``.
    """
    by_cell: Configurations = {}
    own = (home or paths.home()) / "tuned"
    suite = shipped or Path(str(files("bench.results"))) / "tuned"
    for path in (*sorted(own.glob("*.json")), *sorted(suite.glob("*.json"))):
        try:
            record = Record.model_validate_json(path.read_bytes())
            cell = record.spec.cell_on_any_partition
        except ValidationError as error:
            raise RequestError(f"tuned configuration {path.name}: {first_problem(error)}") from None
        by_cell.setdefault(cell, []).append(Configuration(record, path.parent == own))
    return by_cell


def tuned(planned_runs: Iterable[Planned], winners: Configurations | None = None) -> list[Planned]:
    """The planned runs in their cells' tuned configurations, with the clients of the search. The partition's
    seed may differ. Runs of methods that do not train, or that do not run on the data set, need none.

    Raises:
        RequestError: a cell has no configuration, or one by code of other numerics; a run's seed was used in
            the search.
    """
    by_cell = configurations() if winners is None else winners
    runs = []
    for run in planned_runs:
        if no_search(run):
            runs.append(run)
            continue
        found = by_cell.get(run.spec.cell_on_any_partition, [])
        winner = next((each for each in found if each.current), None)
        if winner is None:
            note = "tuned by code of other numerics" if found else run.variant
            cell = f"{run.cell_title} ({note})" if note else run.cell_title
            problem = f"no tuned configuration with these settings for {cell}"
            raise RequestError(f"--use-tuned: {problem}: run bench tune for it, or leave it out")
        record = winner.record
        if run.spec.seed in record.seeds:
            problem = f"seed {run.spec.seed} was used to tune {run.method} on {run.spec.dataset}"
            raise RequestError(f"--use-tuned: {problem}: name seeds that the search has not seen")
        is_same = record.spec.federation_key == run.spec.federation_key
        runs.append(replace(run, spec=winner.apply(run.spec), tuned_on=record.clients if is_same else ""))
    return runs
