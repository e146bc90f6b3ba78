import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW

from bench.statistics.summary import kendall, rank_intervals, ranks, t_interval

VALUES = st.floats(0, 100, allow_nan=False).map(lambda value: round(value, 3))


def test_no_interval_for_one_seed_and_no_width_without_spread() -> None:
    assert t_interval([70.0]) is None
    assert t_interval([]) is None
    assert t_interval([67.5, 67.5]) == (67.5, 67.5)


@settings(deadline=None)
@given(st.lists(VALUES, min_size=2, max_size=8))
def test_interval_equals_statsmodels(values: list[float]) -> None:
    assert t_interval(values) == pytest.approx(DescrStatsW(values).tconfint_mean(), abs=1e-9)


def table(values: list[list[float]]) -> pd.DataFrame:
    return pd.DataFrame(values, columns=[f"m{number}" for number in range(len(values[0]))])


def test_the_highest_is_first_and_ties_share_their_mean() -> None:
    """A missing score has no rank and takes none."""
    made = ranks(table([[70, 90, 80, 80], [50, 50 + 1e-12, 60, 40], [70, float("nan"), 80, 60]]))
    expected = [[4, 1, 2.5, 2.5], [2.5, 2.5, 1, 4], [2, np.nan, 1, 3]]
    np.testing.assert_array_equal(made.to_numpy(), expected)


def test_intervals_of_single_runs_are_the_bootstrap_of_ranks_over_tasks() -> None:
    """With one run a task nothing but tasks is drawn: scipy's percentile bootstrap of the mean rank."""
    scores = np.random.default_rng(1).normal([3, 1, 0.5, 0], size=(12, 4))
    found = rank_intervals([table([row]) for row in scores.tolist()])
    places = stats.rankdata(-scores, axis=1)
    expected = stats.bootstrap(
        (places,), np.mean, axis=0, n_resamples=9999, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    assert found["rank"].tolist() == pytest.approx(places.mean(axis=0))
    # Means of twelve ranks are multiples of a twelfth: two draws of thousands differ by one step at most.
    np.testing.assert_allclose(found["low"], expected.low, atol=1.01 / 12)
    np.testing.assert_allclose(found["high"], expected.high, atol=1.01 / 12)


NONE = float("nan")


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        # Seeds in which the first wins by 9 or loses by 1: both of two drawn ones must be the second kind for
        # it to be second, which happens in a quarter of the draws; a third method is always last.
        ([[[59, 50, 10], [49, 50, 10]]], [[1, 1, 2], [2, 1, 2], [3, 3, 3]]),
        # Runs of one seed are drawn together: they differ by far more between seeds than between methods.
        ([[[10, 9], [90, 89], [50, 49]]], [[1, 1, 1], [2, 2, 2]]),
        # A method is ranked over the tasks and seeds that it has.
        ([[[5, 4, NONE], [5, 4, NONE]], [[5, 4, 9], [5, NONE, 9]]], [[1.5, 1, 2], [2.5, 2, 3], [1, 1, 1]]),
        ([[[3, 2]]], [[1, NONE, NONE], [2, NONE, NONE]]),  # of a single run nothing can be drawn
    ],
)
def test_ranks_and_their_intervals(tasks: list[list[list[float]]], expected: list[list[float]]) -> None:
    found = rank_intervals([table(task) for task in tasks])
    np.testing.assert_array_equal(found[["rank", "low", "high"]].to_numpy(), expected)


def test_tau_of_two_methods_says_nothing() -> None:
    assert np.isnan(kendall([1.0, 2.0], [1.0, 2.0]))
    assert kendall([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == pytest.approx(1)
    assert stats.kendalltau([1, 2], [1, 2]).statistic == pytest.approx(1)  # hence the limit
