import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.weightstats import DescrStatsW

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
