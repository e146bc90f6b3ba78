"""Who learns from whom: the collaboration matrices that methods keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.report.cells import Cells
from bench.report.charts.shown import Shown, figure, shown
from bench.report.figures import Figure
from bench.report.measures import MIXED
from bench.report.panels.heat import HeatPanel
from bench.report.results import Results
from bench.report.settings import Column
from bench.report.study import Study

ARTEFACT = "collaboration"
"""Name under which a method keeps its last collaboration matrix: ``[clients, clients]``, or
``[layers, clients, clients]`` where it has one a layer."""


BROAD = 28
"""Characters of a line that stands above a heat map."""

BORDER = 2
"""Layers at either end of a model that have heat maps of their own."""

Kept = Callable[[int], NDArray[Any] | None]
"""From a run to its weights ``[layers, clients, clients]`` or ``[clients, clients]``, where it has some."""


def _panel(study: Study, column: Column, each: Shown, kept: Kept, name: str = "") -> HeatPanel | None:
    runs = each.group.done
    if runs["partition_hash"].nunique() > 1:
        # Clients of other partitions are other clients: the first seed's alone.
        runs = runs.iloc[:1]
    square = (column.clients, column.clients)
    matrices = [
        np.asarray(weights, np.float64).reshape(-1, *square).mean(axis=0)
        for weights in map(kept, runs["id"])
        if weights is not None and weights.ndim in (2, 3) and weights.shape[-2:] == square
    ]
    if not matrices:
        return None
    label = f"{each.label}, {name}" if name else each.label
    where = f"{study.title_of(column.dataset)}, {column.scenario}, {column.clients}"
    if len(where) > BROAD:
        where = where.replace(", ", "\n", 1)
    return HeatPanel(f"{label}\n{where}", column, each.method, np.mean(matrices, axis=0), len(matrices))


def _best(results: Results) -> Kept:
    """The weights that the round of best validation began with."""

    def weights(run: int) -> NDArray[Any] | None:
        kept, best = results.artefact(int(run), MIXED), results.best_round(int(run), "trained")
        return None if kept is None or best is None or best >= len(kept) else kept[best]

    return weights


def best(cells: Cells, results: Results) -> Figure | None:
    """What the models of the best round were mixed with, of every method that keeps it by round."""
    panels = [
        panel
        for column in cells.columns
        for each in shown(cells, column)
        if (panel := _panel(cells.study, column, each, _best(results))) is not None
    ]
    caption = (
        "Weights with which models were mixed before the round of best mean validation accuracy: how much of "
        "the model of the client below goes into that of the client at the side; mean over seeds, and over "
        "layers where each has its own. Each panel has its own scale."
    )
    return figure(cells, "collaboration_best", caption, panels)


def layers(cells: Cells, results: Results) -> Figure | None:
    """The same by layer, of methods that have a matrix for each: the first two layers and the last two."""
    panels = []
    best_of = _best(results)
    for column in cells.columns:
        for each in shown(cells, column):
            every = map(best_of, each.group.done["id"])
            first = next((weights for weights in every if weights is not None), None)
            if first is None or first.ndim != 3:
                continue
            count = len(first)
            for layer in (layer for layer in range(count) if min(layer, count - 1 - layer) < BORDER):

                def one(run: int, layer: int = layer) -> NDArray[Any] | None:
                    weights = best_of(run)
                    return None if weights is None else weights[layer]

                name = f"layer {layer + 1} of {count}"
                panels.append(_panel(cells.study, column, each, one, name))
    caption = (
        f"Weights by layer before the round of best mean validation accuracy, the first {BORDER} and last "
        f"{BORDER} layers, mean over seeds; a layer is a module with its weight and bias, normalisation too. "
        "Each panel has its own scale."
    )
    return figure(cells, "collaboration_layers", caption, [panel for panel in panels if panel is not None])


def collaboration(cells: Cells, results: Results) -> Figure | None:
    """The last collaboration matrix of every method that keeps one, in every column."""
    study = cells.study

    def kept(run: int) -> NDArray[Any] | None:
        return results.artefact(int(run), ARTEFACT)

    panels = [
        panel
        for column in cells.columns
        for each in shown(cells, column)
        if (panel := _panel(study, column, each, kept)) is not None
    ]
    caption = (
        "Weights of the collaboration matrix after the last round: how much of the model of the client below "
        "goes into that of the client at the side; mean over seeds where they share the partition, else the "
        "first seed's, and over layers where every layer has its own. Clients stand in the federation's "
        "order, each panel has its own scale. No stage, rule or average plays a part."
    )
    return figure(cells, "collaboration", caption, panels)
