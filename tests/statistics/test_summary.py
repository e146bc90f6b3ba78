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


def test_intervals_of_one_task_are_those_of_its_runs() -> None:
    """Seeds in which the first wins by 9 or loses by 1: of two drawn ones both must be the second kind for it
    to be second, which happens in a quarter of the draws; a third method is always last.
    """
    found = rank_intervals([table([[59, 50, 10], [49, 50, 10]])])
    assert found.loc["m0"].tolist() == [1, 1, 2]
    assert found.loc["m1"].tolist() == [2, 1, 2]
    assert found.loc["m2"].tolist() == [3, 3, 3]


def test_runs_of_one_seed_are_drawn_together() -> None:
    """Seeds differ by far more than methods do, as partitions may: within a seed the order never changes."""
    found = rank_intervals([table([[10, 9], [90, 89], [50, 49]])])
    assert found[["low", "high"]].to_numpy().tolist() == [[1, 1], [2, 2]]


def test_a_method_is_ranked_over_the_tasks_and_seeds_that_it_has() -> None:
    missing = float("nan")
    tasks = [table([[5, 4, missing], [5, 4, missing]]), table([[5, 4, 9], [5, missing, 9]])]
    found = rank_intervals(tasks)
    assert found["rank"].tolist() == [1.5, 2.5, 1]
    assert found.loc["m2", ["low", "high"]].tolist() == [1, 1]
    assert found.loc["m0", ["low", "high"]].tolist() == [1, 2]


def test_a_single_run_of_a_single_task_has_no_interval() -> None:
    found = rank_intervals([table([[3, 2]])])
    assert found["rank"].tolist() == [1, 2]
    assert found[["low", "high"]].isna().all(axis=None)


def test_tau_of_two_methods_says_nothing() -> None:
    assert kendall([1.0, 2.0], [1.0, 2.0]) is None
    assert kendall([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == pytest.approx(1)
    assert stats.kendalltau([1, 2], [1, 2]).statistic == pytest.approx(1)  # hence the limit
