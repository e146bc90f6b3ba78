"""Which method is better: the competitors of a study's tasks, their ranks and groups of ties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import pandas as pd

from bench.federation.scenarios import parse
from bench.grids.experiment import Line
from bench.statistics.paired import (
    COLUMNS,
    LEAST_RUNS_IN_COMMON,
    PairedTest,
    compare,
    compare_tasks,
    tie_groups,
)
from bench.statistics.summary import LEAST, rank_intervals
from bench.studies.cells import Cell, Cells, Selection
from bench.studies.settings import Column
from bench.studies.study import Study

TABLE = {
    "method": "string",
    "title": "string",
    "rank": "float64",
    "low": "float64",
    "high": "float64",
    "group": "Int64",
    "tasks": "int64",
    "minus_baseline": "float64",
}
"""Columns of ``Ranking.table`` and their types."""


def competitors(study: Study, boards: Sequence[Cells], selection: Selection) -> dict[str, Line]:
    """Method -> its line in its usual setting, in the order of the boards' rows.

    The study's own rows, and other methods that the request names; no references, and of rows that
    show the same runs at the same stage the first.
    """
    lines: dict[tuple[str, str], Line] = {}
    for board in boards:
        for line in board.lines:
            is_rival = line.ranked and not line.setting and (line.is_own or line.method in selection.methods)
            if is_rival and line.method not in study.references:
                lines.setdefault((line.runs, line.stage or study.primary.stage), line)
    return {line.method: line for line in lines.values()}


@dataclass(frozen=True, eq=False)
class Task:
    """A cell of the comparison: one column at one point (where its experiment has several) under the primary
    reading.

    ``cells`` are the competitors' that are planned, printed or run; ``comparisons`` all pairs of
    those with numbers, in the order of ``cells``.
    """

    column: Column
    cells: dict[str, Cell]
    comparisons: tuple[PairedTest, ...]
    point: str = ""

    @classmethod
    def of(cls, column: Column, cells: dict[str, Cell], point: str = "") -> Task:
        """The task of these cells, with the paired tests of those that are measured."""
        scores = {method: client_scores(cell) for method, cell in cells.items() if cell.measured}
        return cls(column, cells, tuple(compare(scores)), point)

    def label(self, study: Study) -> str:
        """``Cora, non-overlapping, 10 clients``, with the point."""
        return ", ".join(filter(None, (study.column_title(self.column), self.point)))

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


def tasks(boards: Sequence[Cells], lines: dict[str, Line]) -> tuple[Task, ...]:
    """Every column that has a cell of a competitor, once, in the order of the boards."""
    by_place: dict[tuple[Column, str], Task] = {}
    for table in boards:
        rows: dict[str, Line] = {}
        for line in table.lines:
            if line.ranked and not line.setting:
                rows.setdefault(line.method, line)
        for column, point in product(table.columns, table.experiment.points):
            cells = {
                method: cell
                for method in lines
                if method in rows and (cell := table.at(column, rows[method], point)) is not None
            }
            if cells and (column, point.label) not in by_place:
                by_place[column, point.label] = Task.of(column, cells, point.label)
    return tuple(by_place.values())


def client_scores(cell: Cell) -> pd.DataFrame:
    """A measured cell's test results with the columns ``bench.statistics.paired.COLUMNS``.

    Runs whose partition is not known cannot be paired and are left out.

    Raises:
        RequestError: the scenario is not installed, so that nobody knows which clients share items.
    """
    rows = cell.reading.rows
    weight = rows["samples"].astype(float) if cell.average == "samples" else np.ones(len(rows))
    part = rows["client"] // parse(cell.column.scenario).samples
    rows = rows.assign(part=part, value=100.0 * rows["value"], weight=weight)
    return rows.loc[rows["partition"] != "", list(COLUMNS)]


@dataclass(frozen=True, eq=False)
class Ranking:
    """The competitors over the tasks that have begun in earnest, see ``rank``.

    ``titles`` are those of all competitors, ``planned_tasks`` counts the tasks that have a cell of a method,
    measured or not.
    """

    tasks: tuple[Task, ...]
    titles: dict[str, str]
    planned_tasks: dict[str, int]
    study: Study

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Measured means in percent [tasks, methods], NaN where there are none; methods with some."""
        frame = pd.DataFrame([task.means for task in self.tasks])
        return frame[[method for method in self.titles if method in frame]]

    @cached_property
    def comparisons(self) -> list[PairedTest]:
        """Paired tests over tasks, of the methods that have all of them; none for fewer tasks than
        ``LEAST``.
        """
        return compare_tasks(self.scores.dropna(axis=1)) if len(self.tasks) >= LEAST else []

    @cached_property
    def dataset_comparisons(self) -> list[PairedTest]:
        """As ``comparisons``, with the data set as the unit: a method's mean over its tasks, which share the
        data set's items. None for fewer data sets than ``LEAST``, nor where all tasks are of different ones.
        """
        datasets = [task.column.dataset for task in self.tasks]
        if not LEAST <= len(set(datasets)) < len(datasets):
            return []
        return compare_tasks(self.scores.dropna(axis=1).groupby(datasets).mean(), "data set")

    @cached_property
    def groups(self) -> dict[str, int]:
        """Groups of ties of the methods that are measured in every task: by mean rank and the paired tests
        over tasks, or, of a single task, by its mean and its paired tests. Empty without tests.
        """
        if len(self.tasks) == 1:
            return cell_groups(self.tasks[0])
        tested_methods = {method for pair in self.comparisons for method in (pair.first, pair.second)}
        order = [method for method in self._ranks.index if method in tested_methods]
        return tie_groups(order, self.comparisons)

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for every method with numbers, with the columns ``TABLE``; those measured in every task come
        first, then by mean rank, equal ones in the order of the study's lines.

        ``rank`` is the mean rank over the method's ``tasks`` among the methods measured there, ``low`` and
        ``high`` its 95 % interval by bootstrap over tasks and runs; ``group`` its group of ties;
        ``minus_baseline`` the mean over tasks of its accuracy minus the baseline's, in points.
        """
        methods = self._ranks.index
        scores = self.scores[methods]
        baseline = self.scores.get(self.study.baseline, pd.Series(index=self.scores.index, dtype=float))
        return (
            self._ranks.assign(
                method=methods,
                title=[self.titles[method] for method in methods],
                group=pd.Series(self.groups, dtype="Int64").reindex(methods),
                tasks=scores.count(),
                minus_baseline=scores.sub(baseline, axis=0).mean(),
            )[list(TABLE)]
            .astype(TABLE)
            .reset_index(drop=True)
        )

    @cached_property
    def leaders(self) -> dict[str, str]:
        """Data set -> the method of the best mean rank over its tasks, of those that all of them have."""
        datasets = [task.column.dataset for task in self.tasks]
        complete_scores = {
            str(dataset): scores.dropna(axis=1)
            for dataset, scores in self.scores.groupby(datasets, sort=False)
        }
        return {
            dataset: str(scores.rank(axis=1, ascending=False).mean().idxmin())
            for dataset, scores in complete_scores.items()
            if not scores.empty
        }

    @property
    def baseline_title(self) -> str:
        """The baseline's name."""
        return self.study.title_of(self.study.baseline)

    @property
    def methods(self) -> list[str]:
        """Methods with numbers, in the order of the table."""
        return list(self._ranks.index)

    @property
    def unranked_titles(self) -> list[str]:
        """Titles of competitors without numbers."""
        return [title for method, title in self.titles.items() if method not in self.scores]

    @cached_property
    def _ranks(self) -> pd.DataFrame:
        """Mean ranks and their intervals, in the order of the table."""
        intervals = rank_intervals([task.runs for task in self.tasks]).loc[self.scores.columns]
        is_partial = self.scores.isna().any()
        return intervals.assign(partial=is_partial).sort_values(["partial", "rank"], kind="stable")


