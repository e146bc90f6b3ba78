"""Methods over several tasks: ranks, the tests on them, and groups of ties."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from scikit_posthocs import posthoc_nemenyi_friedman
from scipy import stats

from bench.statistics.paired import ALPHA, Comparison

LEAST = 3
"""Tasks, and methods, below which there is no test over tasks."""

DIGITS = 9
"""Decimals beyond which two means are the same number, added up in another order."""


def ranks(scores: pd.DataFrame) -> pd.DataFrame:
    """Ranks within each task (row) of ``scores`` [tasks, methods]: 1 the highest, ties share the mean rank.

    A missing score (NaN) has no rank; the others are ranked among themselves.
    """
    return scores.round(DIGITS).rank(axis=1, ascending=False, method="average")


@dataclass(frozen=True, eq=False)
class Friedman:
    """Friedman's test over tasks that all methods have, and Nemenyi's p values [methods, methods].

    ``ranks`` are mean ranks over these ``tasks``. Two methods whose mean ranks differ by
    ``critical_difference`` or more differ significantly.
    """

    tasks: int
    statistic: float
    p: float
    ranks: pd.Series[float]
    nemenyi: pd.DataFrame
    critical_difference: float

    @property
    def order(self) -> list[str]:
        """The methods, best mean rank first; equal ones in the order of the scores."""
        return [str(method) for method in self.ranks.sort_values(kind="stable").index]

    def differ(self, first: str, second: str) -> bool:
        """Whether both tests say that the two methods' ranks differ: Friedman's first, then Nemenyi's."""
        return self.p < ALPHA and float(self.nemenyi.loc[first, second]) < ALPHA  # type: ignore[arg-type]


def friedman(scores: pd.DataFrame) -> Friedman | None:
    """Friedman and Nemenyi on ``scores`` [tasks, methods], tasks with a missing score left out.

    None for fewer than three such tasks or three methods. Demšar, JMLR 7 (2006), section 3.2.2; by
    scipy and scikit-posthocs.
    """
    complete = scores.dropna().round(DIGITS)
    tasks, methods = complete.shape
    if tasks < LEAST or methods < LEAST:
        return None
    made = ranks(complete)
    # All methods tie in all tasks: the statistic is 0 / 0.
    level = bool((made == (methods + 1) / 2).all(axis=None))
    statistic, p = (0.0, 1.0) if level else stats.friedmanchisquare(*complete.to_numpy().T)
    quantile = stats.studentized_range.ppf(1 - ALPHA, methods, np.inf) / np.sqrt(2)
    return Friedman(
        tasks,
        float(statistic),
        float(p),
        made.mean(),
        posthoc_nemenyi_friedman(complete),
        float(quantile * np.sqrt(methods * (methods + 1) / (6 * tasks))),
    )


def tie_groups(order: Sequence[str], worse: Callable[[str, str], bool]) -> dict[str, int]:
    """Group of each method of ``order`` (best first); ``worse(a, b)``: a is significantly worse than b.

    Group 1 is the best method and all that are not significantly worse than it; the next group is
    made alike of those that are left.
    """
    groups: dict[str, int] = {}
    left = list(order)
    number = 0
    while left:
        number += 1
        best = left[0]
        groups |= {name: number for name in left if name == best or not worse(name, best)}
        left = [name for name in left if name not in groups]
    return groups


class Record(NamedTuple):
    """How often a method won, tied and lost against another in some task."""

    wins: int
    ties: int
    losses: int


def win_tie_loss(comparisons: Iterable[Comparison]) -> dict[str, Record]:
    """The record of every method; a pair without a test does not count."""
    counts: Counter[tuple[str, float]] = Counter()
    methods: dict[str, None] = {}
    for pair in comparisons:
        methods |= dict.fromkeys((pair.first, pair.second))
        if pair.points is not None:
            counts[pair.first, pair.points] += 1
            counts[pair.second, 1 - pair.points] += 1
    return {
        method: Record(counts[method, 1.0], counts[method, 0.5], counts[method, 0.0]) for method in methods
    }
