"""Intervals of the means that figures show."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import stdtrit

LEVEL = 0.95
"""Level of the intervals."""

LEAST_RUNS = 3
"""Runs of which a mean has an interval: Student's interval of two is ten times as wide as they are apart."""


def with_intervals(data: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``n``, ``mean`` and sample ``std`` with ``low`` and ``high``, Student's 95 % interval,
    which means of fewer than ``LEAST_RUNS`` runs have not.
    """
    runs = data["n"].to_numpy(np.float64)
    freedom = np.maximum(runs - 1, 1.0)
    half = stdtrit(freedom, (1 + LEVEL) / 2) * data["std"].to_numpy(np.float64) / np.sqrt(freedom + 1)
    half = np.where(runs >= LEAST_RUNS, half, np.nan)
    return data.assign(low=data["mean"] - half, high=data["mean"] + half)
