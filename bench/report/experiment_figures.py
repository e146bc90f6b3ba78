"""From an experiment's cells to figures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bench.report import style
from bench.report.cells import Cells
from bench.report.experiment import Line
from bench.report.figures import Figure
from bench.report.measures import Measure
from bench.report.panels.curves import Curve, CurvePanel
from bench.report.panels.pairs import Pair, PairPanel
from bench.report.panels.panel import ACCURACY
from bench.report.results import Group, Results
from bench.report.settings import Column
from bench.report.study import Study
from bench.report.wording import AVERAGES, RULES, STAGES, ranges

LOSS = "loss"
"""Name under which a run keeps its training loss by round."""

WARM_UP = "method.warm_up_epochs"
"""Local epochs that a method trains before the first round."""


def _look(outcome: Cells, line: Line) -> style.Look | None:
    return None if outcome.by_method else style.nth(outcome.lines.index(line))


def _along_points(outcome: Cells, measure: Measure, column: Column, line: Line) -> Curve | None:
    cells = [
        (point.x, cell.measured)
        for point in outcome.experiment.points
        if point.x is not None
        and (cell := outcome.at(column, line, point, measure)) is not None
        and cell.measured is not None
    ]
    if len(cells) < 2:
        return None
    return Curve(
        line.method if outcome.by_method else outcome.title(line),
        outcome.title(line),
        np.array([x for x, _ in cells]),
        np.array([found.mean for _, found in cells]),
        np.array([np.nan if found.std is None else found.std for _, found in cells]),
        min(found.n for _, found in cells),
        _look(outcome, line),
    )


def _along_epochs(
    study: Study, outcome: Cells, column: Column, line: Line, group: Group, results: Results
) -> Curve | None:
    accuracy = results.curves(group, study.primary.stage, study.average)
    if not accuracy.size:
        return None
    every_epoch = group.settings["protocol.evaluate"] == "epoch"
    epochs = 1 if every_epoch else int(group.settings["protocol.local_epochs"])
    first = int(group.settings.get(WARM_UP, 0))
    return _over_seeds(outcome, line, first, epochs, accuracy)


def _along_rounds(outcome: Cells, line: Line, group: Group, results: Results) -> Curve | None:
    """None for a method that trains nothing: its losses are no numbers."""
    kept = (results.artefact(int(run), LOSS) for run in group.done["id"])
    losses = [np.asarray(loss, np.float64) for loss in kept if loss is not None and np.isfinite(loss).all()]
    return _over_seeds(outcome, line, 0, 1, np.stack(losses)) if losses else None


def _over_seeds(outcome: Cells, line: Line, first: int, step: int, values: NDArray[np.float64]) -> Curve:
    """The curve of ``values`` ``[seeds, points]``, the points ``step`` apart behind ``first``."""
    n, points = values.shape
    return Curve(
        line.method,
        outcome.title(line),
        first + step * np.arange(1, points + 1, dtype=np.float64),
        values.mean(axis=0),
        values.std(axis=0, ddof=1) if n > 1 else np.full(points, np.nan),
        n,
        _look(outcome, line),
    )


def _panels(
    study: Study,
    outcome: Cells,
    axis: str,
    curve: Callable[[Column, Line], Curve | None],
    measured: str = ACCURACY,
) -> tuple[CurvePanel, ...]:
    panels = []
    for column in outcome.ran:
        curves = tuple(found for line in outcome.lines if (found := curve(column, line)) is not None)
        if curves:
            panels.append(CurvePanel(_title(study, column), column, curves, axis, measured))
    return tuple(panels)


def _title(study: Study, column: Column) -> str:
    return column.described(study.title_of(column.dataset))


def _seeds(outcome: Cells) -> str:
    return f"Seeds: {ranges(seed for group in outcome.groups for seed in group.seeds)}."


def _read(study: Study, measure: Measure) -> str:
    reading = measure.reading or study.primary
    how = f"{STAGES[reading.stage]}, {RULES[reading.rule]} (stage {reading.stage}, rule {reading.rule})"
    return f"{measure.meaning.capitalize()}: {how}, {AVERAGES[study.average]}"


def _by_points(study: Study, outcome: Cells, measure: Measure) -> Figure:
    axis = outcome.experiment.axis
    panels = _panels(study, outcome, axis, partial(_along_points, outcome, measure))
    caption = (
        f"{_read(study, measure)}; line: mean over seeds, band: one sample standard deviation. "
        f"{_seeds(outcome)}"
    )
    name = f"{study.name}_{outcome.experiment.name}"
    return Figure(name, f"{name}_{measure.name}", caption, panels)


def _first_group(outcome: Cells, column: Column, line: Line) -> Group | None:
    """The runs of a line's first cell, where it has numbers."""
    cell = outcome.at(column, line)
    return cell.group if cell and cell.measured else None


def _by_epochs(study: Study, outcome: Cells, results: Results) -> Figure:
    def curve(column: Column, line: Line) -> Curve | None:
        group = _first_group(outcome, column, line)
        return _along_epochs(study, outcome, column, line, group, results) if group else None

    stage = study.primary.stage
    caption = (
        f"Test accuracy of {STAGES[stage]} by local epochs, those before the first round counted (stage "
        f"{stage}, no rule: every step is shown), {AVERAGES[study.average]}; line: mean over seeds, band: "
        f"one sample standard deviation. {_seeds(outcome)}"
    )
    name = f"{study.name}_{outcome.experiment.name}"
    return Figure(name, f"{name}_epochs", caption, _panels(study, outcome, "local epochs", curve))


def _losses(study: Study, outcome: Cells, results: Results) -> Figure:
    def curve(column: Column, line: Line) -> Curve | None:
        group = _first_group(outcome, column, line)
        return _along_rounds(outcome, line, group, results) if group else None

    caption = (
        "Training loss by round: cross-entropy on the clients' training nodes before each local step, mean "
        "over clients and the round's local epochs (no stage or rule plays a part); line: mean over seeds, "
        f"band: one sample standard deviation. {_seeds(outcome)}"
    )
    name = f"{study.name}_{outcome.experiment.name}"
    return Figure(name, f"{name}_loss", caption, _panels(study, outcome, "round", curve, "Training loss"))


def _pair(outcome: Cells, column: Column, line: Line) -> Pair | None:
    cell = outcome.at(column, line)
    if cell is None:
        return None
    measured, target = cell.measured, cell.target
    return Pair(
        line.method,
        line.method if outcome.by_method else outcome.title(line),
        outcome.title(line),
        measured.n if measured else 0,
        (measured.mean, measured.std) if measured else None,
        (target.mean, target.std) if target and target.mean is not None else None,
    )


def _by_line(study: Study, outcome: Cells) -> Figure:
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


def figures(study: Study, outcome: Cells, results: Results) -> list[Figure]:
    """The experiment's figures: along its axis (one a measure), by local epochs, losses, by line."""
    experiment = outcome.experiment
    made = [_by_points(study, outcome, measure) for measure in experiment.measures if experiment.axis]
    if experiment.by_epochs:
        made.append(_by_epochs(study, outcome, results))
    if experiment.losses:
        made.append(_losses(study, outcome, results))
    if experiment.by_line:
        made.append(_by_line(study, outcome))
    return [figure for figure in made if figure.panels]
