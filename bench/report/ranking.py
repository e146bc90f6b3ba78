"""Which method is better: the competitors of a study's tasks, their ranks, groups and strengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import pandas as pd

from bench.report.cells import Cells, Selection
from bench.report.competitors import Task, competitors, tasks
from bench.report.experiment import Line
from bench.report.results import Results
from bench.report.study import Study
from bench.statistics.bradley_terry import Strength, strengths
from bench.statistics.ranks import Friedman, Record, friedman, ranks, tie_groups, win_tie_loss


@dataclass(frozen=True, eq=False)
class Ranking:
    """The competitors over the tasks of which two or more have numbers.

    ``planned`` counts all tasks that have a cell of the method, measured or not.
    """

    tasks: tuple[Task, ...]
    titles: dict[str, str]
    planned: dict[str, int]
    baseline: str

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Measured means in percent [tasks, methods], NaN where there are none; methods with some."""
        frame = pd.DataFrame([task.means for task in self.tasks])
        return frame[[method for method in self.titles if method in frame]]

    @property
    def methods(self) -> list[str]:
        """Methods with numbers, best mean rank first; equal ones in the order of rows."""
        return [str(method) for method in self.mean_ranks.sort_values(kind="stable").index]

    @cached_property
    def mean_ranks(self) -> pd.Series[float]:
        """Mean rank over the tasks that a method has."""
        return ranks(self.scores).mean()

    @cached_property
    def friedman(self) -> Friedman | None:
        """The test over tasks."""
        return friedman(self.scores)

    @cached_property
    def groups(self) -> dict[str, int]:
        """Groups of ties over tasks; empty without a test."""
        test = self.friedman
        return tie_groups(test.order, test.differ) if test else {}

    @cached_property
    def records(self) -> dict[str, Record]:
        """Wins, ties and losses over all tasks."""
        return win_tie_loss(pair for task in self.tasks for pair in task.comparisons)

    @cached_property
    def strengths(self) -> dict[str, Strength]:
        """Bradley-Terry strengths."""
        return strengths([task.comparisons for task in self.tasks], self.methods)

    def minus_baseline(self, method: str) -> float | None:
        """Mean over tasks of the method's accuracy minus the baseline's, in points; None without tasks."""
        found = [
            task.means[method] - task.means[self.baseline]
            for task in self.tasks
            if method in task.means and self.baseline in task.means
        ]
        return fmean(found) if found else None


def rank(study: Study, boards: Sequence[Cells], results: Results, selection: Selection) -> Ranking | None:
    """The ranking of a study's competitors; None where no task has two of them."""
    lines: dict[str, Line] = competitors(study, boards, selection)
    every = tasks(study, boards, lines, results)
    ran = tuple(task for task in every if len(task.means) > 1)
    if not ran:
        return None
    planned = {method: sum(method in task.cells for task in every) for method in lines}
    return Ranking(
        ran, {method: study.line_title(line) for method, line in lines.items()}, planned, study.baseline
    )


def cell_groups(task: Task) -> dict[str, int]:
    """Groups of ties in one task: by the measured mean, and the paired tests of its pairs."""
    worse = {(pair.first, pair.second) for pair in task.comparisons if pair.verdict == "worse"}
    worse |= {(pair.second, pair.first) for pair in task.comparisons if pair.verdict == "better"}
    means = task.means
    return tie_groups(sorted(means, key=lambda name: -means[name]), lambda a, b: (a, b) in worse)
