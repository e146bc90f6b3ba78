"""Accuracy against megabytes exchanged and seconds."""

from __future__ import annotations

from collections.abc import Callable

from bench.report.cells import Cells
from bench.report.charts.shown import contenders, each_column, figure, reading, title
from bench.report.figures import Figure
from bench.report.panels.costs import CostPanel, Priced
from bench.report.results import Group, Results
from bench.report.settings import Column


def _megabytes(group: Group) -> float:
    return float((group.done["bytes_up"] + group.done["bytes_down"]).median()) / 1e6


def _seconds(group: Group) -> float:
    return float(group.done["seconds_total"].median())


def _figure(
    cells: Cells, name: str, axis: str, caption: str, cost: Callable[[Group], float]
) -> Figure | None:
    study = cells.study

    def panel(column: Column) -> CostPanel | None:
        points = tuple(
            Priced(each.method, each.label, each.measured.n, each.measured.mean, each.measured.std, price)
            for each in contenders(cells, column)
            if (price := cost(each.group)) == price
        )
        if len(points) < 2 or not any(point.cost for point in points):
            return None
        return CostPanel(title(study, column), column, points, name, axis)

    whole = (
        f"Test accuracy against {caption}: {reading(study)}; point: mean accuracy and median cost over "
        "seeds, bar: one sample standard deviation of the accuracy; grey: Pareto front, the best accuracy at "
        "no more cost. Points whose costs differ by less than 1 % are set apart sideways."
    )
    return figure(cells, name, whole, each_column(cells, panel))


def megabytes(cells: Cells, results: Results) -> Figure | None:
    """Accuracy against what clients and server exchange."""
    caption = "the megabytes that a run exchanges in both directions"
    return _figure(cells, "megabytes", "Megabytes exchanged", caption, _megabytes)


def seconds(cells: Cells, results: Results) -> Figure | None:
    """Accuracy against what a run takes."""
    caption = (
        "the seconds that a run takes, evaluation included (machines may be shared, and differ between runs)"
    )
    return _figure(cells, "seconds", "Seconds", caption, _seconds)
