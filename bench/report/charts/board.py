"""The figures of a table."""

from __future__ import annotations

from bench.report.cells import Board
from bench.report.charts.clients import accuracies, differences
from bench.report.charts.collaboration import collaboration
from bench.report.charts.convergence import convergence
from bench.report.charts.costs import megabytes, seconds
from bench.report.charts.counts import counts
from bench.report.charts.stages import stages
from bench.report.figures import Figure
from bench.report.results import Results
from bench.report.study import Study


def figures(study: Study, board: Board, results: Results) -> list[Figure]:
    """Every figure that there is something to draw in."""
    made = (
        convergence(study, board, results),
        accuracies(study, board, results),
        differences(study, board, results),
        stages(study, board, results),
        counts(study, board),
        megabytes(study, board),
        seconds(study, board),
        collaboration(study, board, results),
    )
    return [figure for figure in made if figure is not None]
