"""The figures of an experiment: which frame each of them shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import isnan

import numpy as np
import pandas as pd

from bench.figures.chart_lines import (
    LineRuns,
    Parts,
    by_column,
    figure_of,
    key_lines,
    lines_with_numbers,
    marks_of,
    panel_of,
    reading_of,
    rows_of,
)
from bench.figures.curve_charts import convergence, epochs, losses, measures, points, rounds
from bench.figures.curves import Curves
from bench.figures.layout import Figure
from bench.figures.plots import Costs
from bench.figures.rows import Boxes, Pairs
from bench.figures.weight_charts import collaboration, collaboration_best, collaboration_layers
from bench.grids.grid import PARTITION_SEED
from bench.studies.cells import Cells
from bench.studies.groups import Group
from bench.studies.results import Results
from bench.studies.settings import PER_SEED, Column
from bench.studies.wording import AVERAGES, RULES

ROUNDED = 9
"""Decimals of a difference: equal ones stay in the order of clients."""


def _by_client(rows: pd.DataFrame, group: Group) -> pd.Series[float]:
    """Column ``value`` by the client's name: mean over seeds, but apart where each has its partition."""
    if group.settings.get(PARTITION_SEED) == PER_SEED:
        # Client 3 of one partition has nothing to do with client 3 of another: keep them apart.
        pairs = zip(rows["client"], rows["seed"], strict=True)
        return rows["value"].set_axis([f"{client} of seed {seed}" for client, seed in pairs])
    means = rows.groupby("client")["value"].mean().sort_index()
    return means.set_axis([str(client) for client in means.index])


def clients(cells: Cells, results: Results) -> list[Figure]:
    """Test accuracy of every client (mean over seeds) by method, against the baseline's median."""
    study = cells.study
    baseline = study.title_of(study.baseline)

    def panel(column: Column) -> Boxes | None:
        parts: Parts = []
        level = None
        for line in lines_with_numbers(cells, column):
            rows = results.clients(line.group, line.cell.stage, line.cell.rule)
            values = 100.0 * _by_client(rows, line.group)
            if line.method == study.baseline:
                level = float(values.median())
            parts.append((line.rows(client=list(values.index), value=values.to_numpy()), line.mark()))
        return panel_of(parts, Boxes, study.column_title(column), level, f"Median of {baseline}")

    caption = (
        f"Test accuracy of every client: {reading_of(study, average=False)}, mean over seeds that share a "
        f"partition; box: quartiles and median, a point a client, dashed: median of {baseline}."
    )
    quantity = "Test accuracy of every client by method"
    return figure_of(cells, "clients", quantity, caption, by_column(cells, panel))


def differences(cells: Cells, results: Results) -> list[Figure]:
    """Every client's accuracy minus the baseline's, sorted: who is hurt, and by how much; of the experiment's
    own lines.
    """
    study = cells.study
    baseline = study.title_of(study.baseline)

    def against_baseline(line: LineRuns) -> pd.DataFrame | None:
        baseline = line.cell.baseline
        if baseline is None or line.method == study.baseline:
            return None
        line_rows, baseline_rows = (
            results.clients(group, line.cell.stage, line.cell.rule) for group in (line.group, baseline)
        )
        pairs = line_rows.merge(baseline_rows, on=["seed", "client"], suffixes=("", "_alone"))
        pairs = pairs.assign(value=(100.0 * (pairs["value"] - pairs["value_alone"])).round(ROUNDED))
        values = _by_client(pairs, line.group).sort_values(kind="stable")
        share = 100.0 * (np.arange(len(values)) + 0.5) / max(len(values), 1)
        return line.rows(client=list(values.index), share=share, difference=values.to_numpy())

    def panel(column: Column) -> Curves | None:
        all_lines = lines_with_numbers(cells, column, only_competing=True)
        lines = [line for line in all_lines if line.cell.line.is_own]
        parts: Parts = []
        keys = key_lines(study, lines)
        for line in lines:
            rows = against_baseline(line)
            if rows is not None and len(rows):
                parts.append((rows, line.mark(keys)))
        return panel_of(
            parts,
            Curves,
            study.column_title(column),
            x="share",
            y="difference",
            across_label="Clients, most hurt first (%)",
            up_label=f"Points above {baseline}",
            is_robust=False,
            level=0.0,
        )

    caption = (
        f"Every client's test accuracy minus its own under {baseline} with the same seed and partition, mean "
        "over seeds that share a partition, sorted for each method by itself: "
        f"{reading_of(study, average=False)}; below 0: clients that are better off with {baseline}."
    )
    quantity = f"Every client's test accuracy minus its own under {baseline}, sorted"
    return figure_of(cells, "differences", quantity, caption, by_column(cells, panel))


