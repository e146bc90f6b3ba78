"""Summaries of scores: intervals of means, and ranks over tasks with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import scipy  # scipy.stats is slow to import; the first use of ``kendall`` loads it
from numpy.typing import NDArray
from scipy.special import stdtrit

LEVEL = 0.95
"""Coverage of every interval."""

LEAST_RUNS = 3
"""Fewest runs for an interval in figures: for two, Student's is ten times as wide as their difference."""

LEAST = 3
"""Fewest tasks (or data sets) for tests over them."""

LEAST_METHODS = 3
"""Fewest methods for which an order is informative."""

DIGITS = 9
"""Decimals of means for ranks: further decimals depend on the order of summation."""

DRAWS = 2000
"""Bootstrap draws of tasks and runs."""

SEED = 0
"""Seed of the draws: unchanged results give unchanged intervals."""

Interval = tuple[float, float]


def t_interval(values: Sequence[float] | NDArray[np.float64]) -> Interval | None:
    """Student's interval of the mean of independent ``values``, in their unit; None for fewer than two.

    ``mean -+ t(n - 1) std / sqrt(n)`` with the sample standard deviation (ddof 1).
    """
    n = len(values)
    if n < 2:
        return None
    mean = float(np.mean(values))
    half = float(stdtrit(n - 1, (1 + LEVEL) / 2) * np.std(values, ddof=1) / np.sqrt(n))
    return mean - half, mean + half


def with_intervals(data: pd.DataFrame, least: int = LEAST_RUNS) -> pd.DataFrame:
    """Add Student's interval ``low`` to ``high`` to rows of ``n``, ``mean`` and sample ``std``. The interval
    is missing for fewer than ``least`` runs.
    """
    runs = data["n"].to_numpy(np.float64)
    freedom = np.maximum(runs - 1, 1.0)
    half = stdtrit(freedom, (1 + LEVEL) / 2) * data["std"].to_numpy(np.float64) / np.sqrt(freedom + 1)
    half = np.where(runs >= least, half, np.nan)
    return data.assign(low=data["mean"] - half, high=data["mean"] + half)


def ranks(scores: pd.DataFrame) -> pd.DataFrame:
    """Rank within each task (row) of ``scores`` [tasks, methods]: rank 1 is the highest score, ties share the
    mean rank, a missing score has no rank.
    """
    return scores.round(DIGITS).rank(axis=1, ascending=False, method="average")


def rank_intervals(tasks: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return every method's mean rank with its 95 % bootstrap interval: columns ``rank``, ``low``, ``high``.

    A task is a frame of scores [runs, methods]: one row per seed, NaN if a method has no run. Every draw
    takes, with replacement, as many tasks as there are, and in each task as many seeds as there are, the same
    for all methods. The interval contains the middle 95 % of the draws and the mean rank itself. If a method
    has only one run in one task, nothing can be drawn and the interval is NaN.
    """
    methods = list(dict.fromkeys(method for task in tasks for method in task))
    complete = [task.reindex(columns=methods) for task in tasks]
    mean_ranks = ranks(pd.DataFrame([task.mean() for task in complete])).mean()
    generator = np.random.default_rng(SEED)
    times = generator.multinomial(len(tasks), np.full(len(tasks), 1 / len(tasks)), DRAWS)
    total, count = np.zeros((2, DRAWS, len(methods)))
    for task, draws in zip(complete, times.T[:, :, None], strict=True):
        scores, runs = task.to_numpy(float), len(task)
        drawn = generator.multinomial(runs, np.full(runs, 1 / runs), DRAWS).astype(float)
        counts = drawn @ ~np.isnan(scores)
        # A method without any of the drawn runs keeps the mean of all its runs.
        means = np.tile(task.mean().to_numpy(), (DRAWS, 1))
        np.divide(drawn @ np.nan_to_num(scores), counts, out=means, where=counts > 0)
        drawn_ranks = ranks(pd.DataFrame(means)).to_numpy()
        total += draws * np.nan_to_num(drawn_ranks)
        count += draws * ~np.isnan(drawn_ranks)
    samples = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.nanpercentile(samples, [tail, 100 - tail], axis=0)
    table = pd.DataFrame(
        {"rank": mean_ranks, "low": np.minimum(low, mean_ranks), "high": np.maximum(high, mean_ranks)}
    )
    has_one_run = pd.DataFrame([task.count() for task in complete]).sum() <= 1
    table.loc[has_one_run, ["low", "high"]] = np.nan
    return table


def kendall(measured_values: Sequence[float], published_values: Sequence[float]) -> float:
    """Return Kendall's tau-b of two values per method: 1 for the same order, -1 for the opposite order.

    The result is NaN for fewer than ``LEAST_METHODS``, or if all values of one side tie. By scipy.
    """
    if len(measured_values) < LEAST_METHODS:
        return np.nan
    return float(scipy.stats.kendalltau(measured_values, published_values).statistic)
