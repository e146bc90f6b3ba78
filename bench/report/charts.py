"""From a board's runs to figures: convergence and clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench.report.cells import Board, Cell
from bench.report.figures import Box, BoxPanel, Curve, CurvePanel, Figure
from bench.report.results import PARTITION, Group, Results
from bench.report.settings import PER_SEED, Column
from bench.report.views import AVERAGES, RULES, STAGES

if TYPE_CHECKING:
    from bench.report.study import Study


Panels = tuple[CurvePanel, ...] | tuple[BoxPanel, ...]


def _title(study: Study, column: Column) -> str:
    return column.described(study.title_of(column.dataset))


def _where(column: Column) -> tuple[str, str, int]:
    return column.dataset, column.scenario, column.clients


def _figure(study: Study, board: Board, kind: str, caption: str, panels: Panels) -> Figure:
    document = f"{study.name}_{board.table.name}"
    return Figure(document, f"{document}_{kind}", caption, panels)


def _shown(study: Study, board: Board, column: Column) -> list[tuple[str, Cell, Group]]:
    """Rows of a column with numbers, each run once, under the usual settings."""
    main = board.table.targets[0]
    shown = []
    for line in board.rows:
        cell = board.cells.get((main, study.primary, column, line))
        if cell and cell.measured and cell.group and not (line.setting or line.row.reads):
            shown.append((line.title, cell, cell.group))
    return shown


def _curve(method: str, label: str, group: Group, stage: str, study: Study, results: Results) -> Curve | None:
    values = results.curves(group, stage, study.average)
    if not values.size:
        return None
    by_epoch = stage == "trained" and group.settings.get("protocol.evaluate") == "epoch"
    per_round = int(group.settings["protocol.local_epochs"]) if by_epoch else 1
    n, points = values.shape
    std = values.std(axis=0, ddof=1) if n > 1 else np.full(points, np.nan)
    return Curve(method, label, np.arange(1, points + 1) / per_round, values.mean(axis=0), std, n)


def convergence(study: Study, board: Board, results: Results) -> Figure | None:
    """Test accuracy by round: mean over clients, then mean and std over seeds."""
    panels = []
    for column in board.columns:
        curves = [
            curve
            for label, cell, group in _shown(study, board, column)
            if (curve := _curve(cell.method, label, group, cell.stage, study, results))
        ]
        if curves:
            panels.append(CurvePanel(_title(study, column), _where(column), tuple(curves)))
    if not panels:
        return None
    caption = (
        f"Test accuracy of {STAGES[study.primary.stage]} by round, {AVERAGES[study.average]}; "
        "line: mean over seeds, band: one sample standard deviation."
    )
    return _figure(study, board, "convergence", caption, tuple(panels))


def _box(label: str, cell: Cell, group: Group, results: Results) -> Box:
    rows = results.clients(group, cell.stage, cell.rule)
    if group.settings.get(PARTITION) == PER_SEED:
        # Client 3 of one partition has nothing to do with client 3 of another: keep them apart.
        names = tuple(
            f"{client} of seed {seed}" for client, seed in zip(rows["client"], rows["seed"], strict=True)
        )
        return Box(cell.method, label, names, 100.0 * rows["value"].to_numpy(np.float64))
    means = rows.groupby("client")["value"].mean().sort_index()
    return Box(cell.method, label, tuple(map(str, means.index)), 100.0 * means.to_numpy(np.float64))


def clients(study: Study, board: Board, results: Results) -> Figure | None:
    """Test accuracy of every client (mean over seeds) by method, against the baseline's median."""
    panels = []
    baseline = study.title_of(study.baseline)
    for column in board.columns:
        boxes = [_box(label, cell, group, results) for label, cell, group in _shown(study, board, column)]
        if not boxes:
            continue
        alone = [box.values for box in boxes if box.method == study.baseline]
        mark = float(np.median(alone[0])) if alone else None
        panels.append(
            BoxPanel(_title(study, column), _where(column), tuple(boxes), mark, f"median of {baseline}")
        )
    if not panels:
        return None
    caption = (
        f"Test accuracy of every client, {STAGES[study.primary.stage]} {RULES[study.primary.rule]}, mean "
        "over seeds that share a partition; box: quartiles, whiskers: worst and best client, "
        f"dashed: median of {baseline}."
    )
    return _figure(study, board, "clients", caption, tuple(panels))


def figures(study: Study, board: Board, results: Results) -> list[Figure]:
    """The figures of a table; none where nothing was run."""
    made = (convergence(study, board, results), clients(study, board, results))
    return [figure for figure in made if figure is not None]
