"""The figures of a table."""

from __future__ import annotations

from bench.report.cells import Cells
from bench.report.charts.clients import accuracies, differences
from bench.report.charts.collaboration import collaboration
from bench.report.charts.convergence import convergence
from bench.report.charts.costs import megabytes, seconds
from bench.report.charts.counts import counts
from bench.report.charts.stages import stages
from bench.report.figures import Figure
from bench.report.results import Results


def figures(board: Cells, results: Results) -> list[Figure]:
    """Every figure that there is something to draw in."""
    made = (
        convergence(board, results),
        accuracies(board, results),
        differences(board, results),
        stages(board, results),
        counts(board),
        megabytes(board),
        seconds(board),
        collaboration(board, results),
    )
    return [figure for figure in made if figure is not None]
