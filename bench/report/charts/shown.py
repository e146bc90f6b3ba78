"""Which runs figures show, and what their captions say of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bench.report import style
from bench.report.cells import Cell, Cells
from bench.report.experiment import Line
from bench.report.figures import Figure
from bench.report.measures import Measure
from bench.report.panels.panel import Panel
from bench.report.results import Aggregate, Group
from bench.report.settings import Column
from bench.report.study import Study
from bench.report.wording import AVERAGES, RULES, STAGES, ranges


class Shown(NamedTuple):
    """A line of a column with numbers: its title, its cell at the first point and its runs."""

    label: str
    cell: Cell
    measured: Aggregate
    group: Group
    look: style.Look | None

    @property
    def method(self) -> str:
        """The line's method."""
        return self.cell.method


def shown(cells: Cells, column: Column) -> list[Shown]:
    """Lines of a column with numbers, each run once, under the usual settings."""
    lines = []
    for line in cells.lines:
        cell = cells.at(column, line)
        if cell and cell.measured and cell.group and not (line.setting or line.reads):
            lines.append(Shown(cells.title(line), cell, cell.measured, cell.group, look(cells, line)))
    return lines


def contenders(cells: Cells, column: Column) -> list[Shown]:
    """The same without the references that train nothing."""
    return [each for each in shown(cells, column) if each.method not in cells.study.references]


def look(cells: Cells, line: Line) -> style.Look | None:
    """A line's own look; None for the look of its method, where every line is another one."""
    by_method = cells.by_method or cells.experiment.main
    return None if by_method else style.nth(cells.lines.index(line))


def name(cells: Cells, line: Line) -> str:
    """A line's name in a figure's numbers: its method, or its title where several lines have one method."""
    return line.method if cells.by_method or cells.experiment.main else cells.title(line)


def title(study: Study, column: Column) -> str:
    """A panel's title."""
    return column.described(study.title_of(column.dataset))


def each_column(cells: Cells, panel: Callable[[Column], Panel | None]) -> list[Panel]:
    """A panel a column, of those that have one."""
    return [drawn for column in cells.columns if (drawn := panel(column)) is not None]


def comparison(study: Study) -> str:
    """Stage and rule of the primary comparison."""
    stage, rule = study.primary.stage, study.primary.rule
    return f"{STAGES[stage]}, {RULES[rule]} (stage {stage}, rule {rule})"


def reading(study: Study) -> str:
    """The primary comparison, and how clients are averaged."""
    return f"{comparison(study)}, {AVERAGES[study.average]}"


def measure_read(study: Study, measure: Measure) -> str:
    """What a measure is and how it is read."""
    read = measure.reading or study.primary
    how = f"{STAGES[read.stage]}, {RULES[read.rule]} (stage {read.stage}, rule {read.rule})"
    return f"{measure.meaning.capitalize()}: {how}, {AVERAGES[study.average]}"


def figure(cells: Cells, kind: str, caption: str, panels: Sequence[Panel]) -> Figure | None:
    """The figure of that kind; None where there is no panel. The caption gets the seeds."""
    if not panels:
        return None
    document = f"{cells.study.name}_{cells.experiment.name}"
    seeds = {seed for cell in cells if cell.group and not cell.line.setting for seed in cell.group.seeds}
    return Figure(document, f"{document}_{kind}", f"{caption} Seeds: {ranges(seeds)}.", panels)
