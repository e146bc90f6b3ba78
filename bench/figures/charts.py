"""The figures of an experiment and of what clients hold: which frame each of them shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import isnan
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.data import Images
from bench.errors import RequestError
from bench.federation import scenarios
from bench.federation.images import ImageScenario
from bench.federation.prepared import Prepared
from bench.federation.statistics import class_counts
from bench.figures.chart_lines import (
    LineRuns,
    Parts,
    by_client,
    figure_of,
    lines_with_numbers,
    marks_of,
    mean_rows,
    panel_of,
    panels_of,
    reading_of,
)
from bench.figures.curve_charts import convergence, epochs, losses, measures, points, rounds
from bench.figures.panels import Figure, Panel
from bench.studies.cells import Cells
from bench.studies.groups import Group
from bench.studies.measures import MIXED
from bench.studies.results import Results
from bench.studies.settings import Column
from bench.studies.study import Study
from bench.studies.wording import AVERAGES, RULES

ROUNDED = 9
"""Decimals of a difference: equal ones stay in the order of clients."""


def clients(cells: Cells) -> list[Figure]:
    """Test accuracy of every client (mean over seeds) by method, against the baseline's median."""
    study = cells.study
    baseline = study.title_of(study.baseline)
    baseline_names = [mark.method for line, mark in marks_of(cells).items() if line.method == study.baseline]

    def rows(line: LineRuns) -> pd.DataFrame:
        values = 100.0 * by_client(line.cell.reading.rows, line.group)
        return line.rows(client=list(values.index), value=values.to_numpy())

    def with_level(panel: Panel) -> Panel:
        medians = [panel.parts[name]["value"].median() for name in baseline_names if name in panel.parts]
        level = float(medians[-1]) if medians else None
        return replace(panel, options={"level": level, "level_label": f"Median of {baseline}"})

    caption = (
        f"Test accuracy of every client: {reading_of(study, average=False)}, mean over seeds that share a "
        f"partition; box: quartiles and median, a point a client, dashed: median of {baseline}."
    )
    quantity = "Test accuracy of every client by method"
    panels = panels_of(cells, "boxes", rows)
    return figure_of(cells, "clients", quantity, caption, list(map(with_level, panels)))


def differences(cells: Cells) -> list[Figure]:
    """Every client's accuracy minus the baseline's, sorted: who is hurt, and by how much; of the experiment's
    own lines.
    """
    study = cells.study
    baseline = study.title_of(study.baseline)

    def rows(line: LineRuns) -> pd.DataFrame | None:
        baseline_group = line.cell.baseline
        if baseline_group is None or line.method == study.baseline:
            return None
        line_rows, baseline_rows = (
            cells.results.clients(group, line.cell.stage, line.cell.rule)
            for group in (line.group, baseline_group)
        )
        pairs = line_rows.merge(baseline_rows, on=["seed", "client"], suffixes=("", "_alone"))
        pairs = pairs.assign(value=(100.0 * (pairs["value"] - pairs["value_alone"])).round(ROUNDED))
        values = by_client(pairs, line.group).sort_values(kind="stable")
        share = 100.0 * (np.arange(len(values)) + 0.5) / max(len(values), 1)
        frame = line.rows(client=list(values.index), share=share, difference=values.to_numpy())
        return frame if len(frame) else None

    panels = panels_of(
        cells,
        "curves",
        rows,
        lambda line: line.competes and line.cell.line.is_own,
        x="share",
        y="difference",
        x_label="Clients, most hurt first (%)",
        y_label=f"Points above {baseline}",
        is_robust=False,
        level=0.0,
    )
    caption = (
        f"Every client's test accuracy minus its own under {baseline} with the same seed and partition, mean "
        "over seeds that share a partition, sorted for each method by itself: "
        f"{reading_of(study, average=False)}; below 0: clients that are better off with {baseline}."
    )
    quantity = f"Every client's test accuracy minus its own under {baseline}, sorted"
    return figure_of(cells, "differences", quantity, caption, panels)


def stages(cells: Cells) -> list[Figure]:
    """What local epochs add or lose: both models, each at the step that the primary rule chooses for it."""
    study, rule = cells.study, cells.study.primary.rule
    kinds = ("trained", "received")

    def rows(line: LineRuns) -> pd.DataFrame | None:
        parts = [(kind, cells.results.aggregate(line.group, kind, rule, study.average)) for kind in kinds]
        means = [(kind, part.n, part.mean, part.std) for kind, part in parts if part]
        if len(means) < len(kinds):
            return None
        return mean_rows(line.cell.column, line.plain.method, "kind", means)

    caption = (
        f"Test accuracy of the model received from the server and of the same after local training, "
        f"{RULES[rule]} (rule {rule}, for each stage by itself), {AVERAGES[study.average]}; point: mean over "
        "seeds, bar: 95 % interval of the mean, of three seeds or more."
    )
    quantity = "Test accuracy before and after local training"
    panels = panels_of(cells, "pairs", rows, lambda line: line.competes, kinds=kinds, is_joined=True)
    return figure_of(cells, "stages", quantity, caption, panels)


