"""Who is compared with whom, and where: methods, tasks and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from bench.federation.scenarios import parse
from bench.report.cells import Cell, Cells, Selection
from bench.report.experiment import Line
from bench.report.results import Average, Results
from bench.report.settings import Column
from bench.report.study import Study
from bench.report.wording import label
from bench.statistics.paired import COLUMNS, Comparison, compare


def competitors(study: Study, boards: Sequence[Cells], selection: Selection) -> dict[str, Line]:
    """Method -> its line in its usual setting, in the order of the boards' rows.

    The study's own rows, and other methods that the request names; no references, and of rows that
    show the same runs at the same stage the first.
    """
    asked = selection.methods or frozenset()
    found: dict[tuple[str, str], Line] = {}
    for board in boards:
        for line in board.lines:
            competes = line.ranked and not line.setting and (line.own or line.method in asked)
            if competes and line.method not in study.references:
                found.setdefault((line.runs, line.stage or study.primary.stage), line)
    return {line.method: line for line in found.values()}


@dataclass(frozen=True, eq=False)
class Task:
    """A cell of the comparison: one column at one point (where its experiment has several) under the primary
    reading.

    ``cells`` are the competitors' that are planned, printed or run; ``comparisons`` all pairs of
    those with numbers, in the order of ``cells``.
    """

    column: Column
    cells: dict[str, Cell]
    comparisons: tuple[Comparison, ...]
    point: str = ""

    def label(self, study: Study) -> str:
        """``Cora 10``, with the point."""
        return ", ".join(filter(None, (label(study, self.column), self.point)))

    @property
    def means(self) -> dict[str, float]:
        """Measured mean in percent of the methods with numbers."""
        return {method: cell.measured.mean for method, cell in self.cells.items() if cell.measured}

    @property
    def runs(self) -> pd.DataFrame:
        """Measured values in percent, a row a seed, a column a method; NaN where there is none."""
        values = {}
        for method, cell in self.cells.items():
            if cell.measured:
                # Runs that did not store the stage have no value: whose seeds the others are is not known.
                number = cell.measured.n
                seeds = cell.seeds if len(cell.seeds) == number else range(number)
                values[method] = pd.Series(cell.measured.values, seeds)
        return pd.DataFrame(values)


def tasks(
    study: Study, boards: Sequence[Cells], lines: dict[str, Line], results: Results
) -> tuple[Task, ...]:
    """Every column that has a cell of a competitor, once, in the order of the boards."""
    made: dict[tuple[Column, str], Task] = {}
    for table in boards:
        own: dict[str, Line] = {}
        for line in table.lines:
            if line.ranked and not line.setting:
                own.setdefault(line.method, line)
        for column, point in product(table.columns, table.experiment.points):
            cells = {
                method: cell
                for method in lines
                if method in own and (cell := table.at(column, own[method], point)) is not None
            }
            if cells and (column, point.label) not in made:
                measured = {
                    method: scores(cell, results, study.average)
                    for method, cell in cells.items()
                    if cell.measured
                }
                made[column, point.label] = Task(column, cells, tuple(compare(measured)), point.label)
    return tuple(made.values())


def scores(cell: Cell, results: Results, average: Average) -> pd.DataFrame:
    """A measured cell's test results with the columns ``bench.statistics.paired.COLUMNS``.

    Runs whose partition is not known cannot be paired and are left out.

    Raises:
        RequestError: the scenario is not installed, so that nobody knows which clients share items.
    """
    assert cell.group is not None
    rows = results.clients(cell.group, cell.stage, cell.rule)
    weight = rows["samples"].astype(float) if average == "samples" else np.ones(len(rows))
    part = rows["client"] // parse(cell.column.scenario).samples
    rows = rows.assign(part=part, value=100.0 * rows["value"], weight=weight)
    return rows.loc[rows["partition"] != "", list(COLUMNS)]
