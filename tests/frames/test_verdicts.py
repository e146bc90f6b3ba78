"""The verdict rule, against tests of SciPy and formulas written out."""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from bench.engine.result import State
from bench.frames.spread import between_partitions
from bench.frames.verdicts import STATES, graded, judged

percent = st.floats(0, 100)
sample = st.lists(st.floats(0, 100), min_size=2, max_size=8).filter(lambda values: np.std(values) > 1e-3)
spreads = st.one_of(st.just(0.0), st.floats(1e-3, 30))


def numbers(p: float, s_p: float | None, measured: list[float], **others: Any) -> dict[str, Any]:
    """What the grade of measured values beside a printed mean and deviation of five runs rests on; without
    more the clients are the same, and learning nothing reaches nothing.
    """
    return {
        "n": len(measured),
        "mean": float(np.mean(measured)),
        "std": float(np.std(measured, ddof=1)) if len(measured) > 1 else math.nan,
        "published_mean": p,
        "published_std": math.nan if s_p is None else s_p,
        "n_p": 5,
        "population": False,
        "s_d": math.nan,
        "s_d_freedom": math.nan,
        "draws": 0,
        "control": 0.0,
        "margin": 2.0,
        **others,
    }


def grade(*numbers_of_cell: Any, **others: Any) -> Any:
    return graded(pd.DataFrame([numbers(*numbers_of_cell, **others)])).iloc[0]


def verdict(*numbers_of_cell: Any, **others: Any) -> str:
    return str(grade(*numbers_of_cell, **others)["verdict"])


def interval(row: Any) -> tuple[float, float]:
    return row["low_difference"], row["high_difference"]


def around(mean: float, std: float, n: int) -> list[float]:
    """So many values of exactly that mean and sample standard deviation."""
    values = np.arange(n) - (n - 1) / 2
    return list(mean + std * values / np.std(values, ddof=1))


def printed(theirs: list[float]) -> tuple[float, float]:
    return float(np.mean(theirs)), float(np.std(theirs, ddof=1))


@settings(deadline=None)
@given(ours=sample, theirs=sample, margin=st.floats(0.5, 60))
def test_reproduced_is_two_one_sided_welch_tests(
    ours: list[float], theirs: list[float], margin: float
) -> None:
    assume(len(ours) >= 3)
    both = max(
        stats.ttest_ind(ours, np.array(theirs) - margin, equal_var=False, alternative="greater").pvalue,
        stats.ttest_ind(ours, np.array(theirs) + margin, equal_var=False, alternative="less").pvalue,
    )
    assume(abs(both - 0.05) > 1e-6)
    name = verdict(*printed(theirs), ours, margin=margin, n_p=len(theirs))
    assert (name == "reproduced") == (both < 0.05)


@settings(deadline=None)
@given(ours=sample, theirs=sample)
def test_the_interval_is_welchs_of_a_printed_deviation_over_n_and_over_n_less_one(
    ours: list[float], theirs: list[float]
) -> None:
    low, high = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(0.90)
    for ddof in (0, 1):
        s_p = float(np.std(theirs, ddof=ddof))
        row = grade(float(np.mean(theirs)), s_p, ours, n_p=len(theirs), population=ddof == 0)
        assert interval(row) == pytest.approx((low, high), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("published", "deviation", "measured", "others", "expected"),
    [
        (70.0, 0.1, around(70.0, 0.01, 2), {}, "compatible"),  # a reproduction takes three runs
        (70.0, 0.1, around(70.0, 0.01, 3), {}, "reproduced"),
        (70.0, 0.0, [72.0] * 3, {}, "reproduced"),  # the margin is inclusive
        (70.0, 0.0, [72.01] * 3, {}, "above"),
        # A difference of one point is compatible, however sure it is.
        (71.26, 0.0, [72.26] * 5, {"margin": 0.5}, "compatible"),
        (71.26, 0.0, [72.2601] * 5, {"margin": 0.5}, "above"),
        (71.26, 0.0, [70.26] * 5, {"margin": 0.5}, "compatible"),
        (71.26, 0.0, [70.2599] * 5, {"margin": 0.5}, "below"),
        # A cell that would hold the majority class: tolerance t(2) sqrt(3²/3) = 7.45 around 70.
        (70.0, 0.0, around(75.0, 3.0, 3), {"control": 62.0}, "compatible"),
        (70.0, 0.0, around(75.0, 3.0, 3), {"control": 63.0}, "uninformative"),
        (70.0, 0.0, around(75.0, 3.0, 3), {"control": 77.0}, "uninformative"),
        # A reproduction is told from learning nothing by the margin alone.
        (70.0, 0.0, [70.0] * 3, {"control": 70.0}, "reproduced"),
        (70.0, 0.0, [90.0] * 3, {"control": 70.0}, "above"),
    ],
)
def test_the_verdict_at_the_limits(
    published: float, deviation: float, measured: list[float], others: dict[str, float], expected: str
) -> None:
    assert verdict(published, deviation, measured, **others) == expected