def lines(cells: Cells) -> list[Figure]:
    """The first measure of every line beside its published value. An experiment's are drawn in columns of
    which nothing was run, too, but not where nothing at all was; a main table has too many of these.
    """

    def panel(column: Column) -> Panel | None:
        parts: Parts = []
        for line, mark in marks_of(cells).items():
            if cells.experiment.main and line.setting:
                continue  # what the database has beside the usual settings
            cell = cells.at(column, line)
            aggregate, target = (cell.measured, cell.target) if cell else (None, None)
            means = [("measured", aggregate.n, aggregate.mean, aggregate.std)] if aggregate else []
            if target and target.mean is not None:
                means.append(("published", 0, target.mean, target.std))
            if means:
                parts.append((mean_rows(column, mark.method, "kind", means), mark))
        panel = panel_of(parts, "pairs", cells.study.column_title(column))
        if panel:
            # Nobody knows a published value's interval: its deviation is drawn as it is printed.
            data = panel.data
            is_published, mean, std = data["kind"] == "published", data["mean"], data["std"]
            data.loc[is_published, "low"], data.loc[is_published, "high"] = mean - std, mean + std
        return panel

    measure = cells.measures[0]
    caption = (
        f"{measure.meaning.capitalize()}: {reading_of(cells.study, measure)}; filled: measured mean over "
        "seeds, open: published, alone where nothing was run; bar: 95 % interval of the measured mean, of "
        "three seeds or more, and the standard deviation that is printed with a published one."
    )
    columns = cells.columns if cells.run_columns and not cells.experiment.main else cells.run_columns
    panels = [drawn for drawn in map(panel, columns) if drawn]
    quantity = f"{measure.meaning[:1].upper()}{measure.meaning[1:]}"
    return figure_of(cells, "lines", quantity, caption, panels)


def _costs(cells: Cells, name: str, axis: str, meaning: str, cost: Callable[[Group], float]) -> list[Figure]:
    def rows(line: LineRuns) -> pd.DataFrame | None:
        line_cost, measured = cost(line.group), line.measured
        if isnan(line_cost):
            return None
        return line.rows(n=measured.n, mean=measured.mean, std=measured.std, **{name: line_cost})

    panels = [
        replace(panel, data=panel.data.assign(front=pareto_front(panel.data[name], panel.data["mean"])))
        for panel in panels_of(cells, "costs", rows, lambda line: line.competes, x=name, x_label=axis)
        if len(panel.data) > 1 and panel.data[name].any()
    ]
    caption = (
        f"Test accuracy against {meaning}: {reading_of(cells.study)}; point: mean accuracy over seeds, bar: "
        "95 % interval of it, of three seeds or more; grey line: Pareto front, the best accuracy at no more "
        "cost; grey dots: of many methods those without a name."
    )
    quantity = f"Test accuracy against {axis[0].lower()}{axis[1:]}"
    return figure_of(cells, name, quantity, caption, panels)


def pareto_front(costs: pd.Series[float], means: pd.Series[float]) -> list[int]:
    """1 for points that no other one beats: none is as accurate at less cost, or better at no more."""
    is_beaten = [
        ((costs <= cost) & (means >= mean) & ((costs < cost) | (means > mean))).any()
        for cost, mean in zip(costs, means, strict=True)
    ]
    return [int(not is_lost) for is_lost in is_beaten]


def megabytes(cells: Cells) -> list[Figure]:
    """Accuracy against what clients and server exchange."""
    meaning = "the megabytes that a run exchanges in both directions, mean over seeds"
    return _costs(cells, "megabytes", "Megabytes exchanged", meaning, lambda group: group.megabytes)


def seconds(cells: Cells) -> list[Figure]:
    """Accuracy against what a run takes."""
    meaning = (
        "the seconds that a run takes, median over seeds, evaluation included (machines may be shared, and "
        "differ between runs)"
    )
    return _costs(cells, "seconds", "Seconds", meaning, lambda group: group.seconds)


ARTEFACT = "collaboration"
"""Name under which a method keeps its last collaboration matrix: ``[clients, clients]``, or
``[layers, clients, clients]`` where it has one a layer."""


BORDER = 2
"""Layers at either end of a model that have heat maps of their own."""


Weights = Callable[[int], NDArray[Any] | None]
"""From a run to its weights ``[layers, clients, clients]`` or ``[clients, clients]``, where it has some."""


def _weights(study: Study, line: LineRuns, weights_of: Weights, name: str = "", **place: Any) -> Panel | None:
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
    return Panel("heat", f"{label}\n{federation}", line.rows(**place, **values))


def _all_lines(cells: Cells) -> Iterator[LineRuns]:
    return (line for column in cells.columns for line in lines_with_numbers(cells, column))


def _weight_panels(cells: Cells, weights_of: Weights) -> list[Panel]:
    return [panel for line in _all_lines(cells) if (panel := _weights(cells.study, line, weights_of))]


def _best_round(results: Results, run: int, layer: int | None = None) -> NDArray[Any] | None:
    """The weights that a run's round of best validation began with, of all layers or one."""
    weights_by_round, best_round = results.artefact(run, MIXED), results.best_round(run, "trained")
    if weights_by_round is None or best_round is None or best_round >= len(weights_by_round):
        return None
    weights: NDArray[Any] = weights_by_round[best_round]
    return weights if layer is None else weights[layer]


