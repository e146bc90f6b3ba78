"""Two methods of a study side by side: the paired test of every shared task, by client and by seed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bench.leaderboard.boards import StudyBoards
from bench.leaderboard.datasets import title
from bench.statistics.paired import Comparison, Scores, side_by_side
from bench.studies.ranking import Task, scores
from bench.studies.wording import signed

CIRCLES = 20
"""Runs of a task that a picture draws as circles; more are strokes."""


@dataclass(frozen=True, eq=False)
class Difference:
    """First minus second in one task, in points: the test over units, and the differences behind it.

    ``clients`` are means over the seeds that both have (empty where the task has several partitions, whose
    clients are not the same), ``runs`` means over clients.
    """

    task: str
    dataset: str
    test: Comparison
    clients: NDArray[np.float64]
    runs: NDArray[np.float64]

    @property
    def many_runs(self) -> bool:
        """Whether the runs are too many for a circle each."""
        return self.runs.size > CIRCLES

    @staticmethod
    def signed_list(values: NDArray[np.float64]) -> str:
        """``+1.23, -0.50``: all of some differences."""
        return ", ".join(map(signed, values.tolist()))


@dataclass(frozen=True, eq=False)
class Pair:
    """Two methods by name, and their differences by task."""

    first: str
    second: str
    differences: tuple[Difference, ...]

    @property
    def many_runs(self) -> bool:
        """Whether a task has too many runs for circles."""
        return any(task.many_runs for task in self.differences)

    @property
    def reach(self) -> float:
        """Points to either side of zero that a picture of the means and intervals needs."""
        ends = [
            abs(end)
            for task in self.differences
            for end in task.test.interval or (task.test.difference or 0.0,)
        ]
        return max(1.0, 1.05 * max(ends, default=1.0))


def pairs(boards: StudyBoards) -> list[Pair]:
    """Every pair of the ranking's methods that shares a task, in the order of their names."""
    if boards.ranking is None:
        return []
    by_pair: dict[tuple[str, str], list[Difference]] = {}
    for task in boards.ranking.tasks:
        tests = {(test.first, test.second): test for test in task.comparisons}
        tests |= {(test.second, test.first): test.opposite() for test in task.comparisons}
        frames = {
            method: scores(cell, boards.results, boards.study.average)
            for method, cell in task.cells.items()
            if cell.measured
        }
        table = side_by_side(frames)
        for first, second in combinations(sorted(frames), 2):
            if (first, second) in tests and tests[first, second].difference is not None:
                by_pair.setdefault((first, second), []).append(
                    _difference(boards, task, tests[first, second], table)
                )
    return [Pair(*names, tuple(differences)) for names, differences in sorted(by_pair.items())]


def _difference(boards: StudyBoards, task: Task, test: Comparison, table: Scores) -> Difference:
    difference = table.values[test.first] - table.values[test.second]
    is_shared = ~np.isnan(difference)
    runs, clients = is_shared.any(axis=1), is_shared.any(axis=0)
    weights = np.where(is_shared, table.weights[test.first], 0.0)[runs]
    by_run = (np.nan_to_num(difference[runs]) * weights).sum(axis=1) / weights.sum(axis=1)
    has_partitions = test.unit == "partition"
    by_client = difference[runs][:, clients]
    return Difference(
        ", ".join(filter(None, (task.column.description(title(task.column.dataset)), task.point))),
        task.column.dataset,
        test,
        np.zeros(0) if has_partitions else np.nanmean(by_client, axis=0),
        by_run,
    )
