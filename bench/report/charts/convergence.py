"""Accuracy by round."""

from __future__ import annotations

import numpy as np

from bench.report.cells import Cells
from bench.report.charts.shown import Shown, each_column, figure, shown, title
from bench.report.figures import Figure
from bench.report.panels.curves import Curve, CurvePanel
from bench.report.results import Results
from bench.report.settings import Column
from bench.report.study import Study
from bench.report.wording import AVERAGES, STAGES


def _curve(study: Study, each: Shown, results: Results) -> Curve | None:
    stage = each.cell.stage
    values = results.curves(each.group, stage, study.average)
    if not values.size:
        return None
    by_epoch = stage == "trained" and each.group.settings.get("protocol.evaluate") == "epoch"
    per_round = int(each.group.settings["protocol.local_epochs"]) if by_epoch else 1
    n, points = values.shape
    std = values.std(axis=0, ddof=1) if n > 1 else np.full(points, np.nan)
    x = np.arange(1, points + 1) / per_round
    return Curve(each.method, each.label, x, values.mean(axis=0), std, n)


def convergence(board: Cells, results: Results) -> Figure | None:
    """Test accuracy by round: mean over clients, then mean and std over seeds."""
    study = board.study

    def panel(column: Column) -> CurvePanel | None:
        found = (_curve(study, each, results) for each in shown(board, column))
        curves = tuple(curve for curve in found if curve is not None)
        return CurvePanel(title(study, column), column, curves) if curves else None

    caption = (
        f"Test accuracy of {STAGES[study.primary.stage]} by round (stage {study.primary.stage}, no rule: "
        f"every round is shown), {AVERAGES[study.average]}; line: mean over seeds, band: one sample standard "
        "deviation."
    )
    return figure(board, "convergence", caption, each_column(board, panel))
