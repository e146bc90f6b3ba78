"""The figures of an experiment, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bench.report.cells import Cells
from bench.report.charts import clients, collaboration, costs, counts, curves, pairs
from bench.report.figures import Figure
from bench.report.results import Results

Drawing = Callable[[Cells, Results], Figure | Iterable[Figure | None] | None]

FIGURES: dict[str, Drawing] = {
    "convergence": curves.rounds,
    "clients": clients.accuracies,
    "differences": clients.differences,
    "stages": pairs.stages,
    "counts": counts.counts,
    "megabytes": costs.megabytes,
    "seconds": costs.seconds,
    "collaboration": collaboration.collaboration,
    "points": curves.points,
    "measures": curves.measures,
    "epochs": curves.epochs,
    "loss": curves.losses,
    "lines": pairs.lines,
    "collaboration_best": collaboration.best,
    "collaboration_layers": collaboration.layers,
}
"""What an experiment may have drawn."""

MAIN = tuple(FIGURES)[:8]
"""Figures of a main table."""


def figures(cells: Cells, results: Results) -> list[Figure]:
    """The figures that an experiment names, those of them in which there is something to draw."""
    named = cells.experiment.figures or (MAIN if cells.experiment.main else ())
    drawn: list[Figure] = []
    for name in named:
        found = FIGURES[name](cells, results)
        several = [found] if found is None or isinstance(found, Figure) else found
        drawn += [figure for figure in several if figure is not None]
    return drawn
