"""From an experiment's cells to figures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bench.report import style
from bench.report.experiment import Line
from bench.report.figures import Figure
from bench.report.measures import Measure
from bench.report.outcome import Outcome
from bench.report.panels.curves import Curve, CurvePanel
from bench.report.panels.pairs import Pair, PairPanel
from bench.report.results import Group, Results
from bench.report.settings import Column
from bench.report.views import AVERAGES, RULES, STAGES, ranges

if TYPE_CHECKING:
    from bench.report.study import Study

WARM_UP = "method.warm_up_epochs"
"""Local epochs that a method trains before the first round."""


def _look(outcome: Outcome, line: Line) -> style.Look | None:
    return None if outcome.by_method else style.nth(outcome.lines.index(line))


def _along_points(outcome: Outcome, measure: Measure, column: Column, line: Line) -> Curve | None:
    cells = [
        (point.x, cell.measured)
        for point in outcome.experiment.points
        if point.x is not None
        and (cell := outcome.cells.get((column, line, point, measure))) is not None
        and cell.measured is not None
    ]
    if len(cells) < 2:
        return None
    return Curve(
        line.method if outcome.by_method else outcome.titles[line],
        outcome.titles[line],
        np.array([x for x, _ in cells]),
        np.array([found.mean for _, found in cells]),
        np.array([np.nan if found.std is None else found.std for _, found in cells]),
        min(found.n for _, found in cells),
        _look(outcome, line),
    )


def _along_epochs(
    study: Study, outcome: Outcome, column: Column, line: Line, group: Group, results: Results
) -> Curve | None:
    accuracy = results.curves(group, study.primary.stage, study.average)
    if not accuracy.size:
        return None
    n, rows = accuracy.shape
    every_epoch = group.settings["protocol.evaluate"] == "epoch"
    epochs = 1 if every_epoch else int(group.settings["protocol.local_epochs"])
    first = int(group.settings.get(WARM_UP, 0))
    return Curve(
        line.method,
        outcome.titles[line],
        first + epochs * np.arange(1, rows + 1, dtype=np.float64),
        accuracy.mean(axis=0),
        accuracy.std(axis=0, ddof=1) if n > 1 else np.full(rows, np.nan),
        n,
        _look(outcome, line),
    )


def _panels(
    study: Study, outcome: Outcome, axis: str, curve: Callable[[Column, Line], Curve | None]
) -> tuple[CurvePanel, ...]:
    panels = []
    for column in outcome.ran:
        curves = tuple(found for line in outcome.lines if (found := curve(column, line)) is not None)
        if curves:
            panels.append(CurvePanel(_title(study, column), column, curves, axis))
    return tuple(panels)


def _title(study: Study, column: Column) -> str:
    return column.described(study.title_of(column.dataset))


def _seeds(outcome: Outcome) -> str:
    return f"Seeds: {ranges(seed for group in outcome.groups() for seed in group.seeds)}."


def _read(study: Study, measure: Measure) -> str:
    reading = measure.reading or study.primary
    how = f"{STAGES[reading.stage]}, {RULES[reading.rule]} (stage {reading.stage}, rule {reading.rule})"
    return f"{measure.meaning.capitalize()}: {how}, {AVERAGES[study.average]}"


def _by_points(study: Study, outcome: Outcome, measure: Measure) -> Figure:
    axis = outcome.experiment.axis
    panels = _panels(study, outcome, axis, partial(_along_points, outcome, measure))
    caption = (
        f"{_read(study, measure)}; line: mean over seeds, band: one sample standard deviation. "
        f"{_seeds(outcome)}"
    )
    name = f"{study.name}_{outcome.experiment.name}"
    return Figure(name, f"{name}_{measure.name}", caption, panels)


def _by_epochs(study: Study, outcome: Outcome, results: Results) -> Figure:
    point, measure = outcome.experiment.points[0], outcome.experiment.measures[0]

    def curve(column: Column, line: Line) -> Curve | None:
        cell = outcome.cells.get((column, line, point, measure))
        if cell is None or cell.measured is None or cell.group is None:
            return None
        return _along_epochs(study, outcome, column, line, cell.group, results)

    stage = study.primary.stage
    caption = (
        f"Test accuracy of {STAGES[stage]} by local epochs, those before the first round counted (stage "
        f"{stage}, no rule: every step is shown), {AVERAGES[study.average]}; line: mean over seeds, band: "
        f"one sample standard deviation. {_seeds(outcome)}"
    )
    name = f"{study.name}_{outcome.experiment.name}"
    return Figure(name, f"{name}_epochs", caption, _panels(study, outcome, "local epochs", curve))


def _pair(outcome: Outcome, column: Column, line: Line) -> Pair | None:
    point, measure = outcome.experiment.points[0], outcome.experiment.measures[0]
    cell = outcome.cells.get((column, line, point, measure))
    if cell is None:
        return None
    measured, target = cell.measured, cell.target
    return Pair(
        line.method,
        line.method if outcome.by_method else outcome.titles[line],
        outcome.titles[line],
        measured.n if measured else 0,
        (measured.mean, measured.std) if measured else None,
        (target.mean, target.std) if target and target.mean is not None else None,
    )


def _by_line(study: Study, outcome: Outcome) -> Figure:
    """Columns of which nothing was run are shown where the paper prints them."""
    panels = []
    for column in outcome.columns if outcome.ran else ():
        found = (_pair(outcome, column, line) for line in outcome.lines)
        pairs = tuple(pair for pair in found if pair and (pair.filled or pair.open))
        if pairs:
            panels.append(
                PairPanel(_title(study, column), column, pairs, "measured", "published", joined=False)
            )
    caption = (
        f"{_read(study, outcome.experiment.measures[0])}; filled: measured mean over seeds, open: published, "
        f"alone where nothing was run; bar: one sample standard deviation. {_seeds(outcome)}"
    )
    name = f"{study.name}_{outcome.experiment.name}"
    return Figure(name, f"{name}_lines", caption, tuple(panels))


def figures(study: Study, outcome: Outcome, results: Results) -> list[Figure]:
    """The experiment's figures: along its axis (one a measure), by local epochs, by line."""
    experiment = outcome.experiment
    made = [_by_points(study, outcome, measure) for measure in experiment.measures if experiment.axis]
    if experiment.by_epochs:
        made.append(_by_epochs(study, outcome, results))
    if experiment.by_line:
        made.append(_by_line(study, outcome))
    return [figure for figure in made if figure.panels]
