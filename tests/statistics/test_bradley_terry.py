import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from bench.statistics.bradley_terry import PRIOR, fit, strengths, task_wins
from bench.statistics.paired import Comparison


def win(first: str, second: str) -> Comparison:
    return Comparison(first, second, "client", 9, 5.0, (4.0, 6.0), 0.001, 0.001)


def tie(first: str, second: str) -> Comparison:
    return Comparison(first, second, "client", 9, 1.0, (-2.0, 4.0), 0.9, 0.9)


def untested(first: str, second: str) -> Comparison:
    return Comparison(first, second, "client", 1, 5.0, None, None, None)


def test_two_methods_have_the_log_odds_of_their_wins() -> None:
    found = strengths([[win("a", "b")], [tie("a", "b")]], ["a", "b"])
    odds = math.log((1.5 + PRIOR / 2) / (0.5 + PRIOR / 2))
    assert found["a"].value - found["b"].value == pytest.approx(odds)
    assert found["a"].value + found["b"].value == pytest.approx(0)


def test_bootstrap_over_two_tasks_has_three_outcomes() -> None:
    found = strengths([[win("a", "b")], [tie("a", "b")]], ["a", "b"])
    # Each of win-win and tie-tie is a quarter of the draws: the 2.5 % tails lie there.
    most = math.log((2 + PRIOR / 2) / (PRIOR / 2)) / 2
    assert found["a"].interval == pytest.approx((0, most), abs=1e-9)
    assert found["b"].interval == pytest.approx((-most, 0), abs=1e-9)


def test_one_task_has_no_interval_and_one_that_always_wins_is_finite() -> None:
    found = strengths([[win("a", "b"), win("a", "c"), win("b", "c")]], ["a", "b", "c"])
    assert [found[name].interval for name in "abc"] == [None] * 3
    assert math.isfinite(found["a"].value)
    assert found["a"].value > found["b"].value > found["c"].value


def test_every_task_weighs_the_same_however_many_pairs_it_has() -> None:
    methods = ["a", "b", "c", "d"]
    wins = task_wins([win("a", "b"), tie("a", "c"), untested("b", "c")], methods)
    assert wins.sum() == pytest.approx(1)
    assert wins[0, 1] == pytest.approx(0.5)
    assert wins[0, 2] == wins[2, 0] == pytest.approx(0.25)
    assert task_wins([untested("a", "b")], methods).sum() == 0
    # a beats b in a task of one pair, b beats a in a task of three: a's win weighs three times as much.
    found = strengths([[win("a", "b")], [win("b", "a"), tie("a", "c"), tie("b", "c")]], methods[:3])
    assert found["a"].value > found["b"].value


def test_a_method_without_a_test_has_no_strength_and_a_missing_one_keeps_its_own() -> None:
    tasks = [[win("a", "b"), untested("a", "d")], [win("a", "b"), win("a", "c"), win("c", "b")]]
    found = strengths(tasks, ["a", "b", "c", "d"])
    assert set(found) == {"a", "b", "c"}
    assert found["c"].interval is not None
    assert sum(each.value for each in found.values()) == pytest.approx(0)
    assert found["b"].value < found["c"].value < found["a"].value


def test_unchanged_tasks_give_unchanged_intervals() -> None:
    tasks = [[win("a", "b")], [tie("a", "b")], [win("b", "a")], [win("a", "b")]]
    assert strengths(tasks, ["a", "b"]) == strengths(tasks, ["a", "b"])
    low, high = strengths(tasks, ["a", "b"])["a"].interval or (0.0, 0.0)
    assert low < strengths(tasks, ["a", "b"])["a"].value < high


def slow(wins: np.ndarray) -> np.ndarray:
    """The most likely strengths by a general optimiser, from the log likelihood alone."""
    methods = len(wins)
    wins = wins + PRIOR / (methods * (methods - 1)) * (1 - np.eye(methods))

    def loss(strengths: np.ndarray) -> float:
        gaps = strengths[:, None] - strengths[None, :]
        return float((wins * np.logaddexp(0, -gaps)).sum() + 0.5 * strengths.mean() ** 2)

    found = minimize(loss, np.zeros(methods), method="BFGS", options={"gtol": 1e-9}).x
    return np.asarray(found - found.mean())


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 5), st.integers(1, 8), st.integers(0, 10_000))
def test_fit_is_the_most_likely(methods: int, tasks: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    points = draw.choice([0.0, 0.5, 1.0], size=(tasks, methods, methods))
    wins = np.zeros((methods, methods))
    for i in range(methods):
        for j in range(i):
            wins[i, j] = points[:, i, j].sum()
            wins[j, i] = tasks - wins[i, j]
    wins /= methods * (methods - 1) / 2
    np.testing.assert_allclose(fit(wins[None])[0], slow(wins), atol=2e-4)


def test_a_long_row_of_wins_converges() -> None:
    methods, tasks = 11, 200
    wins = tasks * np.triu(np.ones((methods, methods)), 1)
    found = fit(wins[None])[0]
    assert np.all(np.diff(found) < 0)
    assert np.all(np.isfinite(found))