def collaboration(cells: Cells) -> list[Figure]:
    """The last collaboration matrix of every method that keeps one, in every column."""
    caption = (
        "Weights of the collaboration matrix after the last round: how much of the model of the client below "
        "goes into that of the client at the side; mean over seeds where they share the partition, else the "
        "first seed's, and over layers where every layer has its own. Clients stand in the federation's "
        "order, each panel has its own scale. No stage, rule or average plays a part."
    )
    quantity = "Who learns from whom after the last round"
    panels = _weight_panels(cells, partial(cells.results.artefact, name=ARTEFACT))
    return figure_of(cells, "collaboration", quantity, caption, panels)


def collaboration_best(cells: Cells) -> list[Figure]:
    """What the models of the best round were mixed with, of every method that keeps it by round."""
    caption = (
        "Weights with which models were mixed before the round of best mean validation accuracy: how much of "
        "the model of the client below goes into that of the client at the side; mean over seeds, and over "
        "layers where each has its own. Each panel has its own scale."
    )
    quantity = "Who learns from whom in the best round"
    panels = _weight_panels(cells, partial(_best_round, cells.results))
    return figure_of(cells, "collaboration_best", quantity, caption, panels)


def collaboration_layers(cells: Cells) -> list[Figure]:
    """The same by layer, of methods that have a matrix for each: the first two layers and the last two."""
    panels = []
    for line in _all_lines(cells):
        weights_by_run = (_best_round(cells.results, run) for run in line.group.done["id"].tolist())
        first_weights = next((weights for weights in weights_by_run if weights is not None), None)
        count = 0 if first_weights is None or first_weights.ndim != 3 else len(first_weights)
        for layer in range(count):
            weights_of = partial(_best_round, cells.results, layer=layer)
            name = f"layer {layer + 1} of {count}"
            is_near_border = min(layer, count - 1 - layer) < BORDER
            if is_near_border and (panel := _weights(cells.study, line, weights_of, name, layer=layer + 1)):
                panels.append(panel)
    caption = (
        f"Weights by layer before the round of best mean validation accuracy, the first {BORDER} and last "
        f"{BORDER} layers, mean over seeds; a layer is a module with its weight and bias, normalisation too. "
        "Each panel has its own scale."
    )
    quantity = "Who learns from whom in the best round, by layer"
    return figure_of(cells, "collaboration_layers", quantity, caption, panels)


Drawing = Callable[[Cells], list[Figure]]

DRAWINGS: dict[str, Drawing] = {
    "lines": lines,
    "convergence": convergence,
    "clients": clients,
    "differences": differences,
    "stages": stages,
    "megabytes": megabytes,
    "seconds": seconds,
    "collaboration": collaboration,
    "points": points,
    "measures": measures,
    "epochs": epochs,
    "rounds": rounds,
    "loss": losses,
    "collaboration_best": collaboration_best,
    "collaboration_layers": collaboration_layers,
}
"""How each of ``bench.studies.experiment.FIGURES`` is drawn."""

MAIN = tuple(DRAWINGS)[:8]
"""Figures of a main table."""


def figures(cells: Cells) -> Iterator[Figure]:
    """The figures that an experiment names, those of them in which there is something to draw."""
    for name in cells.experiment.figures or (MAIN if cells.experiment.main else ()):
        yield from DRAWINGS[name](cells)


def class_figure(prepared_data: Prepared, names: Sequence[str], clients: int) -> Figure:
    """Dots for every scenario of these names, drawn with the data set's own partition seed.

    Raises:
        RequestError: the data are no images, or a scenario is unknown, not one of images, or cannot give that
            many clients.
    """
    kind, data = prepared_data.dataset, prepared_data.data
    if not isinstance(data, Images):
        raise RequestError(f"data set {kind.name}: expected images, whose clients are drawn by labels alone")
    labels = data.labels if data.population is None else data.population
    frames = {}
    for name in names:
        scenario = scenarios.parse(name)
        if not isinstance(scenario, ImageScenario):
            raise RequestError(f"scenario '{name}': expected one of images")
        shares = scenario.shares(labels, clients, kind.protocol.partition_seed)
        counts = np.asarray(class_counts([labels[share] for share in shares], data.classes))
        client, number = np.indices(counts.shape)
        frames[name] = pd.DataFrame(
            {
                "dataset": kind.name,
                "scenario": name,
                "clients": clients,
                "client": client.ravel(),
                "class": number.ravel(),
                "items": counts.ravel(),
            }
        )
    most_items = max(int(frame["items"].max()) for frame in frames.values())
    panels = [
        Panel("dots", f"{kind.title}, {name}", frame, options={"most_items": most_items})
        for name, frame in frames.items()
    ]
    caption = (
        f"Items of each class that every client has of the complete data set; the largest dot stands for "
        f"{most_items}, areas are proportional."
    )
    return Figure(f"{kind.name}_classes", caption, panels, "Items of each class by client")
