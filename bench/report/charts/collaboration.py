"""Who learns from whom: the collaboration matrices that methods keep."""

from __future__ import annotations

import numpy as np

from bench.report.cells import Cells
from bench.report.charts.shown import Shown, figure, shown
from bench.report.figures import Figure
from bench.report.panels.heat import HeatPanel
from bench.report.results import Results
from bench.report.settings import Column
from bench.report.study import Study

ARTEFACT = "collaboration"
"""Name under which a method keeps its last collaboration matrix: ``[clients, clients]``, or
``[layers, clients, clients]`` where it has one a layer."""


def _panel(study: Study, column: Column, each: Shown, results: Results) -> HeatPanel | None:
    runs = each.group.done
    if runs["partition_hash"].nunique() > 1:
        # Clients of other partitions are other clients: the first seed's alone.
        runs = runs.iloc[:1]
    kept = [results.artefact(int(run), ARTEFACT) for run in runs["id"]]
    square = (column.clients, column.clients)
    matrices = [
        np.asarray(weights, np.float64).reshape(-1, *square).mean(axis=0)
        for weights in kept
        if weights is not None and weights.ndim in (2, 3) and weights.shape[-2:] == square
    ]
    if not matrices:
        return None
    where = f"{study.title_of(column.dataset)}, {column.scenario}, {column.clients}"
    return HeatPanel(f"{each.label}\n{where}", column, each.method, np.mean(matrices, axis=0), len(matrices))


def collaboration(cells: Cells, results: Results) -> Figure | None:
    """The last collaboration matrix of every method that keeps one, in every column."""
    study = cells.study
    panels = [
        panel
        for column in cells.columns
        for each in shown(cells, column)
        if (panel := _panel(study, column, each, results)) is not None
    ]
    caption = (
        "Weights of the collaboration matrix after the last round: how much of the model of the client below "
        "goes into that of the client at the side; mean over seeds where they share the partition, else the "
        "first seed's, and over layers where every layer has its own. Clients stand in the federation's "
        "order, each panel has its own scale. No stage, rule or average plays a part."
    )
    return figure(cells, "collaboration", caption, panels)
