import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bench.statistics.paired import Comparison
from bench.statistics.ranks import friedman, ranks, tie_groups, win_tie_loss


def table(values: list[list[float]]) -> pd.DataFrame:
    return pd.DataFrame(values, columns=[f"m{number}" for number in range(len(values[0]))])


def test_the_highest_is_first_and_ties_share_their_mean() -> None:
    made = ranks(table([[70, 90, 80, 80], [50, 50 + 1e-12, 60, 40]]))
    assert made.to_numpy().tolist() == [[4, 1, 2.5, 2.5], [2.5, 2.5, 1, 4]]


def test_a_missing_score_has_no_rank_and_takes_none() -> None:
    made = ranks(table([[70, float("nan"), 80]]))
    np.testing.assert_array_equal(made.to_numpy(), [[2, np.nan, 1]])


def test_friedman_and_nemenyi_by_their_formulas() -> None:
    scores = table([[80, 70, 60, 50], [81, 60, 71, 40], [70, 75, 60, 50], [90, 80, 70, 75]])
    found = friedman(scores)
    assert found is not None
    # Ranks: 1 2 3 4 / 1 3 2 4 / 2 1 3 4 / 1 2 4 3, sums 5, 8, 12, 15.
    assert found.ranks.tolist() == [1.25, 2.0, 3.0, 3.75]
    n, k = 4, 4
    statistic = 12 / (n * k * (k + 1)) * (5**2 + 8**2 + 12**2 + 15**2) - 3 * n * (k + 1)
    assert found.statistic == pytest.approx(statistic)
    assert found.p == pytest.approx(stats.chi2.sf(statistic, k - 1))
    gap = (3.75 - 1.25) / np.sqrt(k * (k + 1) / (6 * n))
    assert found.nemenyi.loc["m0", "m3"] == pytest.approx(
        stats.studentized_range.sf(gap * np.sqrt(2), k, np.inf), rel=1e-6
    )
    assert found.order == ["m0", "m1", "m2", "m3"]
    assert (found.differ("m0", "m3"), found.differ("m3", "m0"), found.differ("m0", "m1")) == (
        True,
        True,
        False,
    )


@pytest.mark.parametrize(("methods", "tasks", "quantile"), [(4, 14, 2.569), (10, 5, 3.164), (3, 6, 2.343)])
def test_critical_difference_with_the_quantiles_of_demsar_table_5(
    methods: int, tasks: int, quantile: float
) -> None:
    scores = table(np.random.default_rng(0).normal(size=(tasks, methods)).tolist())
    found = friedman(scores)
    assert found is not None
    expected = quantile * np.sqrt(methods * (methods + 1) / (6 * tasks))
    assert found.critical_difference == pytest.approx(expected, rel=3e-4)


def test_only_tasks_that_all_methods_have_are_tested() -> None:
    complete = [[80.0, 70, 60], [81, 60, 71], [70, 75, 60]]
    found, alone = friedman(table([*complete, [float("nan"), 90, 99]])), friedman(table(complete))
    assert found is not None
    assert alone is not None
    assert (found.tasks, found.p, found.ranks.tolist()) == (3, alone.p, alone.ranks.tolist())
    assert friedman(table([*complete[:2], [float("nan"), 90, 99]])) is None
    assert friedman(table([[1, 2], [2, 3], [3, 4]])) is None


def test_nothing_differs_where_all_tie() -> None:
    found = friedman(table([[1, 1, 1]] * 3))
    assert found is not None
    assert (found.statistic, found.p, found.differ("m0", "m1")) == (0.0, 1.0, False)


def test_nemenyi_alone_claims_nothing() -> None:
    found = friedman(table([[80, 70, 60]] * 4))
    assert found is not None
    assert found.differ("m0", "m2")
    weak = type(found)(4, 1.0, 0.2, found.ranks, found.nemenyi, found.critical_difference)
    assert not weak.differ("m0", "m2")


def test_groups_start_with_the_best_and_all_not_worse_than_it() -> None:
    worse = {("c", "a"), ("d", "a"), ("d", "c"), ("e", "a")}
    groups = tie_groups("abcde", lambda one, other: (one, other) in worse)
    # e ties with c; d is worse than c.
    assert groups == {"a": 1, "b": 1, "c": 2, "d": 3, "e": 2}


@settings(deadline=None)
@given(st.permutations("abcdef"), st.sets(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef"))))
def test_first_are_exactly_those_not_worse_than_the_best(
    order: list[str], worse: set[tuple[str, str]]
) -> None:
    groups = tie_groups(order, lambda one, other: (one, other) in worse)
    first = {name for name in order if name == order[0] or (name, order[0]) not in worse}
    assert {name for name, group in groups.items() if group == 1} == first
    assert set(groups) == set(order)
    assert set(groups.values()) == set(range(1, max(groups.values()) + 1))


def pair(first: str, second: str, difference: float, corrected: float | None) -> Comparison:
    interval = None if corrected is None else (difference - 1, difference + 1)
    return Comparison(first, second, "client", 9, difference, interval, corrected, corrected)


def test_wins_ties_and_losses_without_pairs_that_had_no_test() -> None:
    found = win_tie_loss(
        [
            pair("a", "b", 3, 0.001),
            pair("a", "c", -3, 0.001),
            pair("b", "c", 3, 0.9),
            pair("a", "b", 2, 0.001),
            pair("a", "d", 50, None),
        ]
    )
    assert {name: tuple(record) for name, record in found.items()} == {
        "a": (2, 0, 1),
        "b": (0, 1, 2),
        "c": (1, 1, 0),
        "d": (0, 0, 0),
    }
