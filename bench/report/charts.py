"""The figures of an experiment: which frame each of them shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.report import style
from bench.report.cells import Cell, Cells
from bench.report.curves import Curves, Numbers
from bench.report.experiment import Line
from bench.report.figures import Figure
from bench.report.intervals import with_intervals
from bench.report.measures import MIXED, Measure
from bench.report.panels import ACCURACY, Mark, Panel
from bench.report.plots import Costs, Heat
from bench.report.results import Aggregate, Group, Results
from bench.report.rows import Boxes, Pairs
from bench.report.settings import PARTITION, PER_SEED, Column
from bench.report.study import Study
from bench.report.wording import AVERAGES, RULES, STAGES, ranges

LOSS = "loss"
"""Name under which a run keeps its training loss by round."""

WARM_UP = "method.warm_up_epochs"
"""Local epochs that a method trains before the first round."""

ARTEFACT = "collaboration"
"""Name under which a method keeps its last collaboration matrix: ``[clients, clients]``, or
``[layers, clients, clients]`` where it has one a layer."""

BORDER = 2
"""Layers at either end of a model that have heat maps of their own."""

ROUNDED = 9
"""Decimals of a difference: equal ones stay in the order of clients."""

PAGE = 6
"""Panels of a figure; of more there is a figure a data set."""

BAND = "line: mean over seeds, band or bar: 95 % interval of the mean (Student's t, of three seeds or more)."

OUTLIERS = "The axis need not show first rounds, nor curves far from the others, which are named below it."


class LineRuns(NamedTuple):
    """A line of a column with numbers: its title, its cell at the first point and its runs."""

    label: str
    cell: Cell
    measured: Aggregate
    group: Group
    look: style.Look

    @property
    def method(self) -> str:
        """The line's method."""
        return self.cell.method

    def mark(self, keys: Iterable[str] = ()) -> Mark:
        """How the line is drawn; its name stands in every drawing if it is among ``keys``."""
        return Mark(self.method, self.label, self.look, self.method in keys)

    def rows(self, **values: Any) -> pd.DataFrame:
        """Rows of a panel's frame: where the line is measured, and these values."""
        return _rows(self.cell.column, self.method, **values)


def _rows(column: Column, method: str, **values: Any) -> pd.DataFrame:
    several = any(np.ndim(value) for value in values.values())
    return pd.DataFrame({**asdict(column), "method": method, **values}, index=None if several else [0])


def _with_numbers(cells: Cells, column: Column, competing: bool = False) -> list[LineRuns]:
    """Lines of a column with numbers under the usual settings, each run once; without the references that
    train nothing where ``competing``.
    """
    lines = []
    for line in cells.lines:
        cell = cells.at(column, line)
        if competing and line.method in cells.study.references:
            continue
        if cell and cell.measured and cell.group and not (line.setting or line.reads):
            lines.append(LineRuns(cells.title(line), cell, cell.measured, cell.group, _look(cells, line)))
    return lines


def _keys(study: Study, lines: Iterable[LineRuns]) -> frozenset[str]:
    """The methods that matter among some: the one that the study proposes, its baseline, and the best."""
    ranked = [line for line in lines if line.method not in study.references]
    best = max(ranked, key=lambda line: line.measured.mean).method if ranked else ""
    return frozenset((study.proposed, study.baseline, best))


def _look(cells: Cells, line: Line) -> style.Look:
    """The look of a line: its method's, or one of its own where several lines have one method."""
    if cells.by_method or cells.experiment.main:
        return style.of(line.method)
    return style.nth(cells.lines.index(line))


def _name(cells: Cells, line: Line) -> str:
    """A line's name in a figure's frame: its method, or its title where several lines have one method."""
    return line.method if cells.by_method or cells.experiment.main else cells.title(line)


def _title(study: Study, column: Column) -> str:
    return column.described(study.title_of(column.dataset))


def _read(study: Study, measure: Measure | None = None, averaged: bool = True) -> str:
    """Stage and rule of a measure, or of the primary comparison, and how clients are averaged."""
    read = (measure and measure.reading) or study.primary
    how = f"{STAGES[read.stage]}, {RULES[read.rule]} (stage {read.stage}, rule {read.rule})"
    return f"{how}, {AVERAGES[study.average]}" if averaged else how


