"""Tuned configurations, and planned runs in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True)
class Configurations:
    """Every tuned configuration at hand, by the cell on any partition that was tuned, the user's own before
    the suite's.
    """

    by_cell: dict[str, list[Configuration]]

    def of(self, spec: RunSpec) -> Configuration | None:
        """The one for a run in its cell's default configuration, of the installed code if there is such a
        one; None where its cell was not tuned. The seed and the partition's seed may differ.
        """
        winners = self.by_cell.get(spec.cell_on_any_partition, [])
        return next((winner for winner in winners if winner.current), winners[0] if winners else None)


def configurations(home: Path | None = None, shipped: Path | None = None) -> Configurations:
    """The files of ``BENCH_HOME/tuned`` and those that come with the suite, or of such a home and folder; a
    damaged one is a ``RequestError``.
    """
    by_cell: dict[str, list[Configuration]] = {}
    suite = shipped or files("bench.results").joinpath("tuned")
    for folder, is_own in (((home or paths.home()) / "tuned", True), (suite, False)):
        entries: Iterable[Any] = folder.iterdir() if folder.is_dir() else ()
        for entry in sorted(entries, key=lambda entry: str(entry.name)):
            if not entry.name.endswith(".json"):
                continue
            try:
                record = Record.model_validate_json(entry.read_bytes())
                cell = record.spec.cell_on_any_partition
            except ValidationError as error:
                problem = f"{first_problem(error)}; remove it or run bench tune again"
                raise RequestError(f"tuned configuration {entry.name}: {problem}") from None
            by_cell.setdefault(cell, []).append(Configuration(record, is_own))
    return Configurations(by_cell)


def tuned(planned_runs: Iterable[Planned], winners: Configurations | None = None) -> list[Planned]:
    """The planned runs in their cells' tuned configurations, with the clients of the search.

    Runs of methods that do not train, or that do not run on the data set, have none and need none.

    Raises:
        RequestError: some cell has none, or one of other numerics; a run's seed was used in the search.
    """
    winners = winners or configurations()
    gaps: dict[str, None] = {}
    runs = []
    for run in planned_runs:
        if no_search(run):
            runs.append(run)
            continue
        winner = winners.of(run.spec)
        if winner is None or not winner.current:
            note = run.variant if winner is None else "tuned by code of other numerics"
            gaps[f"{run.cell_title} ({note})" if note else run.cell_title] = None
            continue
        if run.spec.seed in winner.record.seeds:
            problem = f"seed {run.spec.seed} was used to tune {run.method} on {run.spec.dataset}"
            raise RequestError(f"--use-tuned: {problem}: name seeds that the search has not seen")
        is_same = winner.record.spec.federation_key == run.spec.federation_key
        tuned_on = winner.record.clients if is_same else ""
        runs.append(replace(run, spec=winner.apply(run.spec), tuned_on=tuned_on))
    if gaps:
        problem = f"no tuned configuration with these settings for {', '.join(gaps)}"
        raise RequestError(f"--use-tuned: {problem}: run bench tune for them, or leave them out")
    return runs
