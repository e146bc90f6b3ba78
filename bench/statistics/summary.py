"""What one method reaches in one cell: over seeds, and over clients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

LEVEL = 0.95
"""Coverage of every interval."""

LEAST_RUNS = 3
"""Runs of which a drawn mean has an interval: Student's of two is ten times as wide as they are apart."""

Interval = tuple[float, float]


def t_interval(values: Sequence[float] | NDArray[np.float64]) -> Interval | None:
    """Student's interval of the mean of independent ``values``, in their unit; None for fewer than two.

    ``mean -+ t(n - 1) std / sqrt(n)`` with the sample standard deviation (ddof 1).
    """
    n = len(values)
    if n < 2:
        return None
    mean = float(np.mean(values))
    half = float(_quantile(n - 1) * np.std(values, ddof=1) / np.sqrt(n))
    return mean - half, mean + half


@cache
def _quantile(freedom: int) -> float:
    """Student's quantile of the interval; computing it takes longer than all else that a cell needs."""
    return float(stdtrit(freedom, (1 + LEVEL) / 2))


def with_intervals(data: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``n``, ``mean`` and sample ``std`` with ``low`` and ``high``, Student's interval, which means
    of fewer than ``LEAST_RUNS`` runs have not.
    """
    runs = data["n"].to_numpy(np.float64)
    freedom = np.maximum(runs - 1, 1.0)
    half = stdtrit(freedom, (1 + LEVEL) / 2) * data["std"].to_numpy(np.float64) / np.sqrt(freedom + 1)
    half = np.where(runs >= LEAST_RUNS, half, np.nan)
    return data.assign(low=data["mean"] - half, high=data["mean"] + half)


def bottom_tenth(values: NDArray[np.float64]) -> float:
    """Mean over the lowest tenth of the clients' values ``[clients]``, rounded down, one client at least."""
    count = max(1, len(values) // 10)
    return float(np.mean(np.sort(values)[:count]))