def _figure(
    cells: Cells, kind: str, heading: str, caption: str, panels: Iterable[Panel | None]
) -> Figure | None:
    """The figure of that kind; None where there is no panel. The caption gets the seeds."""
    drawn = [panel for panel in panels if panel is not None]
    if not drawn:
        return None
    document = f"{cells.study.name}_{cells.experiment.name}"
    seeds = {seed for cell in cells if cell.group and not cell.line.setting for seed in cell.group.seeds}
    return Figure(document, f"{document}_{kind}", f"{caption} Seeds: {ranges(seeds)}.", drawn, heading)


def _heading(what: str, panels: Sequence[Panel]) -> str:
    """What curves show, their seeds and what is drawn around them."""
    counts = {int(n) for panel in panels for n in panel.data["n"] if n}
    if not counts:
        return what
    fewest, most = min(counts), max(counts)
    seeds = f"{fewest} to {most} seeds" if most > fewest else f"{most} seed{'s' if most > 1 else ''}"
    return f"{what}: mean of {seeds}{_interval(panels)}"


def _interval(panels: Iterable[Panel]) -> str:
    """What a title says of the intervals of measured means, where there are some."""
    measured = any((panel.data["low"].notna() & (panel.data["n"] > 0)).any() for panel in panels)
    return ", 95 % interval" if measured else ""


Values = Callable[[LineRuns], tuple[Numbers, Numbers] | None]
"""From a line to its x and its values ``[seeds, points]``, None for none."""


def _curves(cells: Cells, axis: str, values: Values, measured: str = ACCURACY) -> list[Curves]:
    """A panel a column of curves over rounds or epochs.

    Lines that compete with none, such as a model of all data, are drawn beside the others on the same data,
    as far as those go; a column of such lines alone has no panel then.
    """
    panels = []
    for column in cells.columns:
        lines = _with_numbers(cells, column)
        alike = [
            other for other in cells.columns if replace(other, clients=column.clients) == column != other
        ]
        if alike and not any(line.cell.line.ranked for line in lines):
            continue
        keys = _keys(cells.study, lines)
        curves = [(line, curve) for line in lines if (curve := values(line))]
        end = max((x[-1] for _, (x, _) in curves), default=0)
        for other in alike:
            references = (line for line in _with_numbers(cells, other) if not line.cell.line.ranked)
            curves += [(line, curve) for line in references if (curve := values(line))]
        parts, marks = [], []
        for line, (x, y) in curves:
            x, y = x[x <= end], y[:, x <= end]
            x = x.astype(int) if (x % 1 == 0).all() else x
            std = y.std(axis=0, ddof=1) if len(y) > 1 else np.nan
            parts.append(line.rows(**{axis: x, "n": len(y), "mean": y.mean(axis=0), "std": std}))
            marks.append(line.mark(keys))
        if parts:
            data = with_intervals(pd.concat(parts, ignore_index=True))
            panels.append(
                Curves(
                    _title(cells.study, column), data, tuple(marks), axis, "mean", axis.capitalize(), measured
                )
            )
    return panels


def convergence(cells: Cells, results: Results) -> Figure | None:
    """Test accuracy by round: mean over clients, then mean and interval over seeds."""
    study = cells.study

    def values(line: LineRuns) -> tuple[Numbers, Numbers] | None:
        stored = results.curves(line.group, line.cell.stage, study.average)
        settings = line.group.settings
        by_epoch = line.cell.stage == "trained" and settings.get("protocol.evaluate") == "epoch"
        per_round = int(settings["protocol.local_epochs"]) if by_epoch else 1
        return (np.arange(1, stored.shape[1] + 1) / per_round, stored) if stored.size else None

    caption = (
        f"Test accuracy of {STAGES[study.primary.stage]} by round (stage {study.primary.stage}, but for "
        f"lines that are read at another; no rule: every round is shown), {AVERAGES[study.average]}; {BAND} "
        f"{OUTLIERS}"
    )
    panels = _curves(cells, "round", values)
    return _figure(cells, "convergence", _heading("Test accuracy by round", panels), caption, panels)