def test_without_any_variance_the_interval_is_a_point() -> None:
    row = grade(70.0, 0.0, [71.5] * 3)
    assert (*interval(row), row["tolerance"]) == (1.5, 1.5, 1.0)


def test_another_draw_of_clients_widens_the_tolerance_and_not_the_interval() -> None:
    # Ours: 1.5² / 3 = 0.75 with 2 degrees of freedom; theirs none; draws: 2 * 1.5² = 4.5 with 5.
    ours = around(70.0, 1.5, 3)
    row = grade(70.0, 0.0, ours, s_d=1.5, s_d_freedom=5, draws=2)
    freedom = 5.25**2 / (0.75**2 / 2 + 4.5**2 / 5)
    assert row["tolerance"] == pytest.approx(stats.t.ppf(0.975, freedom) * math.sqrt(5.25))
    alone = grade(70.0, 0.0, ours)
    assert interval(row) == interval(alone)
    # 74 lies beyond the tolerance of the runs alone, 72 within both.
    beyond, within = (grade(mean, 0.0, ours, s_d=1.5, s_d_freedom=5, draws=2) for mean in (74.0, 72.0))
    assert (beyond["verdict"], beyond["rests_on_spread"]) == ("compatible", True)
    assert (within["verdict"], within["rests_on_spread"]) == ("compatible", False)
    assert alone["tolerance"] == pytest.approx(stats.t.ppf(0.975, 2) * math.sqrt(0.75))


def test_without_a_printed_deviation_ours_stands_for_it() -> None:
    half = stats.t.ppf(0.95, 2) * 3.0 * math.sqrt(1 / 3 + 1 / 5)
    assert interval(grade(70.0, None, around(70.0, 3.0, 3))) == pytest.approx((-half, half))


def test_the_deviation_of_a_single_published_run_counts_in_full_as_printed() -> None:
    for population in (False, True):
        row = grade(70.0, 2.0, [70.0] * 3, n_p=1, population=population)
        assert row["tolerance"] == pytest.approx(stats.norm.ppf(0.975) * 2.0)


def judge(*numbers_of_cell: Any, **others: Any) -> Any:
    """The one cell judged, with numbers and a published row unless named."""
    row = {
        "state": "",
        "state_reason": "",
        "printed": 3,
        "status": "",
        "bar": "",
        "published_on": "",
        **numbers(*numbers_of_cell, **others),
    }
    return judged(pd.DataFrame([row])).iloc[0]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({}, ("reproduced", "")),
        ({"n": 1}, ("not comparable", "1 seed: a verdict needs at least two")),
        ({"bar": "other protocol"}, ("not comparable", "other protocol")),
        ({"published_mean": math.nan, "status": "OOM"}, ("not comparable", "the paper reports OOM here")),
        ({"printed": None}, ("not published", "")),
        ({"printed": None, "published_on": "Cora"}, ("not comparable", "published on Cora")),
        ({"state": "no_data", "state_reason": "why"}, ("no data", "why")),
    ],
)
def test_a_cell_without_a_grade_says_why(others: dict[str, Any], expected: tuple[str, str]) -> None:
    row = judge(71.26, 0.29, [71.26] * 5, **others)
    assert (row["verdict"], row["reason"]) == expected
    assert pd.isna(row["low_difference"]) == (expected[0] != "reproduced")


def test_a_compatible_cell_says_that_the_control_is_unknown() -> None:
    reasons = [judge(70.0, 3.0, [70.0, 73.0], control=control)["reason"] for control in (0.0, math.nan)]
    assert reasons == ["", "what learning nothing reaches is not known here"]


def test_every_state_without_numbers_has_a_verdict() -> None:
    assert set(get_args(State)) - {"done", "searched"} <= set(STATES)  # no report opens a search


def spread(*partitions: list[float]) -> float:
    """Between partitions, from the runs on each."""
    rows = [("f", str(number), value) for number, values in enumerate(partitions) for value in values]
    found = between_partitions(pd.DataFrame(rows, columns=["family", "partition_hash", "value"]))
    assert found["partitions"].tolist() == [len(partitions)]
    return float(found["s_d"].iloc[0])


def test_partitions_spread_without_the_share_of_training() -> None:
    # Means 61, 65 and 72 have the variance 31; of 2 within a partition of two runs, 1 is in each.
    assert spread([60, 62], [64, 66], [71, 73]) == pytest.approx(math.sqrt(30))
    # One run each on two of them: 2 * (1/2 + 1 + 1) / 3 of the same 31.
    assert spread([60, 62], [65], [72]) == pytest.approx(math.sqrt(31 - 5 / 3))
    # Partitions that differ by training alone spread by nothing.
    assert spread([60, 80], [69, 71], [70, 72]) == 0.0
    # Two partitions, or one run on each, tell nothing.
    assert math.isnan(spread([60, 62], [64, 66]))
    assert math.isnan(spread([60], [64], [70]))
