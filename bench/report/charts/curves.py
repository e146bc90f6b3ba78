"""Curves: accuracy by round, by local epochs and along an experiment's points, and training loss by round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bench.report import style
from bench.report.cells import Cells
from bench.report.charts.shown import Shown, each_column, figure, look, measure_read, name, shown, title
from bench.report.experiment import Line
from bench.report.figures import Figure
from bench.report.measures import Measure
from bench.report.panels.curves import Curve, CurvePanel, StagePanel
from bench.report.panels.panel import ACCURACY
from bench.report.results import Results
from bench.report.settings import Column
from bench.report.wording import AVERAGES, STAGES

LOSS = "loss"
"""Name under which a run keeps its training loss by round."""

WARM_UP = "method.warm_up_epochs"
"""Local epochs that a method trains before the first round."""

BAND = "line: mean over seeds, band: one sample standard deviation."


def _over_seeds(each: Shown, x: NDArray[np.float64], values: NDArray[np.float64]) -> Curve:
    """The curve of ``values`` ``[seeds, points]``."""
    n, points = values.shape
    std = values.std(axis=0, ddof=1) if n > 1 else np.full(points, np.nan)
    return Curve(each.method, each.label, x, values.mean(axis=0), std, n, each.look)


def _panels(
    cells: Cells, curve: Callable[[Shown], Curve | None], axis: str, measured: str = ACCURACY
) -> list[CurvePanel]:
    panels = []
    for column in cells.columns:
        curves = tuple(found for each in shown(cells, column) if (found := curve(each)) is not None)
        if curves:
            panels.append(CurvePanel(title(cells.study, column), column, curves, axis, measured))
    return panels


def rounds(cells: Cells, results: Results) -> Figure | None:
    """Test accuracy by round: mean over clients, then mean and std over seeds."""
    study = cells.study

    def curve(each: Shown) -> Curve | None:
        values = results.curves(each.group, each.cell.stage, study.average)
        if not values.size:
            return None
        by_epoch = each.cell.stage == "trained" and each.group.settings.get("protocol.evaluate") == "epoch"
        per_round = int(each.group.settings["protocol.local_epochs"]) if by_epoch else 1
        return _over_seeds(each, np.arange(1, values.shape[1] + 1) / per_round, values)

    caption = (
        f"Test accuracy of {STAGES[study.primary.stage]} by round (stage {study.primary.stage}, but for "
        f"lines that are read at another; no rule: every round is shown), {AVERAGES[study.average]}; {BAND}"
    )
    return figure(cells, "convergence", caption, _panels(cells, curve, "round"))


def epochs(cells: Cells, results: Results) -> Figure | None:
    """Test accuracy by local epochs, those of a warm-up counted."""
    study, stage = cells.study, cells.study.primary.stage

    def curve(each: Shown) -> Curve | None:
        values = results.curves(each.group, stage, study.average)
        if not values.size:
            return None
        settings = each.group.settings
        step = 1 if settings["protocol.evaluate"] == "epoch" else int(settings["protocol.local_epochs"])
        x = int(settings.get(WARM_UP, 0)) + step * np.arange(1, values.shape[1] + 1, dtype=np.float64)
        return _over_seeds(each, x, values)

    caption = (
        f"Test accuracy of {STAGES[stage]} by local epochs, those before the first round counted (stage "
        f"{stage}, no rule: every step is shown), {AVERAGES[study.average]}; {BAND}"
    )
    return figure(cells, "epochs", caption, _panels(cells, curve, "local epochs"))


def losses(cells: Cells, results: Results) -> Figure | None:
    """Training loss by round; there is none of a method that trains nothing."""

    def curve(each: Shown) -> Curve | None:
        kept = (results.artefact(int(run), LOSS) for run in each.group.done["id"])
        values = [
            np.asarray(loss, np.float64) for loss in kept if loss is not None and np.isfinite(loss).all()
        ]
        if not values:
            return None
        stacked = np.stack(values)
        return _over_seeds(each, np.arange(1, stacked.shape[1] + 1, dtype=np.float64), stacked)

    caption = (
        "Training loss by round: cross-entropy on the clients' training nodes before each local step, mean "
        f"over clients and the round's local epochs (no stage or rule plays a part); {BAND}"
    )
    return figure(cells, "loss", caption, _panels(cells, curve, "round", "Training loss"))


def points(cells: Cells, results: Results) -> list[Figure | None]:
    """Every measure along the experiment's points."""
    return [_along(cells, measure) for measure in cells.measures]


def measures(cells: Cells, results: Results) -> Figure | None:
    """All measures of the first one's metric along the experiment's points, beside published values."""
    places = tuple((point.x, point.label) for point in cells.experiment.points if point.x is not None)

    def panel(column: Column, measure: Measure) -> StagePanel | None:
        measured = [found for line in cells.lines if (found := _curve(cells, column, line, measure))]
        printed = [found for line in cells.lines if (found := _published(cells, column, line, measure))]
        if not measured:
            return None
        curves = (*measured, *printed)
        return StagePanel(measure.title, column, curves, cells.experiment.axis, "", places)

    panels = [
        found
        for column in cells.columns
        for measure in cells.measures
        if measure.metric == cells.measures[0].metric and (found := panel(column, measure)) is not None
    ]
    columns = "; ".join(dict.fromkeys(title(cells.study, found.column) for found in panels))
    caption = (
        f"Every measure by {cells.experiment.axis}, {columns}; line: mean over seeds, bar: one sample "
        "standard deviation, dotted: published."
    )
    return figure(cells, "measures", caption, panels)


def _published(cells: Cells, column: Column, line: Line, measure: Measure) -> Curve | None:
    """The published values of a line along the points; None for fewer than two."""
    here = [
        (point.x, cell.target.mean)
        for point in cells.experiment.points
        if point.x is not None
        and (cell := cells.at(column, line, point, measure)) is not None
        and cell.target is not None
        and cell.target.mean is not None
    ]
    if len(here) < 2:
        return None
    x, values = (np.array(part, np.float64) for part in zip(*here, strict=True))
    own = look(cells, line) or style.of(line.method)
    dotted = replace(own, dashes=style.DASHES[-1])
    label = f"{cells.title(line)}, published"
    return Curve(f"{name(cells, line)} (published)", label, x, values, np.full(len(x), np.nan), 0, dotted)


def _curve(cells: Cells, column: Column, line: Line, measure: Measure) -> Curve | None:
    """The numbers of a line along the points; None for fewer than two."""
    here = [
        (point.x, cell.measured)
        for point in cells.experiment.points
        if point.x is not None
        and (cell := cells.at(column, line, point, measure)) is not None
        and cell.measured is not None
    ]
    if len(here) < 2:
        return None
    return Curve(
        name(cells, line),
        cells.title(line),
        np.array([x for x, _ in here]),
        np.array([found.mean for _, found in here]),
        np.array([np.nan if found.std is None else found.std for _, found in here]),
        min(found.n for _, found in here),
        look(cells, line),
    )


def _along(cells: Cells, measure: Measure) -> Figure | None:
    def panel(column: Column) -> CurvePanel | None:
        every = (_curve(cells, column, line, measure) for line in cells.lines)
        curves = tuple(found for found in every if found is not None)
        axis = cells.experiment.axis
        return CurvePanel(title(cells.study, column), column, curves, axis) if curves else None

    return figure(
        cells, measure.name, f"{measure_read(cells.study, measure)}; {BAND}", each_column(cells, panel)
    )