def epochs(cells: Cells, results: Results) -> Figure | None:
    """Test accuracy by local epochs, those of a warm-up counted."""
    study, stage = cells.study, cells.study.primary.stage

    def values(line: LineRuns) -> tuple[Numbers, Numbers] | None:
        stored, settings = results.curves(line.group, stage, study.average), line.group.settings
        step = 1 if settings["protocol.evaluate"] == "epoch" else int(settings["protocol.local_epochs"])
        warm_up = int(settings.get(WARM_UP, 0))
        return (warm_up + step * np.arange(1.0, stored.shape[1] + 1), stored) if stored.size else None

    caption = (
        f"Test accuracy of {STAGES[stage]} by local epochs, those before the first round counted (stage "
        f"{stage}, no rule: every step is shown), {AVERAGES[study.average]}; {BAND} {OUTLIERS}"
    )
    panels = _curves(cells, "local epochs", values)
    return _figure(cells, "epochs", _heading("Test accuracy by local epochs", panels), caption, panels)


def losses(cells: Cells, results: Results) -> Figure | None:
    """Training loss by round; there is none of a method that trains nothing."""

    def values(line: LineRuns) -> tuple[Numbers, Numbers] | None:
        stored = (results.artefact(int(run), LOSS) for run in line.group.done["id"])
        kept = [np.asarray(loss, np.float64) for loss in stored if loss is not None]
        finite = [loss for loss in kept if np.isfinite(loss).all()]
        return (np.arange(1.0, len(finite[0]) + 1), np.stack(finite)) if finite else None

    caption = (
        "Training loss by round: cross-entropy on the clients' training nodes before each local step, mean "
        f"over clients and the round's local epochs (no stage or rule plays a part); {BAND} {OUTLIERS}"
    )
    panels = _curves(cells, "round", values, "Training loss")
    return _figure(cells, "loss", _heading("Training loss by round", panels), caption, panels)


def _along(cells: Cells, column: Column, measure: Measure, published: bool = False) -> Curves | None:
    """A measure along the experiment's points, of lines with two of them or more; ``published`` adds the
    published values, dotted.
    """
    places = [point for point in cells.experiment.points if point.x is not None]
    parts: list[pd.DataFrame] = []
    measured, printed = [], []
    for line in cells.lines:
        here = [(point.x, cells.at(column, line, point, measure)) for point in places]
        look, name, label = _look(cells, line), _name(cells, line), cells.title(line)
        numbers = [(x, cell.measured) for x, cell in here if cell and cell.measured]
        if len(numbers) > 1:
            rows = [(x, number.n, number.mean, number.std) for x, number in numbers]
            parts.append(_points(cells, column, name, rows))
            measured.append(Mark(name, label, look))
        values = [
            (x, cell.target.mean) for x, cell in here if cell and cell.target and cell.target.mean is not None
        ]
        if published and len(values) > 1:
            name = f"{name} (published)"
            parts.append(_points(cells, column, name, [(x, 0, value, None) for x, value in values]))
            printed.append(Mark(name, f"{label}, published", replace(look, dashes=style.DASHES[-1])))
    if not measured:
        return None
    data = with_intervals(pd.concat(parts, ignore_index=True))
    axis = cells.experiment.axis
    return Curves(
        _title(cells.study, column), data, (*measured, *printed), axis, across_label=axis.capitalize()
    )


