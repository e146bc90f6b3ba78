import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW

from bench.statistics.ranks import kendall
from bench.statistics.summary import bottom_tenth, t_interval

VALUES = st.floats(0, 100, allow_nan=False).map(lambda value: round(value, 3))


def test_interval_of_three_seeds_is_over_four_standard_errors_wide() -> None:
    # t(2) at 97.5 %: 4.302653; std 1, n 3
    assert t_interval([70.0, 71.0, 72.0]) == pytest.approx((71 - 4.302653 / 3**0.5, 71 + 4.302653 / 3**0.5))


def test_no_interval_for_one_seed_and_no_width_without_spread() -> None:
    assert t_interval([70.0]) is None
    assert t_interval([]) is None
    assert t_interval([67.5, 67.5]) == (67.5, 67.5)


@settings(deadline=None)
@given(st.lists(VALUES, min_size=2, max_size=8))
def test_interval_equals_statsmodels(values: list[float]) -> None:
    assert t_interval(values) == pytest.approx(DescrStatsW(values).tconfint_mean(), abs=1e-9)


@pytest.mark.parametrize(("clients", "counted"), [(1, 1), (9, 1), (10, 1), (19, 1), (20, 2), (50, 5)])
def test_bottom_tenth_counts_whole_clients_and_one_at_least(clients: int, counted: int) -> None:
    values = np.random.default_rng(clients).permutation(np.arange(clients, dtype=float) ** 2)
    lowest = [float(number**2) for number in range(counted)]
    assert bottom_tenth(values) == pytest.approx(sum(lowest) / counted)


def slow_tau(first: list[float], second: list[float]) -> float:
    """Kendall's tau-b from all pairs."""
    concordant, ties = 0, [0, 0]
    pairs = [(i, j) for i in range(len(first)) for j in range(i)]
    for i, j in pairs:
        signs = np.sign(first[i] - first[j]), np.sign(second[i] - second[j])
        concordant += int(signs[0] * signs[1])
        ties[0] += signs[0] == 0
        ties[1] += signs[1] == 0
    return concordant / ((len(pairs) - ties[0]) * (len(pairs) - ties[1])) ** 0.5


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=9))
def test_tau_counts_pairs_in_the_same_order(pairs: list[tuple[int, int]]) -> None:
    first, second = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    found = kendall(first, second)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(slow_tau(first, second))


def test_tau_of_two_methods_says_nothing() -> None:
    assert kendall([1.0, 2.0], [1.0, 2.0]) is None
    assert kendall([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == pytest.approx(1)
    assert stats.kendalltau([1, 2], [1, 2]).statistic == pytest.approx(1)  # hence the limit
