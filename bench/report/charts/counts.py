"""Accuracy by the number of clients."""

from __future__ import annotations

from collections import defaultdict

from bench.report.cells import Cells
from bench.report.charts.shown import Shown, figure, reading, shown
from bench.report.figures import Figure
from bench.report.panels.counts import ByCount, CountPanel
from bench.report.results import Results
from bench.report.settings import Column


def _lines(found: dict[Column, list[Shown]]) -> tuple[ByCount, ...]:
    by_method: dict[tuple[str, str], list[tuple[Column, int, float, float | None]]] = defaultdict(list)
    for column in sorted(found):
        for each in found[column]:
            point = column, each.measured.n, each.measured.mean, each.measured.std
            by_method[each.method, each.label].append(point)
    return tuple(
        ByCount(method, label, tuple(points))
        for (method, label), points in by_method.items()
        if len(points) > 1
    )


def counts(cells: Cells, results: Results) -> Figure | None:
    """A panel a data set and scenario, of methods with numbers at two numbers of clients or more."""
    study = cells.study
    places: dict[tuple[str, str], dict[Column, list[Shown]]] = defaultdict(dict)
    for column in cells.columns:
        places[column.dataset, column.scenario][column] = shown(cells, column)
    panels = [
        CountPanel(f"{study.title_of(dataset)}, {scenario}", lines)
        for (dataset, scenario), found in places.items()
        if (lines := _lines(found))
    ]
    caption = (
        f"Test accuracy by number of clients: {reading(study)}; point: mean over seeds, bar: one sample "
        "standard deviation; methods are set apart sideways. The clients' data differ with their number."
    )
    return figure(cells, "counts", caption, panels)
