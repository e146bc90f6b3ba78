"""What methods reach: over seeds, over clients, and over tasks as ranks with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import scipy  # its stats, slow to import, are loaded with the first order
from numpy.typing import NDArray
from scipy.special import stdtrit

LEVEL = 0.95
"""Coverage of every interval."""

LEAST_RUNS = 3
"""Runs of which a drawn mean has an interval: Student's of two is ten times as wide as they are apart."""

LEAST = 3
"""Tasks below which methods are not tested over tasks."""

LEAST_METHODS = 3
"""Methods below which an order says nothing."""

DIGITS = 9
"""Decimals beyond which two means are the same number, added up in another order."""

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
    """Rows of ``n``, ``mean`` and sample ``std`` with ``low`` and ``high``, Student's interval, which means
    of fewer than ``least`` runs have not.
    """
    runs = data["n"].to_numpy(np.float64)
    freedom = np.maximum(runs - 1, 1.0)
    half = stdtrit(freedom, (1 + LEVEL) / 2) * data["std"].to_numpy(np.float64) / np.sqrt(freedom + 1)
    half = np.where(runs >= least, half, np.nan)
    return data.assign(low=data["mean"] - half, high=data["mean"] + half)


def ranks(scores: pd.DataFrame) -> pd.DataFrame:
    """Ranks within each task (row) of ``scores`` [tasks, methods]: 1 the highest, ties share the mean rank; a
    missing score has none.
    """
    return scores.round(DIGITS).rank(axis=1, ascending=False, method="average")


def rank_intervals(tasks: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Mean rank of every method with its 95 % bootstrap interval: columns ``rank``, ``low``, ``high``.

    A task is a frame of scores [runs, methods], a row for all methods' runs of one seed, NaN where a method
    has none. Every draw takes as many tasks with replacement as there are and, in each, as many seeds, the
    same for all methods. The interval holds the middle 95 % of the draws and the mean rank itself. It is NaN
    for a method that has one run in one task, of which nothing can be drawn.
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
        # A method that has none of the drawn runs keeps the mean of all that it has.
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
    """Kendall's tau-b of two values a method: 1 the same order, -1 the opposite one.

    Missing for fewer than ``LEAST_METHODS``, or where all values of one side tie. By scipy.
    """
    if len(measured_values) < LEAST_METHODS:
        return np.nan
    return float(scipy.stats.kendalltau(measured_values, published_values).statistic)