def rank(study: Study, boards: Sequence[Cells], selection: Selection) -> Ranking | None:
    """The ranking of a study's competitors; None where no task has two of them.

    A task with numbers of fewer than half as many methods as the fullest one has only begun, and counts for
    none: groups are of the methods that all tasks have, and would shrink to those few.
    """
    lines = competitors(study, boards, selection)
    all_tasks = tasks(boards, lines)
    most_methods = max((len(task.means) for task in all_tasks), default=0)
    ranked_tasks = tuple(task for task in all_tasks if len(task.means) >= max(2, most_methods / 2))
    if not ranked_tasks:
        return None
    planned_tasks = {method: sum(method in task.cells for task in all_tasks) for method in lines}
    return Ranking(
        ranked_tasks,
        {method: study.line_title(line) for method, line in lines.items()},
        planned_tasks,
        study,
    )


def cell_groups(task: Task) -> dict[str, int]:
    """Groups of ties in one task: by the measured mean, and the paired tests of its pairs. A method with
    fewer runs than a test needs has none, since nothing could tell it from the best.
    """
    means = {
        method: cell.measured.mean
        for method, cell in task.cells.items()
        if cell.measured and cell.measured.n >= LEAST_RUNS_IN_COMMON
    }
    return tie_groups(sorted(means, key=lambda name: -means[name]), task.comparisons)
