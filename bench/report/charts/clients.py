"""Client by client: accuracies, and differences to the baseline."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bench.report.cells import Cells
from bench.report.charts.shown import Shown, comparison, contenders, each_column, figure, shown, title
from bench.report.figures import Figure
from bench.report.panels.boxes import Box, BoxPanel
from bench.report.panels.differences import DifferencePanel, Sorted
from bench.report.results import Group, Results
from bench.report.settings import PARTITION, PER_SEED, Column
from bench.report.study import Study

ROUNDED = 9
"""Decimals of a difference: equal ones stay in the order of clients."""


def _by_client(rows: pd.DataFrame, group: Group) -> pd.Series[float]:
    """Column ``value`` by the client's name: mean over seeds, but apart where each has its partition."""
    if group.settings.get(PARTITION) == PER_SEED:
        # Client 3 of one partition has nothing to do with client 3 of another: keep them apart.
        pairs = zip(rows["client"], rows["seed"], strict=True)
        return rows["value"].set_axis([f"{client} of seed {seed}" for client, seed in pairs])
    means = rows.groupby("client")["value"].mean().sort_index()
    return means.set_axis([str(client) for client in means.index])


def _box(each: Shown, results: Results) -> Box:
    rows = results.clients(each.group, each.cell.stage, each.cell.rule)
    values = _by_client(rows.assign(value=100.0 * rows["value"]), each.group)
    return Box(each.method, each.label, tuple(values.index), np.asarray(values, np.float64))


def accuracies(cells: Cells, results: Results) -> Figure | None:
    """Test accuracy of every client (mean over seeds) by method, against the baseline's median."""
    study = cells.study
    baseline = study.title_of(study.baseline)

    def panel(column: Column) -> BoxPanel | None:
        boxes = tuple(_box(each, results) for each in shown(cells, column))
        alone = [box.values for box in boxes if box.method == study.baseline]
        mark = float(np.median(alone[0])) if alone else None
        made = BoxPanel(title(study, column), column, boxes, mark, f"median of {baseline}")
        return made if boxes else None

    caption = (
        f"Test accuracy of every client: {comparison(study)}, mean over seeds that share a partition; "
        f"box: quartiles, whiskers: worst and best client, dashed: median of {baseline}."
    )
    return figure(cells, "clients", caption, each_column(cells, panel))


def _sorted(study: Study, each: Shown, results: Results) -> Sorted | None:
    alone = each.cell.baseline
    if alone is None or each.method == study.baseline:
        return None
    own, others = (results.clients(group, each.cell.stage, each.cell.rule) for group in (each.group, alone))
    both = own.merge(others, on=["seed", "client"], suffixes=("", "_alone"))
    if both.empty:
        return None
    both = both.assign(value=(100.0 * (both["value"] - both["value_alone"])).round(ROUNDED))
    values = _by_client(both, each.group).sort_values(kind="stable")
    return Sorted(each.method, each.label, tuple(values.index), np.asarray(values, np.float64))


def differences(cells: Cells, results: Results) -> Figure | None:
    """Every client's accuracy minus the baseline's, sorted: who is hurt, and by how much."""
    study = cells.study
    baseline = study.title_of(study.baseline)

    def panel(column: Column) -> DifferencePanel | None:
        found = (_sorted(study, each, results) for each in contenders(cells, column))
        curves = tuple(curve for curve in found if curve is not None)
        return DifferencePanel(title(study, column), column, curves, baseline) if curves else None

    caption = (
        f"Every client's test accuracy minus its own under {baseline} with the same seed and partition, mean "
        f"over seeds that share a partition, sorted for each method by itself: {comparison(study)}; "
        f"below 0: clients that are better off with {baseline}."
    )
    return figure(cells, "differences", caption, each_column(cells, panel))
