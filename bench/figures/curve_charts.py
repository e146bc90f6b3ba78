"""The figures of an experiment that show curves: by round, by epoch and along its points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.figures import style
from bench.figures.chart_lines import (
    LineRuns,
    Parts,
    curves_by_round,
    figure_of,
    key_lines,
    lines_with_numbers,
    marks_of,
    mean_rows,
    panel_of,
    reading_of,
)
from bench.figures.panels import ACCURACY, Figure, Mark, Panel
from bench.grids.experiment import Line
from bench.statistics.summary import with_intervals
from bench.studies.cells import Cell, Cells
from bench.studies.measures import Measure
from bench.studies.settings import Column, epochs_at
from bench.studies.wording import AVERAGES, STAGES

Numbers = NDArray[np.float64]

LOSS = "loss"
"""Name under which a run keeps its training loss by round."""


BAND = "line: mean over seeds, band or bar: 95 % interval of the mean (Student's t, of three seeds or more)."


OUTLIERS = "The axis need not show first rounds, nor curves far from the others."


CurveOfLine = Callable[[LineRuns], tuple[Numbers, Numbers] | None]
"""From a line to its x and its values ``[seeds, points]``, None for none."""


def _curves(cells: Cells, axis: str, values: CurveOfLine, y_label: str = ACCURACY) -> list[Panel]:
    """A panel a column of curves over rounds or epochs.

    Lines that compete with none and have but one client, such as a model of all data, are drawn beside the
    others on the same data, as far as those go; a column of such lines alone has no panel then.
    """

    panels = []
    for column in cells.columns:
        lines = lines_with_numbers(cells, column)
        whole = replace(column, clients=1)
        has_peers = any(replace(peer, clients=1) == column != peer for peer in cells.columns)
        if has_peers and not any(line.cell.line.ranked for line in lines):
            continue
        keys = key_lines(cells.study, {line.cell.line: line.measured.mean for line in lines})
        curves = [(line, curve) for line in lines if (curve := values(line))]
        end = max((x[-1] for _, (x, _) in curves), default=0)
        if column != whole and curves:
            names = {line.plain.method for line in lines}
            references = (line for line in lines_with_numbers(cells, whole) if not line.cell.line.ranked)
            others = (line for line in references if line.plain.method not in names)
            curves += [(line, curve) for line in others if (curve := values(line))]
        parts: Parts = []
        for line, (x, y) in curves:
            x, y = x[x <= end], y[:, x <= end]
            x = x.astype(int) if (x % 1 == 0).all() else x
            std = y.std(axis=0, ddof=1) if len(y) > 1 else np.nan
            rows = line.rows(**{axis: x, "n": len(y), "mean": y.mean(axis=0), "std": std})
            parts.append((rows, line.mark(keys)))
        title, label = cells.study.column_title(column), axis.capitalize()
        panels.append(panel_of(parts, "curves", title, x=axis, x_label=label, y_label=y_label))
    return [panel for panel in panels if panel is not None]


def _by_round(stage: str = "") -> CurveOfLine:
    """Curves by round of a stage, or without one of that at which the line is read."""

    def values(line: LineRuns) -> tuple[Numbers, Numbers] | None:
        x, curves = curves_by_round(replace(line.cell.reading, stage=stage or line.cell.stage))
        return (x, curves) if curves.size else None

    return values


def convergence(cells: Cells) -> list[Figure]:
    """Test accuracy by round: mean over clients, then mean and interval over seeds."""
    study = cells.study
    caption = (
        f"Test accuracy of {STAGES[study.primary.stage]} by round (stage {study.primary.stage}, but for "
        f"lines that are read at another; no rule: every round is shown), {AVERAGES[study.average]}; {BAND} "
        f"{OUTLIERS}"
    )
    panels = _curves(cells, "round", _by_round())
    return figure_of(cells, "convergence", "Test accuracy by round", caption, panels)


def rounds(cells: Cells) -> list[Figure]:
    """Test accuracy by round of every measure's stage, and what is published of single rounds as markers."""
    study = cells.study
    panels = [
        _with_published(cells, column, measure, panel)
        for column, measure in product(cells.columns, cells.primary_measures)
        for panel in _curves(
            replace(cells, columns=(column,)),
            "round",
            _by_round((measure.reading or study.primary).stage),
        )
    ]
    columns = "; ".join(map(study.column_title, cells.columns))
    caption = (
        f"Test accuracy by round (no rule: every round is shown), {AVERAGES[study.average]}, {columns}; "
        f"{BAND} Markers: published."
    )
    return figure_of(cells, "rounds", "Test accuracy by round", caption, panels)


def _with_published(cells: Cells, column: Column, measure: Measure, panel: Panel) -> Panel:
    """A panel of curves as one of that measure, with its published values as markers."""
    parts, marks = [panel.data], []
    for line, mark in marks_of(cells).items():
        if rows := _published_rows(cells, column, line, measure):
            name = f"{mark.method} (published)"
            parts.append(with_intervals(mean_rows(column, name, cells.experiment.axis, rows)))
            marks.append(Mark(name, f"{mark.label}, published", replace(mark.look, dashes="none")))
    curves = (replace(mark, look=replace(mark.look, marker="")) for mark in panel.marks)
    data = pd.concat(parts, ignore_index=True).assign(measure=measure.name)
    return replace(panel, title=measure.title, data=data, marks=(*curves, *marks))


