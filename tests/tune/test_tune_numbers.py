"""Thresholds and the best of k trials against slow computations of their own."""

from itertools import combinations

import numpy as np
import pytest

from bench.tune.best_of import expected_best
from bench.tune.pruning import thresholds
from bench.tune.record import Budget, ended


def test_thresholds_are_medians_of_completed_curves() -> None:
    rng = np.random.default_rng(1)
    for count in (5, 6, 9):
        curves = np.maximum.accumulate(rng.random((count, 10)), axis=1)
        given = thresholds(curves.tolist(), 10)
        expected = np.median(curves, axis=0)
        expected[[0, 1, 2, 9]] = (
            0  # a third of the rounds is 3.3: asked from the fourth on, but not of the last
        )
        np.testing.assert_allclose(given, expected)
    assert thresholds(curves[:4].tolist(), 10) == (0.0,) * 10, "too few"
    assert thresholds(curves[:, :1].tolist(), 1) == (0.0,)
    assert [value > 0 for value in thresholds(curves[:, :3].tolist(), 3)] == [True, True, False]


@pytest.mark.parametrize("values", [[0.4], [0.2, 0.9, 0.9, 0.1], [0.31, 0.3, 0.8, 0.45, 0.77, 0.12]])
def test_best_of_k_over_all_subsets(values: list[float]) -> None:
    expected = [
        float(np.mean([max(some) for some in combinations(values, k)])) for k in range(1, len(values) + 1)
    ]
    np.testing.assert_allclose(expected_best(values), expected, rtol=1e-12)
    assert expected_best([]) == []


@pytest.mark.parametrize(
    ("trials", "used", "why"),
    [
        (0, 0, ""),
        (9, 900, ""),
        (9, 901, "client epochs"),  # 99 are left, a trial takes 100
        (9, 900 + 1e-9, ""),
        (10, 10, "trials"),
        (10, 1000, "trials"),
        (8, 100, "space"),
    ],
)
def test_when_a_budget_is_used_up(trials: int, used: float, why: str) -> None:
    size = 8 if why == "space" else 100
    assert ended(trials, used, Budget(trials=10, client_epochs=1000.0), 100, size) == why