def stages(cells: Cells, results: Results) -> list[Figure]:
    """What local epochs add or lose: both models, each at the step that the primary rule chooses for it."""
    study, rule = cells.study, cells.study.primary.rule
    kinds = ("trained", "received")

    def panel(column: Column) -> Pairs | None:
        parts: Parts = []
        for line in lines_with_numbers(cells, column, only_competing=True):
            aggregates = {kind: results.aggregate(line.group, kind, rule, study.average) for kind in kinds}
            numbers = [(kind, part.n, part.mean, part.std) for kind, part in aggregates.items() if part]
            if len(numbers) == len(kinds):
                parts.append((_kinds(column, line.plain.method, numbers), line.mark()))
        return panel_of(parts, Pairs, study.column_title(column), kinds, is_joined=True)

    caption = (
        f"Test accuracy of the model received from the server and of the same after local training, "
        f"{RULES[rule]} (rule {rule}, for each stage by itself), {AVERAGES[study.average]}; point: mean over "
        "seeds, bar: 95 % interval of the mean, of three seeds or more."
    )
    quantity = "Test accuracy before and after local training"
    return figure_of(cells, "stages", quantity, caption, by_column(cells, panel))


def _kinds(
    column: Column, name: str, numbers: Sequence[tuple[str, int, float, float | None]]
) -> pd.DataFrame:
    kind, n, mean, std = zip(*numbers, strict=True)
    return rows_of(column, name, kind=kind, n=n, mean=mean, std=np.array(std, np.float64))


def lines(cells: Cells, results: Results) -> list[Figure]:
    """The first measure of every line beside its published value, also in columns of which nothing was run,
    but not where nothing at all was.
    """

    def panel(column: Column) -> Pairs | None:
        parts: Parts = []
        for line, mark in marks_of(cells).items():
            cell = cells.at(column, line)
            aggregate, target = (cell.measured, cell.target) if cell else (None, None)
            numbers = [("measured", aggregate.n, aggregate.mean, aggregate.std)] if aggregate else []
            if target and target.mean is not None:
                numbers.append(("published", 0, target.mean, target.std))
            if numbers:
                parts.append((_kinds(column, mark.method, numbers), mark))
        panel = panel_of(parts, Pairs, cells.study.column_title(column))
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
    panels = by_column(cells, panel) if cells.run_columns else []
    quantity = f"{measure.meaning[:1].upper()}{measure.meaning[1:]}"
    return figure_of(cells, "lines", quantity, caption, panels)


def _costs(cells: Cells, name: str, axis: str, meaning: str, cost: Callable[[Group], float]) -> list[Figure]:
    def panel(column: Column) -> Costs | None:
        parts: Parts = []
        lines = lines_with_numbers(cells, column, only_competing=True)
        keys = key_lines(cells.study, lines)
        for line in lines:
            line_cost = cost(line.group)
            if not isnan(line_cost):
                numbers = {"n": line.measured.n, "mean": line.measured.mean, "std": line.measured.std}
                parts.append((line.rows(**numbers, **{name: line_cost}), line.mark(keys)))
        panel = panel_of(parts, Costs, cells.study.column_title(column), name, axis)
        if panel is None or len(panel.data) < 2 or not panel.data[name].any():
            return None
        front = pareto_front(panel.data[name], panel.data["mean"])
        return replace(panel, data=panel.data.assign(front=front))

    caption = (
        f"Test accuracy against {meaning}: {reading_of(cells.study)}; point: mean accuracy and median "
        "cost over seeds, bar: 95 % interval of the mean accuracy, of three seeds or more; grey line: Pareto "
        "front, the best accuracy at no more cost; grey dots: of many methods those without a name."
    )
    quantity = f"Test accuracy against {axis[0].lower()}{axis[1:]}"
    return figure_of(cells, name, quantity, caption, by_column(cells, panel))


def pareto_front(costs: pd.Series[float], means: pd.Series[float]) -> list[int]:
    """1 for points that no other one beats: none is as accurate at less cost, or better at no more."""
    is_beaten = [
        ((costs <= cost) & (means >= mean) & ((costs < cost) | (means > mean))).any()
        for cost, mean in zip(costs, means, strict=True)
    ]
    return [int(not is_lost) for is_lost in is_beaten]


def megabytes(cells: Cells, results: Results) -> list[Figure]:
    """Accuracy against what clients and server exchange."""
    meaning = "the megabytes that a run exchanges in both directions"
    return _costs(
        cells,
        "megabytes",
        "Megabytes exchanged",
        meaning,
        lambda group: float(np.median(group.done["bytes_up"] + group.done["bytes_down"])) / 1e6,
    )


def seconds(cells: Cells, results: Results) -> list[Figure]:
    """Accuracy against what a run takes."""
    meaning = (
        "the seconds that a run takes, evaluation included (machines may be shared, and differ between runs)"
    )
    return _costs(cells, "seconds", "Seconds", meaning, lambda group: group.seconds)


Drawing = Callable[[Cells, Results], list[Figure]]

FIGURES: dict[str, Drawing] = {
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
    "lines": lines,
    "collaboration_best": collaboration_best,
    "collaboration_layers": collaboration_layers,
}
"""What an experiment may have drawn."""

MAIN = tuple(FIGURES)[:7]
"""Figures of a main table."""


def figures(cells: Cells, results: Results) -> Iterator[Figure]:
    """The figures that an experiment names, those of them in which there is something to draw."""
    for name in cells.experiment.figures or (MAIN if cells.experiment.main else ()):
        yield from FIGURES[name](cells, results)
