"""The charts of a board: the panels of a report's figures as plain values, and their numbers as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colors
from matplotlib.markers import MarkerStyle
from numpy.typing import NDArray

from bench.leaderboard.script import call
from bench.leaderboard.survey import StudySurvey
from bench.report import figures, style
from bench.report.charts.clients import accuracies
from bench.report.charts.costs import megabytes, seconds
from bench.report.charts.curves import rounds
from bench.report.charts.shown import reading
from bench.report.panels.boxes import BoxPanel
from bench.report.panels.costs import CostPanel
from bench.report.panels.curves import CurvePanel
from bench.report.panels.panel import Panel
from bench.report.results import Results
from bench.report.study import Study

POINTS = 150
"""Points of a curve that a page draws; of a longer one every k-th and the last. The CSV has all."""

SYMBOLS = {
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "v": "triangle-down",
    "<": "triangle-left",
    ">": "triangle-right",
    "D": "diamond",
    "P": "cross",
}
"""Matplotlib's markers that Vega has, too; others are drawn as paths."""


@dataclass(frozen=True)
class Chart:
    """A kind of chart of a board: its file with numbers, and a caption that says what they are."""

    kind: str
    title: str
    caption: str
    csv: str


TITLES = {
    "clients": "Clients",
    "megabytes": "Accuracy against megabytes exchanged",
    "seconds": "Accuracy against seconds",
    "rounds": "Accuracy by round",
}

COSTS = {
    "megabytes": "megabytes exchanged in both directions, training included,",
    "seconds": "seconds (machines were shared and may differ between runs)",
}
"""Kinds of charts that are drawn in another way than in a report."""


def symbol(marker: str) -> str:
    """A marker of Matplotlib as a symbol of Vega: a name, or an SVG path between -1 and 1."""
    if marker in SYMBOLS:
        return SYMBOLS[marker]
    drawn = MarkerStyle(marker)
    corners = np.asarray(drawn.get_path().transformed(drawn.get_transform()).vertices, np.float64)
    corners = (corners[:-1] if (corners[0] == corners[-1]).all() else corners) / np.abs(corners).max()
    return "M" + "L".join(f"{x:.3f},{-y:.3f}" for x, y in corners.tolist()) + "Z"


def look(method: str) -> dict[str, Any]:
    """Colour, dashes and symbol of a method, the same as in every figure of a report."""
    found = style.of(method)
    dashes = [1, 0] if found.dashes == "-" else [2 * length for length in found.dashes[1]]
    return {"colour": colors.to_hex(found.colour), "dashes": dashes, "symbol": symbol(found.marker)}


def write(survey: StudySurvey, dataset: str, results: Results, folder: Path, name: str) -> list[Chart]:
    """Write ``NAME.js`` with the charts of a study on a data set, and a CSV for each kind of chart.

    Nothing is written where nothing was run.
    """
    made: dict[str, list[figures.Figure]] = {kind: [] for kind in TITLES}
    for cells in survey.experiments:
        if not cells.experiment.main:
            continue
        columns = tuple(column for column in cells.columns if column.dataset == dataset)
        part = replace(cells, columns=columns)
        found = {
            "clients": accuracies(part, results),
            "megabytes": megabytes(part, results),
            "seconds": seconds(part, results),
            "rounds": rounds(part, results),
        }
        for kind, figure in found.items():
            if figure is not None:
                made[kind].append(figure)
    charts = []
    for kind, parts in made.items():
        if parts:
            file = f"{name}-{kind}.csv"
            figures.write_csv(folder / file, _lines(parts))
            charts.append(Chart(kind, TITLES[kind], _caption(survey.study, kind, parts[0]), file))
    if charts:
        text = call("benchCharts", _values({kind: _panels(parts) for kind, parts in made.items()}))
        (folder / f"{name}.js").write_text(text, encoding="ascii", newline="\n")
    return charts


def _caption(study: Study, kind: str, figure: figures.Figure) -> str:
    if kind not in COSTS:
        return figure.caption
    return (
        f"Test accuracy against {COSTS[kind]} of a run, median over seeds: {reading(study)}; point: mean "
        "over seeds, bar: one sample standard deviation."
    )


def _panels(parts: Iterable[figures.Figure]) -> list[Panel]:
    return [panel for figure in parts for panel in figure.panels]


def _lines(parts: list[figures.Figure]) -> Iterator[tuple[str, ...]]:
    """The numbers of several figures of one kind under one header."""
    yield parts[0].panels[0].header
    for panel in _panels(parts):
        yield from panel.rows()


def _values(panels: Mapping[str, list[Panel]]) -> dict[str, Any]:
    """The panels by task, and the looks of all methods in them by label."""
    tasks: dict[str, dict[str, Any]] = {}
    looks: dict[str, dict[str, Any]] = {}
    for kind, parts in panels.items():
        for panel in parts:
            assert isinstance(panel, BoxPanel | CostPanel | CurvePanel)
            task = f"{panel.column.scenario}, {panel.column.clients} clients"
            tasks.setdefault(task, {"title": panel.title})[kind] = _panel(panel)
            series = _series(panel)
            looks |= {each.label: look(each.method) for each in series}
    return {"tasks": tasks, "looks": looks}


def _series(panel: BoxPanel | CostPanel | CurvePanel) -> Iterable[Any]:
    if isinstance(panel, BoxPanel):
        return panel.boxes
    return panel.points if isinstance(panel, CostPanel) else panel.curves


def _panel(panel: BoxPanel | CostPanel | CurvePanel) -> dict[str, Any]:
    if isinstance(panel, BoxPanel):
        rows = [
            {"label": box.label, "client": client, "value": round(float(value), 2)}
            for box in panel.boxes
            for client, value in zip(box.clients, box.values, strict=True)
        ]
        return {"rows": rows, "mark": panel.mark, "markLabel": panel.mark_label}
    if isinstance(panel, CostPanel):
        return {
            "rows": [
                {"label": each.label, "cost": each.cost, "mean": each.mean, "std": each.std, "n": each.n}
                for each in panel.points
            ],
            "axis": panel.axis,
        }
    return {
        "rows": [
            {"label": curve.label, **{key: _thin(getattr(curve, key)) for key in ("x", "mean", "std")}}
            for curve in panel.curves
        ],
        "axis": panel.axis,
    }


def _thin(values: NDArray[Any]) -> list[float | None]:
    """At most about ``POINTS`` of the values, the last among them; None for a NaN."""
    every = -(-len(values) // POINTS)
    kept = [*values[: len(values) - 1 : every], values[-1]]
    return [None if value != value else round(float(value), 2) for value in kept]
