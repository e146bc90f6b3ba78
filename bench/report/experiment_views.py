"""From an experiment's cells to tables, captions and notes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from bench.report.captions import LEGEND, PLACES, circumstances, tolerances
from bench.report.cells import Cell, Cells
from bench.report.experiment import Line, Point
from bench.report.measures import Measure
from bench.report.places import compared_seeds, measured_places, other_seeds
from bench.report.results import Results
from bench.report.settings import Column
from bench.report.table import NOWHERE, Document, Entry, Summary, Table
from bench.report.views import noted
from bench.report.wording import AVERAGES, RULES, STAGES, label, printed, signed, with_std

SHOWN = 3
"""Columns with deviations side by side on a terminal."""

Text = Callable[[Cell, Measure], str]


def _measured(cell: Cell, measure: Measure) -> str:
    return with_std(cell.measured.mean, cell.measured.std, measure.digits) if cell.measured else "-"


def _brief(cell: Cell, measure: Measure) -> str:
    return with_std(cell.measured.mean, None, measure.digits) if cell.measured else "-"


def _published(cell: Cell, measure: Measure) -> str:
    return printed(cell.target, measure.digits)


def _verdict(cell: Cell, measure: Measure) -> str:
    if cell.target is None:
        return "-"
    if cell.difference is None:
        return cell.verdict
    return f"{signed(cell.difference, measure.digits)} {cell.verdict}"


def _table(
    outcome: Cells,
    columns: Collection[Column],
    measures: Collection[Measure],
    points: Collection[Point],
    name: str,
    title: str,
    text: Text,
    ranked: bool = False,
) -> Table:
    """Lines by points and measures for each column; lines without any text are left out.

    With ``ranked`` entries have places where the measure has some, and say so where they have other seeds.
    """
    wide = len(measures) * len(points) > 1
    heads = [(point, measure) for point in points for measure in measures]
    made: dict[tuple[Line, Column, Point, Measure], Entry] = {}
    for column in columns:
        for point, measure in heads:
            here = {
                line: cell
                for line in outcome.lines
                if (cell := outcome.at(column, line, point, measure)) is not None
            }
            seeds = compared_seeds(here.values()) if ranked else ()
            ranks = measured_places(here) if ranked and measure.ranked else {}
            for line, cell in here.items():
                shown = text(cell, measure) + other_seeds(cell, seeds)
                made[line, column, point, measure] = Entry(shown, ranks.get(line, 0))
    rows = tuple(
        (
            outcome.title(line),
            tuple(made.get((line, column, *head), NOWHERE) for column in columns for head in heads),
        )
        for line in outcome.lines
        if any(key[0] is line and entry.text != "-" for key, entry in made.items())
    )
    if wide:
        groups = tuple(
            (column.described(outcome.study.title_of(column.dataset)), len(heads)) for column in columns
        )
        titles = tuple(
            " ".join(part for part in (point.label, measure.title if len(measures) > 1 else "") if part)
            for _ in columns
            for point, measure in heads
        )
    else:
        groups = tuple((outcome.study.title_of(column.dataset), 1) for column in columns)
        titles = tuple(f"{column.scenario} {column.clients}" for column in columns)
    return Table(name, title, "Method" if outcome.by_method else "Variant", groups, titles, rows)


def _layers(outcome: Cells) -> Iterator[tuple[str, str, tuple[Measure, ...]]]:
    """Which measures share a table: all of them where a column has one point, else each has its own."""
    own = tuple(measure for measure in outcome.experiment.measures if not measure.other)
    if len(outcome.experiment.points) == 1:
        yield "", "", own
    else:
        for measure in own:
            yield f"_{measure.name}", f": {measure.title}" if len(own) > 1 else "", (measure,)
    for measure in outcome.experiment.measures:
        if measure.other:
            yield f"_{measure.name}", f": {measure.title}", (measure,)


def _with(outcome: Cells, measures: Collection[Measure], wanted: Callable[[Cell], bool]) -> list[Column]:
    found = {cell.column for cell in outcome if cell.measure in measures and wanted(cell)}
    return [column for column in outcome.columns if column in found]


def _views(outcome: Cells) -> Iterator[Table]:
    points = outcome.experiment.points
    judged = [point for point in points if not point.grid]
    for suffix, title, measures in _layers(outcome):
        ran = [column for column in outcome.ran if column in _with(outcome, measures, lambda _: True)]
        if ran:
            yield _table(
                outcome,
                ran,
                measures,
                points,
                f"measured{suffix}",
                f"Measured{title}",
                _measured,
                True,
            )
        if measures[0].other:
            continue
        beside = _with(outcome, measures, lambda cell: cell.target is not None)
        if beside:
            with_target = tuple(
                measure
                for measure in measures
                if _with(outcome, (measure,), lambda cell: cell.target is not None)
            )
            named = ", ".join(target.label for target in outcome.experiment.comparisons[0].targets)
            yield _table(
                outcome,
                beside,
                with_target,
                judged,
                f"published{suffix}",
                f"Published ({named}){title}",
                _published,
            )
            yield _table(
                outcome,
                beside,
                with_target,
                judged,
                f"verdict{suffix}",
                f"Measured minus published, and verdict{title}",
                _verdict,
            )


def _summary(outcome: Cells, notes: tuple[str, ...]) -> Summary | None:
    """What a terminal shows: the measured part, with deviations where it is one number a cell."""
    if not outcome.ran:
        return None
    own, points = (
        tuple(each for each in outcome.experiment.measures if not each.other),
        outcome.experiment.points,
    )
    if len(own) * len(points) == 1:
        whole = _table(outcome, outcome.ran, own, points, "", "Measured", _measured, True)
        return Summary(tuple(whole.blocks(SHOWN)), None, notes)
    tables = []
    for _, title, measures in _layers(outcome):
        for column in () if measures[0].other else outcome.ran:
            table = _table(outcome, [column], measures, points, "", "", _brief, True)
            ((where, width),) = table.groups
            tables.append(replace(table, title=f"{where}{title}", groups=(("", width),)))
    return Summary(tuple(tables), None, notes)


def _notes(outcome: Cells) -> tuple[str, ...]:
    """Why cells are missing or not comparable; columns of which nothing was run are named once."""
    idle = [column for column in outcome.columns if column not in outcome.ran]

    def name(column: Column, point: Point | None = None) -> str:
        where = f"{label(outcome.study, column)} {column.scenario}"
        return f"{where} at {point.label}" if point and point.label else where

    own = [point for point in outcome.experiment.points if not point.grid]
    cells = [
        (outcome.title(cell.line), name(cell.column, cell.point), cell)
        for cell in outcome.primary
        if cell.column not in idle
    ]
    found = noted(cells, [name(column, point) for column in outcome.ran for point in own])
    if idle:
        found = (*found, f"nothing run yet: {', '.join(name(column) for column in idle)}")
    return found


def _caption(outcome: Cells, results: Results) -> tuple[str, ...]:
    experiment = outcome.experiment
    lines = []
    for measure in experiment.measures:
        reading = measure.reading or outcome.study.primary
        lines.append(
            f"{measure.title}: {measure.meaning}; {STAGES[reading.stage]}, {RULES[reading.rule]} "
            f"(stage {reading.stage}, rule {reading.rule})."
            if measure.by_reading
            else f"{measure.title}: {measure.meaning}."
        )
    lines.append(
        f"Accuracies are the {AVERAGES[outcome.study.average]}; ± is the sample standard deviation over "
        "seeds."
    )
    if any(measure.ranked for measure in experiment.measures):
        lines.append(PLACES)
    lines += experiment.remarks
    if experiment.comparisons[0].targets:
        lines += [LEGEND, tolerances(outcome.study, outcome.own)]
    return (*lines, *circumstances(outcome.study, outcome.groups, results))


def document(outcome: Cells, results: Results) -> Document:
    """Everything about one experiment."""
    notes = _notes(outcome)
    return Document(
        name=f"{outcome.study.name}_{outcome.experiment.name}",
        title=f"{outcome.study.title}: {outcome.experiment.title}",
        caption=_caption(outcome, results),
        notes=notes,
        views=tuple(view for view in _views(outcome) if view.rows),
        details=(),
        summary=_summary(outcome, notes),
        primary=tuple(outcome.primary),
        cells=tuple(outcome.own),
    )
