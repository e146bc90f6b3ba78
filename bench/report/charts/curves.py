"""Curves: accuracy by round, by local epochs and along an experiment's points, and training loss by round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bench.report.cells import Cells
from bench.report.charts.shown import Shown, each_column, figure, look, measure_read, name, shown, title
from bench.report.experiment import Line
from bench.report.figures import Figure
from bench.report.measures import Measure
from bench.report.panels.curves import Curve, CurvePanel
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
        f"Test accuracy of {STAGES[study.primary.stage]} by round (stage {study.primary.stage}, no rule: "
        f"every round is shown), {AVERAGES[study.average]}; {BAND}"
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


def _along(cells: Cells, measure: Measure) -> Figure | None:
    def curve(column: Column, line: Line) -> Curve | None:
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

    def panel(column: Column) -> CurvePanel | None:
        curves = tuple(found for line in cells.lines if (found := curve(column, line)) is not None)
        axis = cells.experiment.axis
        return CurvePanel(title(cells.study, column), column, curves, axis) if curves else None

    return figure(
        cells, measure.name, f"{measure_read(cells.study, measure)}; {BAND}", each_column(cells, panel)
    )
