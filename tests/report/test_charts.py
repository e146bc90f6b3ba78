"""Which frames figures show."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bench.report.charts import pareto_front


def test_the_pareto_front_by_brute_force() -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        costs, means = (pd.Series(random.integers(0, 6, 8).astype(float)) for _ in range(2))
        best = []
        for cost, mean in zip(costs, means, strict=True):
            others = [pair for pair in zip(costs, means, strict=True) if pair != (cost, mean)]
            best.append(not any(other <= cost and better >= mean for other, better in others))
        assert pareto_front(costs, means) == [int(good) for good in best]
