"""What the best of so many trials would have been."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb


def expected_best(values: Sequence[float]) -> list[float]:
    """The expected largest of k values drawn without replacement, for k = 1 to all of them.

    Exact: of the C(n, k) draws, C(i - 1, k - 1) have the i-th smallest value as their largest.
    """
    ordered = sorted(values)
    count = len(ordered)
    return [
        sum(value * comb(place, k - 1) for place, value in enumerate(ordered)) / comb(count, k)
        for k in range(1, count + 1)
    ]
