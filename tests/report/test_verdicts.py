import math
from typing import get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bench.engine.result import State
from bench.report.published import Published
from bench.report.verdicts import STATES, judge, missing, tolerance

spread = st.floats(0, 30)
percent = st.floats(0, 100)


def printed(mean: float | None, std: float | None = None, status: str = "") -> Published:
    return Published(
        "p", "Table 1", "main", "cora", "s", 10, "m", "", "accuracy", mean, std, "percent", status
    )


@pytest.mark.parametrize(
    ("s_p", "s_m", "s_d", "allowed"),
    [
        (0.0, 0.0, 0.0, 1.0),
        (0.3, 0.4, 0.0, 1.0),  # 2 * 0.5
        (3.0, 4.0, 0.0, 10.0),  # 2 * 5
        (2.0, 3.0, 6.0, 14.0),  # 2 * 7
        (None, 2.0, 0.0, 4.0),
    ],
)
def test_tolerance_by_hand(s_p: float | None, s_m: float, s_d: float, allowed: float) -> None:
    assert tolerance(s_p, s_m, s_d) == pytest.approx(allowed)


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [
        (72.26, "reproduced"),
        (72.2601, "above"),
        (70.26, "reproduced"),
        (70.2599, "below"),
        (71.26, "reproduced"),
    ],
)
def test_the_floor_of_one_point_is_inclusive(mean: float, verdict: str) -> None:
    assert judge(printed(71.26, 0.29), mean, 0.1, 5).name == verdict


def test_the_boundary_of_the_spreads_is_inclusive() -> None:
    # 2 * sqrt(3² + 4²) = 10
    assert judge(printed(50.0, 3.0), 60.0, 4.0, 2).name == "reproduced"
    assert judge(printed(50.0, 3.0), 60.001, 4.0, 2).name == "above"
    assert judge(printed(50.0, 3.0), 39.999, 4.0, 2).name == "below"
    assert judge(printed(50.0, 3.0), 39.999, 4.0, 2, s_d=0.1).name == "reproduced"


@given(p=percent, m=percent, s_p=spread, s_m=spread, s_d=spread)
def test_swapping_the_means_swaps_above_and_below(
    p: float, m: float, s_p: float, s_m: float, s_d: float
) -> None:
    swap = {"above": "below", "below": "above", "reproduced": "reproduced"}
    there = judge(printed(p, s_p), m, s_m, 5, s_d).name
    back = judge(printed(m, s_m), p, s_p, 5, s_d).name
    assert back == swap[there]


@given(
    p=percent, m=percent, s_p=spread, s_m=spread, s_d=spread, more=st.floats(0, 10), which=st.integers(0, 2)
)
def test_a_larger_spread_never_loses_a_reproduction(
    p: float, m: float, s_p: float, s_m: float, s_d: float, more: float, which: int
) -> None:
    assume(judge(printed(p, s_p), m, s_m, 5, s_d).name == "reproduced")
    wider = [s_p, s_m, s_d]
    wider[which] += more
    assert judge(printed(p, wider[0]), m, wider[1], 5, wider[2]).name == "reproduced"


@given(p=percent, m=percent, s_p=spread, s_m=spread)
def test_verdict_follows_the_formula(p: float, m: float, s_p: float, s_m: float) -> None:
    allowed = max(1.0, 2.0 * math.sqrt(s_p**2 + s_m**2))
    assume(abs(abs(m - p) - allowed) > 1e-6)
    expected = "reproduced" if abs(m - p) < allowed else "above" if m > p else "below"
    assert judge(printed(p, s_p), m, s_m, 3).name == expected


def test_one_seed_is_not_comparable() -> None:
    verdict = judge(printed(71.26, 0.29), 71.26, None, 1)
    assert verdict.name == "not comparable"
    assert "at least two" in verdict.reason


def test_a_barred_value_is_not_comparable_even_where_equal() -> None:
    verdict = judge(printed(71.26, 0.29), 71.26, 0.1, 5, barred="other protocol")
    assert (verdict.name, verdict.reason) == ("not comparable", "other protocol")


def test_a_published_failure_is_not_comparable() -> None:
    verdict = judge(printed(None, status="OOM"), 60.0, 0.1, 5)
    assert verdict.name == "not comparable"
    assert "OOM" in verdict.reason


def test_nothing_published() -> None:
    assert judge(None, 60.0, 0.1, 5).name == "not published"


@pytest.mark.parametrize(
    ("state", "name"),
    [
        ("not_run", "not run"),
        ("no_data", "no data"),
        ("not_implemented", "not implemented"),
        ("not_applicable", "not applicable"),
        ("failed", "failed"),
        ("oom", "oom"),
        ("diverged", "diverged"),
    ],
)
def test_states_pass_through(state: str, name: str) -> None:
    assert missing(state, "why").name == name
    assert missing(state, "why").reason == "why"


def test_every_state_without_numbers_has_a_verdict() -> None:
    assert set(get_args(State)) - {"done"} <= set(STATES)
