"""Which runs a board's figures show, and what their captions say of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from bench.report.cells import Cell, Cells
from bench.report.figures import Figure
from bench.report.panels.panel import Panel
from bench.report.results import Aggregate, Group
from bench.report.settings import Column
from bench.report.study import Study
from bench.report.wording import AVERAGES, RULES, STAGES, ranges


class Shown(NamedTuple):
    """A row of a column with numbers: its title, its cell under the primary reading and its runs."""

    label: str
    cell: Cell
    measured: Aggregate
    group: Group

    @property
    def method(self) -> str:
        """The row's method."""
        return self.cell.method


def shown(board: Cells, column: Column) -> list[Shown]:
    """Rows of a column with numbers, each run once, under the usual settings."""
    found = []
    for line in board.lines:
        cell = board.at(column, line)
        if cell and cell.measured and cell.group and not (line.setting or line.reads):
            found.append(Shown(board.title(line), cell, cell.measured, cell.group))
    return found


def contenders(board: Cells, column: Column) -> list[Shown]:
    """The same without the references that train nothing."""
    return [each for each in shown(board, column) if each.method not in board.study.references]


def title(study: Study, column: Column) -> str:
    """A panel's title."""
    return column.described(study.title_of(column.dataset))


def each_column(board: Cells, panel: Callable[[Column], Panel | None]) -> list[Panel]:
    """A panel a column, of those that have one."""
    return [made for column in board.columns if (made := panel(column)) is not None]


def comparison(study: Study) -> str:
    """Stage and rule of the primary comparison."""
    stage, rule = study.primary.stage, study.primary.rule
    return f"{STAGES[stage]}, {RULES[rule]} (stage {stage}, rule {rule})"


def reading(study: Study) -> str:
    """The primary comparison, and how clients are averaged."""
    return f"{comparison(study)}, {AVERAGES[study.average]}"


def seeds(board: Cells, columns: Iterable[Column]) -> str:
    """``Seeds: 0-4.`` of what is shown."""
    every = {seed for column in columns for each in shown(board, column) for seed in each.group.seeds}
    return f"Seeds: {ranges(every)}."


def figure(board: Cells, kind: str, caption: str, panels: Sequence[Panel]) -> Figure | None:
    """The figure of that kind; None where there is no panel. The caption gets the seeds."""
    if not panels:
        return None
    document = f"{board.study.name}_{board.experiment.name}"
    caption = f"{caption} {seeds(board, board.columns)}"
    return Figure(document, f"{document}_{kind}", caption, panels)