def epochs(cells: Cells) -> list[Figure]:
    """Test accuracy by local epochs, those of a warm-up counted."""
    study, stage = cells.study, cells.study.primary.stage

    def values(line: LineRuns) -> tuple[Numbers, Numbers] | None:
        curves = cells.results.curves(line.group, stage, study.average)
        rows = np.arange(1, curves.shape[-1] + 1)
        return (epochs_at(line.group.settings, rows), curves) if curves.size else None

    caption = (
        f"Test accuracy of {STAGES[stage]} by local epochs, those before the first round counted (stage "
        f"{stage}, no rule: every step is shown), {AVERAGES[study.average]}; {BAND} {OUTLIERS}"
    )
    panels = _curves(cells, "local epochs", values)
    return figure_of(cells, "epochs", "Test accuracy by local epochs", caption, panels)


def losses(cells: Cells) -> list[Figure]:
    """Training loss by round; there is none of a method that trains nothing."""

    def values(line: LineRuns) -> tuple[Numbers, Numbers] | None:
        artefacts = line.cell.reading.artefacts(LOSS)
        run_losses = [np.asarray(loss, np.float64) for loss in artefacts if loss is not None]
        finite_losses = [loss for loss in run_losses if np.isfinite(loss).all()]
        return (np.arange(1.0, len(finite_losses[0]) + 1), np.stack(finite_losses)) if finite_losses else None

    caption = (
        "Training loss by round: cross-entropy on the clients' training nodes before each local step, mean "
        f"over clients and the round's local epochs (no stage or rule plays a part); {BAND} {OUTLIERS}"
    )
    panels = _curves(cells, "round", values, "Training loss")
    return figure_of(cells, "loss", "Training loss by round", caption, panels)


def _along(cells: Cells, column: Column, measure: Measure, with_published: bool = False) -> Panel | None:
    """A measure along the experiment's points, of lines with two of them or more; ``with_published`` adds the
    published values, dotted.
    """
    axis = cells.experiment.axis
    parts: list[pd.DataFrame] = []
    measured_marks, published_marks = [], []
    for line, mark in marks_of(cells).items():
        numbers = [(x, cell.measured) for x, cell in _cells_along(cells, column, line, measure)]
        rows = [(x, number.n, number.mean, number.std) for x, number in numbers if number]
        if len(rows) > 1:
            parts.append(mean_rows(column, mark.method, axis, rows))
            measured_marks.append(mark)
        published_rows = _published_rows(cells, column, line, measure) if with_published else []
        if len(published_rows) > 1:
            name, look = f"{mark.method} (published)", replace(mark.look, dashes=style.DASHES[-1])
            parts.append(mean_rows(column, name, axis, published_rows))
            published_marks.append(Mark(name, f"{mark.label}, published", look))
    if not measured_marks:
        return None
    data = with_intervals(pd.concat(parts, ignore_index=True))
    marks = (*measured_marks, *published_marks)
    options = {"x": axis, "x_label": axis.capitalize()}
    return Panel("curves", cells.study.column_title(column), data, marks, options)


def _cells_along(cells: Cells, column: Column, line: Line, measure: Measure) -> Iterator[tuple[float, Cell]]:
    """A line's cells at those of the experiment's points that have a place x on its axis."""
    for point in cells.experiment.points:
        cell = cells.at(column, line, point, measure)
        if point.x is not None and cell is not None:
            yield point.x, cell


def _published_rows(
    cells: Cells, column: Column, line: Line, measure: Measure
) -> list[tuple[float, int, float, None]]:
    """What is published of a line along the experiment's points: x, no run, mean, no deviation."""
    return [
        (x, 0, cell.target.mean, None)
        for x, cell in _cells_along(cells, column, line, measure)
        if cell.target and cell.target.mean is not None
    ]


def points(cells: Cells) -> list[Figure]:
    """Every measure along the experiment's points, a figure each."""
    study = cells.study
    lines = {mark.method: line for line, mark in marks_of(cells).items()}
    figures: list[Figure] = []

    def with_keys(panel: Panel) -> Panel:
        means = panel.data.groupby("method", sort=False)["mean"].mean()
        keys = key_lines(study, {lines[str(name)]: mean for name, mean in means.items()})
        marks = (replace(mark, key=lines[mark.method] in keys) for mark in panel.marks)
        return replace(panel, marks=tuple(marks))

    for measure in cells.measures:
        column_panels = [_along(cells, column, measure) for column in cells.columns]
        panels = [with_keys(panel) for panel in column_panels if panel is not None]
        title = f"{measure.meaning[:1].upper()}{measure.meaning[1:]}"
        caption = f"{measure.meaning.capitalize()}: {reading_of(study, measure)}; {BAND}"
        figures += figure_of(cells, measure.name, f"{title} by {cells.experiment.axis}", caption, panels)
    return figures


def measures(cells: Cells) -> list[Figure]:
    """All measures of the first one's metric along the experiment's points, beside published values."""
    ticks = tuple((point.x, point.label) for point in cells.experiment.points if point.x is not None)
    main_measures = [measure for measure in cells.measures if measure.metric == cells.measures[0].metric]
    panels = [
        replace(
            panel,
            title=measure.title,
            data=panel.data.assign(measure=measure.name),
            options={**panel.options, "y_label": "", "ticks": ticks},
        )
        for column in cells.columns
        for measure in main_measures
        if (panel := _along(cells, column, measure, with_published=True)) is not None
    ]
    columns = "; ".join(cells.study.column_title(column) for column in cells.columns)
    axis = cells.experiment.axis
    caption = f"Every measure by {axis}, {columns}; {BAND} Dotted: published."
    return figure_of(cells, "measures", f"Every measure by {axis}", caption, panels)