def _points(cells: Cells, column: Column, name: str, rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    x, n, mean, std = zip(*rows, strict=True)
    deviations = np.array(std, np.float64)
    return _rows(column, name, **{cells.experiment.axis: x, "n": n, "mean": mean, "std": deviations})


def points(cells: Cells, results: Results) -> Iterator[Figure | None]:
    """Every measure along the experiment's points, a figure each."""
    study = cells.study
    methods = {_name(cells, line): line.method for line in cells.lines}

    def with_keys(panel: Curves) -> Curves:
        # Named are the best of all lines, and the best of those of the proposed method and of the baseline.
        means = panel.data.groupby("method", sort=False)["mean"].mean()
        order = list(means.sort_values(ascending=False, kind="stable").index)
        best = [name for name in order if methods[name] not in study.references][:1]
        for method in (study.proposed, study.baseline):
            best += [name for name in order if methods[name] == method][:1]
        return replace(panel, marks=tuple(replace(mark, key=mark.method in best) for mark in panel.marks))

    for measure in cells.measures:
        drawn = [_along(cells, column, measure) for column in cells.columns]
        panels = [with_keys(panel) for panel in drawn if panel is not None]
        what = f"{measure.meaning[:1].upper()}{measure.meaning[1:]}"
        heading = _heading(f"{what} by {cells.experiment.axis}", panels)
        caption = f"{measure.meaning.capitalize()}: {_read(study, measure)}; {BAND}"
        yield _figure(cells, measure.name, heading, caption, panels)


def measures(cells: Cells, results: Results) -> Figure | None:
    """All measures of the first one's metric along the experiment's points, beside published values."""
    ticks = tuple((point.x, point.label) for point in cells.experiment.points if point.x is not None)
    own = [measure for measure in cells.measures if measure.metric == cells.measures[0].metric]
    panels = [
        replace(panel, title=measure.title, up_label="", ticks=ticks)
        for column in cells.columns
        for measure in own
        if (panel := _along(cells, column, measure, published=True)) is not None
    ]
    columns = "; ".join(_title(cells.study, column) for column in cells.columns)
    axis = cells.experiment.axis
    caption = f"Every measure by {axis}, {columns}; {BAND} Dotted: published."
    return _figure(cells, "measures", _heading(f"By {axis}", panels), caption, panels)


def _by_client(rows: pd.DataFrame, group: Group) -> pd.Series[float]:
    """Column ``value`` by the client's name: mean over seeds, but apart where each has its partition."""
    if group.settings.get(PARTITION) == PER_SEED:
        # Client 3 of one partition has nothing to do with client 3 of another: keep them apart.
        pairs = zip(rows["client"], rows["seed"], strict=True)
        return rows["value"].set_axis([f"{client} of seed {seed}" for client, seed in pairs])
    means = rows.groupby("client")["value"].mean().sort_index()
    return means.set_axis([str(client) for client in means.index])


def clients(cells: Cells, results: Results) -> Figure | None:
    """Test accuracy of every client (mean over seeds) by method, against the baseline's median."""
    study = cells.study
    baseline = study.title_of(study.baseline)

    def panel(column: Column) -> Boxes | None:
        lines = _with_numbers(cells, column)
        parts = []
        for line in lines:
            rows = results.clients(line.group, line.cell.stage, line.cell.rule)
            values = 100.0 * _by_client(rows, line.group)
            parts.append(line.rows(client=list(values.index), value=values.to_numpy()))
        if not parts:
            return None
        data = pd.concat(parts, ignore_index=True)
        alone = data.loc[data["method"] == study.baseline, "value"]
        level = None if alone.empty else float(alone.median())
        marks = tuple(line.mark() for line in lines)
        return Boxes(_title(study, column), data, marks, level, f"Median of {baseline}")

    caption = (
        f"Test accuracy of every client: {_read(study, averaged=False)}, mean over seeds that share a "
        f"partition; box: quartiles and median, a point a client, dashed: median of {baseline}."
    )
    heading = "Test accuracy of every client by method: mean over seeds"
    return _figure(cells, "clients", heading, caption, map(panel, cells.columns))


def differences(cells: Cells, results: Results) -> Figure | None:
    """Every client's accuracy minus the baseline's, sorted: who is hurt, and by how much."""
    study = cells.study
    baseline = study.title_of(study.baseline)

    def against_baseline(line: LineRuns) -> pd.DataFrame | None:
        alone = line.cell.baseline
        if alone is None or line.method == study.baseline:
            return None
        own, others = (
            results.clients(group, line.cell.stage, line.cell.rule) for group in (line.group, alone)
        )
        both = own.merge(others, on=["seed", "client"], suffixes=("", "_alone"))
        both = both.assign(value=(100.0 * (both["value"] - both["value_alone"])).round(ROUNDED))
        values = _by_client(both, line.group).sort_values(kind="stable")
        share = 100.0 * (np.arange(len(values)) + 0.5) / max(len(values), 1)
        return line.rows(client=list(values.index), share=share, difference=values.to_numpy())

    def panel(column: Column) -> Curves | None:
        lines = _with_numbers(cells, column, competing=True)
        parts = {line: rows for line in lines if (rows := against_baseline(line)) is not None and len(rows)}
        if not parts:
            return None
        marks = tuple(line.mark(_keys(study, lines)) for line in parts)
        return Curves(
            _title(study, column),
            pd.concat(parts.values(), ignore_index=True),
            marks,
            x="share",
            y="difference",
            across_label="Clients, most hurt first (%)",
            up_label=f"Points above {baseline}",
            robust=False,
            level=0.0,
        )

    caption = (
        f"Every client's test accuracy minus its own under {baseline} with the same seed and partition, mean "
        "over seeds that share a partition, sorted for each method by itself: "
        f"{_read(study, averaged=False)}; below 0: clients that are better off with {baseline}."
    )
    heading = f"Every client's test accuracy minus its own under {baseline}, sorted: mean over seeds"
    return _figure(cells, "differences", heading, caption, map(panel, cells.columns))


def stages(cells: Cells, results: Results) -> Figure | None:
    """What local epochs add or lose: both models, each at the step that the primary rule chooses for it."""
    study, rule = cells.study, cells.study.primary.rule
    kinds = ("trained", "received")

    def panel(column: Column) -> Pairs | None:
        parts, marks = [], []
        for line in _with_numbers(cells, column, competing=True):
            both = {kind: results.aggregate(line.group, kind, rule, study.average) for kind in kinds}
            numbers = [(kind, part.n, part.mean, part.std) for kind, part in both.items() if part]
            if len(numbers) == len(kinds):
                parts.append(_kinds(column, line.method, numbers))
                marks.append(line.mark())
        if not parts:
            return None
        data = with_intervals(pd.concat(parts, ignore_index=True))
        return Pairs(_title(study, column), data, tuple(marks), kinds, joined=True)

    caption = (
        f"Test accuracy of the model received from the server and of the same after local training, "
        f"{RULES[rule]} (rule {rule}, for each stage by itself), {AVERAGES[study.average]}; point: mean over "
        "seeds, bar: 95 % interval of the mean, of three seeds or more."
    )
    panels = [drawn for drawn in map(panel, cells.columns) if drawn is not None]
    heading = f"Test accuracy before and after local training: mean over seeds{_interval(panels)}"
    return _figure(cells, "stages", heading, caption, panels)


def _kinds(
    column: Column, method: str, numbers: Sequence[tuple[str, int, float, float | None]]
) -> pd.DataFrame:
    kind, n, mean, std = zip(*numbers, strict=True)
    return _rows(column, method, kind=kind, n=n, mean=mean, std=np.array(std, np.float64))


def lines(cells: Cells, results: Results) -> Figure | None:
    """The first measure of every line beside its published value, also in columns of which nothing was run,
    but not where nothing at all was.
    """

    def panel(column: Column) -> Pairs | None:
        parts, marks = [], []
        for line in cells.lines:
            cell = cells.at(column, line)
            measured, target = (cell.measured, cell.target) if cell else (None, None)
            numbers = [("measured", measured.n, measured.mean, measured.std)] if measured else []
            if target and target.mean is not None:
                numbers.append(("published", 0, target.mean, target.std))
            if numbers:
                parts.append(_kinds(column, _name(cells, line), numbers))
                marks.append(Mark(_name(cells, line), cells.title(line), _look(cells, line)))
        if not parts:
            return None
        data = with_intervals(pd.concat(parts, ignore_index=True))
        # Nobody knows a published value's interval: its deviation is drawn as it is printed.
        printed = data["kind"] == "published"
        data.loc[printed, "low"], data.loc[printed, "high"] = (
            data["mean"] - data["std"],
            data["mean"] + data["std"],
        )
        return Pairs(_title(cells.study, column), data, tuple(marks))

    first = cells.measures[0]
    caption = (
        f"{first.meaning.capitalize()}: {_read(cells.study, first)}; filled: measured mean over seeds, open: "
        "published, alone where nothing was run; bar: 95 % interval of the measured mean, of three seeds or "
        "more, and the standard deviation that is printed with a published one."
    )
    panels = [drawn for drawn in map(panel, cells.columns) if drawn is not None] if cells.ran else []
    published = any((drawn.data["kind"] == "published").any() for drawn in panels)
    heading = "Measured beside published" if published else "Measured"
    ending = "; published with its deviation" if published else ""
    title = f"{heading}: mean over seeds{_interval(panels)}{ending}"
    return _figure(cells, "lines", title, caption, panels)


def _costs(cells: Cells, name: str, axis: str, what: str, cost: Callable[[Group], float]) -> Figure | None:
    def panel(column: Column) -> Costs | None:
        lines = _with_numbers(cells, column, competing=True)
        parts = []
        for line in lines:
            numbers = {"n": line.measured.n, "mean": line.measured.mean, "std": line.measured.std}
            parts.append(line.rows(**numbers, **{name: cost(line.group)}))
        data = pd.concat(parts, ignore_index=True).dropna(subset=name) if parts else pd.DataFrame()
        if len(data) < 2 or not data[name].any():
            return None
        data = with_intervals(data.astype({"std": float})).assign(
            front=pareto_front(data[name], data["mean"])
        )
        marks = tuple(line.mark() for line in lines if line.method in set(data["method"]))
        return Costs(_title(cells.study, column), data, marks, name, axis)

    caption = (
        f"Test accuracy against {what}: {_read(cells.study)}; point: mean accuracy and median cost over "
        "seeds, bar: 95 % interval of the mean accuracy, of three seeds or more; grey: Pareto front, the "
        "best accuracy at no more cost."
    )
    panels = [drawn for drawn in map(panel, cells.columns) if drawn is not None]
    heading = f"Test accuracy against {axis[0].lower()}{axis[1:]}: mean over seeds{_interval(panels)}"
    return _figure(cells, name, heading, caption, panels)


def pareto_front(costs: pd.Series[float], means: pd.Series[float]) -> list[int]:
    """1 for points that no other one beats: none is as accurate at less cost, or better at no more."""
    beaten = [
        ((costs <= cost) & (means >= mean) & ((costs < cost) | (means > mean))).any()
        for cost, mean in zip(costs, means, strict=True)
    ]
    return [int(not lost) for lost in beaten]


def megabytes(cells: Cells, results: Results) -> Figure | None:
    """Accuracy against what clients and server exchange."""
    what = "the megabytes that a run exchanges in both directions"
    return _costs(
        cells,
        "megabytes",
        "Megabytes exchanged",
        what,
        lambda group: float(np.median(group.done["bytes_up"] + group.done["bytes_down"])) / 1e6,
    )


def seconds(cells: Cells, results: Results) -> Figure | None:
    """Accuracy against what a run takes."""
    what = (
        "the seconds that a run takes, evaluation included (machines may be shared, and differ between runs)"
    )
    return _costs(cells, "seconds", "Seconds", what, lambda group: group.seconds)


Weights = Callable[[int], NDArray[Any] | None]
"""From a run to its weights ``[layers, clients, clients]`` or ``[clients, clients]``, where it has some."""


def _weights(study: Study, line: LineRuns, weights_of: Weights, name: str = "") -> Heat | None:
    """Who learns from whom: the mean over seeds and layers, of runs that share a partition."""
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
    label = f"{line.label}, {name}" if name else line.label
    where = f"{study.title_of(column.dataset)}, {column.scenario}, {column.clients}"
    client, other = np.indices(square)
    mean = np.mean(matrices, axis=0)
    values = {"n": len(matrices), "client": client.ravel(), "from": other.ravel(), "weight": mean.ravel()}
    return Heat(f"{label}\n{where}", line.rows(**values))


def _every_line(cells: Cells) -> list[LineRuns]:
    return [line for column in cells.columns for line in _with_numbers(cells, column)]


def _best_round(results: Results, run: int, layer: int | None = None) -> NDArray[Any] | None:
    """The weights that a run's round of best validation began with, of all layers or one."""
    kept, best = results.artefact(run, MIXED), results.best_round(run, "trained")
    if kept is None or best is None or best >= len(kept):
        return None
    weights: NDArray[Any] = kept[best]
    return weights if layer is None else weights[layer]


def collaboration(cells: Cells, results: Results) -> Figure | None:
    """The last collaboration matrix of every method that keeps one, in every column."""
    caption = (
        "Weights of the collaboration matrix after the last round: how much of the model of the client below "
        "goes into that of the client at the side; mean over seeds where they share the partition, else the "
        "first seed's, and over layers where every layer has its own. Clients stand in the federation's "
        "order, each panel has its own scale. No stage, rule or average plays a part."
    )
    heading = "Who learns from whom after the last round: mean over seeds"
    last = partial(results.artefact, name=ARTEFACT)
    panels = (_weights(cells.study, line, last) for line in _every_line(cells))
    return _figure(cells, "collaboration", heading, caption, panels)


def collaboration_best(cells: Cells, results: Results) -> Figure | None:
    """What the models of the best round were mixed with, of every method that keeps it by round."""
    caption = (
        "Weights with which models were mixed before the round of best mean validation accuracy: how much of "
        "the model of the client below goes into that of the client at the side; mean over seeds, and over "
        "layers where each has its own. Each panel has its own scale."
    )
    heading = "Who learns from whom in the best round: mean over seeds"
    best = partial(_best_round, results)
    panels = (_weights(cells.study, line, best) for line in _every_line(cells))
    return _figure(cells, "collaboration_best", heading, caption, panels)


def collaboration_layers(cells: Cells, results: Results) -> Figure | None:
    """The same by layer, of methods that have a matrix for each: the first two layers and the last two."""
    panels = []
    for line in _every_line(cells):
        kept = (_best_round(results, run) for run in line.group.done["id"].tolist())
        first = next((weights for weights in kept if weights is not None), None)
        count = 0 if first is None or first.ndim != 3 else len(first)
        for layer in range(count):
            if min(layer, count - 1 - layer) < BORDER:
                weights_of = partial(_best_round, results, layer=layer)
                panels.append(_weights(cells.study, line, weights_of, f"layer {layer + 1} of {count}"))
    caption = (
        f"Weights by layer before the round of best mean validation accuracy, the first {BORDER} and last "
        f"{BORDER} layers, mean over seeds; a layer is a module with its weight and bias, normalisation too. "
        "Each panel has its own scale."
    )
    heading = "Who learns from whom in the best round, by layer: mean over seeds"
    return _figure(cells, "collaboration_layers", heading, caption, panels)


Drawing = Callable[[Cells, Results], Figure | Iterable[Figure | None] | None]

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
        result = FIGURES[name](cells, results)
        several = [result] if result is None or isinstance(result, Figure) else result
        for figure in several:
            yield from () if figure is None else pages(figure)


def pages(figure: Figure) -> Iterator[Figure]:
    """A figure in parts that fit a page: one a federation where its panels are crowded, one a data set where
    they are many. A part's name ends with what it shows.
    """
    crowded = len(figure.panels) > 1 and any(panel.crowded for panel in figure.panels)
    names = ["dataset", "scenario", "clients"] if crowded else ["dataset"] * (len(figure.panels) > PAGE)
    parts: dict[str, list[Panel]] = {}
    for panel in figure.panels:
        place = panel.data.iloc[0]
        ending = "".join(f"_{re.sub('[^A-Za-z0-9.-]+', '-', str(place[name]))}" for name in names)
        parts.setdefault(ending, []).append(panel)
    for ending, panels in parts.items():
        yield replace(figure, name=f"{figure.name}{ending}", panels=panels)
