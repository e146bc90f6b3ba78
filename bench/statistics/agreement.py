"""How well two orders of the same methods agree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy  # its stats, slow to import, are loaded with the first order

LEAST = 3
"""Methods below which an order says nothing."""


def kendall(measured: Sequence[float], published: Sequence[float]) -> float | None:
    """Kendall's tau-b of two values a method: 1 the same order, -1 the opposite one.

    None for fewer than three methods, or where all values of one side tie. By scipy.
    """
    if len(measured) < LEAST:
        return None
    tau = float(scipy.stats.kendalltau(measured, published).statistic)
    return None if np.isnan(tau) else tau
