"""Every cell of every study over one source of results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bench.errors import RequestError
from bench.report.cells import Cells, Selection, cells_of
from bench.report.experiment import Plan
from bench.report.planned import usual
from bench.report.results import Results
from bench.report.source import Source
from bench.report.study import Study
from bench.report.tuned import Searches
from bench.tune.apply import configurations


@dataclass(frozen=True, eq=False)
class Collected:
    """The results, and each study with its experiments, run or not."""

    results: Results
    studies: tuple[tuple[Study, tuple[Cells, ...]], ...]


def selected(
    study: Study, plans: Iterable[Plan], results: Results, selection: Selection
) -> tuple[Cells, ...]:
    """The selected cells of every experiment that has some."""
    every = [cells_of(study, plan, results, selection) for plan in plans]
    return tuple(cells for cells in every if cells.by_key)


def collect(source: Source, studies: Iterable[Study]) -> Collected:
    """Everything that is planned, published or run.

    Raises:
        RequestError: the source has no runs.
    """
    plans = [(study, [Plan(each, study.lines) for each in study.experiments]) for study in studies]
    apart = {digest for _, own in plans for plan in own for digest in plan.hashes}
    settings = usual(grid for study, _ in plans for grid in study.grids)
    results = Results(source, settings, apart, Searches(configurations()))
    if results.runs.empty:
        raise RequestError("the database has no runs yet: run 'bench sweep --grid quickstart' first")
    return Collected(
        results, tuple((study, selected(study, own, results, Selection())) for study, own in plans)
    )
