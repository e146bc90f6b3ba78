"""The figures of an experiment that show collaboration matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.figures.chart_lines import LineRuns, figure_of, lines_with_numbers
from bench.figures.layout import Figure
from bench.figures.plots import Heat
from bench.studies.cells import Cells
from bench.studies.measures import MIXED
from bench.studies.results import Results
from bench.studies.study import Study

ARTEFACT = "collaboration"
"""Name under which a method keeps its last collaboration matrix: ``[clients, clients]``, or
``[layers, clients, clients]`` where it has one a layer."""


BORDER = 2
"""Layers at either end of a model that have heat maps of their own."""


Weights = Callable[[int], NDArray[Any] | None]
"""From a run to its weights ``[layers, clients, clients]`` or ``[clients, clients]``, where it has some."""


def _weights(study: Study, line: LineRuns, weights_of: Weights, name: str = "", **place: Any) -> Heat | None:
    """Who learns from whom: the mean over seeds and layers, of runs that share a partition. ``name`` says to
    readers, ``place`` in the frame, of which part of a model.
    """
    column, runs = line.cell.column, line.group.done
    if len(set(runs["partition_hash"])) > 1:
        # Clients of other partitions are other clients: the first seed's alone.
        runs = runs.take([0])
    square = (column.clients, column.clients)
    matrices = [
        np.asarray(weights, np.float64).reshape(-1, *square).mean(axis=0)
        for weights in map(weights_of, runs["id"].tolist())
        if weights is not None and weights.ndim in (2, 3) and weights.shape[-2:] == square
    ]
    if not matrices:
        return None
    label = f"{line.plain.label}, {name}" if name else line.plain.label
    federation = f"{study.title_of(column.dataset)}, {column.scenario}, {column.clients}"
    client, source = np.indices(square)
    mean = np.mean(matrices, axis=0)
    values = {"n": len(matrices), "client": client.ravel(), "from": source.ravel(), "weight": mean.ravel()}
    return Heat(f"{label}\n{federation}", line.rows(**place, **values))


def _every_line(cells: Cells) -> list[LineRuns]:
    return [line for column in cells.columns for line in lines_with_numbers(cells, column)]


def _best_round(results: Results, run: int, layer: int | None = None) -> NDArray[Any] | None:
    """The weights that a run's round of best validation began with, of all layers or one."""
    weights_by_round, best_round = results.artefact(run, MIXED), results.best_round(run, "trained")
    if weights_by_round is None or best_round is None or best_round >= len(weights_by_round):
        return None
    weights: NDArray[Any] = weights_by_round[best_round]
    return weights if layer is None else weights[layer]


def collaboration(cells: Cells, results: Results) -> list[Figure]:
    """The last collaboration matrix of every method that keeps one, in every column."""
    caption = (
        "Weights of the collaboration matrix after the last round: how much of the model of the client below "
        "goes into that of the client at the side; mean over seeds where they share the partition, else the "
        "first seed's, and over layers where every layer has its own. Clients stand in the federation's "
        "order, each panel has its own scale. No stage, rule or average plays a part."
    )
    quantity = "Who learns from whom after the last round"
    last_weights = partial(results.artefact, name=ARTEFACT)
    panels = (_weights(cells.study, line, last_weights) for line in _every_line(cells))
    return figure_of(cells, "collaboration", quantity, caption, panels)


def collaboration_best(cells: Cells, results: Results) -> list[Figure]:
    """What the models of the best round were mixed with, of every method that keeps it by round."""
    caption = (
        "Weights with which models were mixed before the round of best mean validation accuracy: how much of "
        "the model of the client below goes into that of the client at the side; mean over seeds, and over "
        "layers where each has its own. Each panel has its own scale."
    )
    quantity = "Who learns from whom in the best round"
    best_weights = partial(_best_round, results)
    panels = (_weights(cells.study, line, best_weights) for line in _every_line(cells))
    return figure_of(cells, "collaboration_best", quantity, caption, panels)


def collaboration_layers(cells: Cells, results: Results) -> list[Figure]:
    """The same by layer, of methods that have a matrix for each: the first two layers and the last two."""
    panels = []
    for line in _every_line(cells):
        weights_by_run = (_best_round(results, run) for run in line.group.done["id"].tolist())
        first_weights = next((weights for weights in weights_by_run if weights is not None), None)
        count = 0 if first_weights is None or first_weights.ndim != 3 else len(first_weights)
        for layer in range(count):
            if min(layer, count - 1 - layer) < BORDER:
                weights_of = partial(_best_round, results, layer=layer)
                name = f"layer {layer + 1} of {count}"
                panels.append(_weights(cells.study, line, weights_of, name, layer=layer + 1))
    caption = (
        f"Weights by layer before the round of best mean validation accuracy, the first {BORDER} and last "
        f"{BORDER} layers, mean over seeds; a layer is a module with its weight and bias, normalisation too. "
        "Each panel has its own scale."
    )
    quantity = "Who learns from whom in the best round, by layer"
    return figure_of(cells, "collaboration_layers", quantity, caption, panels)
