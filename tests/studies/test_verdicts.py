import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from bench.engine.result import State
from bench.errors import RequestError
from bench.studies.published import Published
from bench.studies.verdicts import (
    GRADES,
    STATES,
    Evidence,
    PartitionSpread,
    PublishedRuns,
    Verdict,
    agreed_verdict,
    between_partitions,
    checked_margin,
    grade,
    half_width,
    judge,
    missing_verdict,
    weigh,
)

FIVE = PublishedRuns(5)
percent = st.floats(0, 100)
sample = st.lists(st.floats(0, 100), min_size=2, max_size=8).filter(lambda values: np.std(values) > 1e-3)


def printed(mean: float | None, std: float | None = None, status: str = "") -> Published:
    return Published(
        "p", "Table 1", "main", "cora", "s", 10, "m", "", "accuracy", mean, std, "percent", status
    )


def verdict(
    p: float,
    s_p: float | None,
    measured: list[float],
    spread: PartitionSpread | None = None,
    margin: float = 2.0,
    control: float | None = 0.0,
    runs: PublishedRuns = FIVE,
) -> str:
    return judge(printed(p, s_p), runs, measured, spread or PartitionSpread(), margin, control).name


def around(mean: float, std: float, n: int) -> list[float]:
    """So many values of exactly that mean and sample standard deviation."""
    values = np.arange(n) - (n - 1) / 2
    return list(mean + std * values / np.std(values, ddof=1))


@settings(deadline=None)
@given(ours=sample, theirs=sample, margin=st.floats(0.5, 60))
def test_reproduced_is_two_one_sided_welch_tests(
    ours: list[float], theirs: list[float], margin: float
) -> None:
    assume(len(ours) >= 3)
    p, s_p = float(np.mean(theirs)), float(np.std(theirs, ddof=1))
    both = max(
        stats.ttest_ind(ours, np.array(theirs) - margin, equal_var=False, alternative="greater").pvalue,
        stats.ttest_ind(ours, np.array(theirs) + margin, equal_var=False, alternative="less").pvalue,
    )
    assume(abs(both - 0.05) > 1e-6)
    name = verdict(p, s_p, ours, margin=margin, runs=PublishedRuns(len(theirs)))
    assert (name == "reproduced") == (both < 0.05)


@settings(deadline=None)
@given(ours=sample, theirs=sample)
def test_compatible_is_welchs_test_where_clients_are_the_same(ours: list[float], theirs: list[float]) -> None:
    p, s_p, n_p = float(np.mean(theirs)), float(np.std(theirs, ddof=1)), len(theirs)
    m, s_m, n_m = float(np.mean(ours)), float(np.std(ours, ddof=1)), len(ours)
    test = stats.ttest_ind_from_stats(m, s_m, n_m, p, s_p, n_p, equal_var=False)
    assume(abs(test.pvalue - 0.05) > 1e-6 and abs(abs(m - p) - 1) > 1e-6)
    expected = "compatible" if test.pvalue > 0.05 or abs(m - p) < 1 else "above" if m > p else "below"
    # A margin of nothing leaves no reproduction in the way.
    assert verdict(p, s_p, ours, margin=1e-12, control=-1e6, runs=PublishedRuns(n_p)) == expected


@settings(deadline=None)
@given(ours=sample, theirs=sample)
def test_the_interval_is_welchs(ours: list[float], theirs: list[float]) -> None:
    evidence = weigh(
        float(np.mean(theirs)),
        float(np.std(theirs, ddof=1)),
        PublishedRuns(len(theirs)),
        ours,
        PartitionSpread(),
        2.0,
    )
    low, high = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval(0.90)
    assert (evidence.low, evidence.high) == pytest.approx((low, high), rel=1e-6, abs=1e-6)


@settings(deadline=None)
@given(ours=sample, theirs=sample)
def test_a_printed_population_deviation_says_what_the_sample_deviation_says(
    ours: list[float], theirs: list[float]
) -> None:
    by_sample, by_population = (
        weigh(
            float(np.mean(theirs)),
            float(np.std(theirs, ddof=ddof)),
            PublishedRuns(len(theirs), population=ddof == 0),
            ours,
            PartitionSpread(),
            2.0,
        )
        for ddof in (1, 0)
    )
    assert (by_population.low, by_population.high) == pytest.approx((by_sample.low, by_sample.high))
    assert by_population.tolerance == pytest.approx(by_sample.tolerance)


def test_the_deviation_of_a_single_run_is_taken_as_printed() -> None:
    assert PublishedRuns(1, population=True).sample_std(0.5) == 0.5


def test_a_noisy_published_cell_cannot_reproduce_and_can_fail() -> None:
    # SE = sqrt(0.5²/5 + 13.28²/5) = 5.94, about four degrees of freedom: 69.81 accepts 53.3 to 86.3.
    assert verdict(69.81, 13.28, around(78.78, 0.5, 5)) == "compatible"
    assert verdict(69.81, 13.28, around(90.0, 0.5, 5)) == "above"
    # By deviations (2 sqrt(13.28² + 0.5²) = 26.6) it would have been within.
    assert 2 * math.hypot(13.28, 0.5) > 90.0 - 69.81


def test_a_reproduction_takes_three_runs() -> None:
    assert verdict(70.0, 0.1, around(70.0, 0.01, 2)) == "compatible"
    assert verdict(70.0, 0.1, around(70.0, 0.01, 3)) == "reproduced"


def test_a_difference_of_one_point_is_compatible_however_sure_it_is() -> None:
    sure = {"margin": 0.5}
    assert verdict(71.26, 0.0, [72.26] * 5, **sure) == "compatible"
    assert verdict(71.26, 0.0, [72.2601] * 5, **sure) == "above"
    assert verdict(71.26, 0.0, [70.26] * 5, **sure) == "compatible"
    assert verdict(71.26, 0.0, [70.2599] * 5, **sure) == "below"


def test_without_any_variance_the_interval_is_a_point() -> None:
    evidence = weigh(70.0, 0.0, FIVE, [71.5] * 3, PartitionSpread(), 2.0)
    assert (evidence.low, evidence.high, evidence.tolerance) == (1.5, 1.5, 1.0)
    assert verdict(70.0, 0.0, [72.0] * 3) == "reproduced"  # the margin is inclusive
    assert verdict(70.0, 0.0, [72.01] * 3) == "above"


def test_another_draw_of_clients_widens_the_tolerance_and_not_the_interval() -> None:
    # Ours: 1.5² / 3 = 0.75 with 2 degrees of freedom; theirs none; draws: 2 * 1.5² = 4.5 with 5.
    spread = PartitionSpread(1.5, 6, "own", 2, 5)
    ours = around(70.0, 1.5, 3)
    evidence = weigh(70.0, 0.0, FIVE, ours, spread, 2.0)
    freedom = 5.25**2 / (0.75**2 / 2 + 4.5**2 / 5)
    assert evidence.tolerance == pytest.approx(stats.t.ppf(0.975, freedom) * math.sqrt(5.25))
    alone = weigh(70.0, 0.0, FIVE, ours, PartitionSpread(), 2.0)
    assert (evidence.low, evidence.high) == (alone.low, alone.high)
    assert alone.tolerance == pytest.approx(stats.t.ppf(0.975, 2) * math.sqrt(0.75))


def test_one_draw_of_clients_counts_once() -> None:
    one, two = (
        weigh(70.0, 0.0, FIVE, [70.0] * 3, PartitionSpread(1.5, 6, "pooled", draws), 2.0).tolerance
        for draws in (1, 2)
    )
    normal = stats.norm.ppf(0.975)
    assert (one, two) == pytest.approx((normal * 1.5, normal * 1.5 * math.sqrt(2)))


def test_the_uncertainty_of_two_runs_does_not_spread_to_a_well_known_part() -> None:
    # t(1) = 12.7 for all would accept almost anything.
    small, known = (0.01, 1), (4.0, math.inf)
    assert half_width([small, known], 0.95) == pytest.approx(stats.norm.ppf(0.975) * 2, rel=0.01)
    assert half_width([(4.0, 1)], 0.95) == pytest.approx(stats.t.ppf(0.975, 1) * 2)


def test_without_a_printed_deviation_ours_stands_for_it() -> None:
    evidence = weigh(70.0, None, FIVE, around(70.0, 3.0, 3), PartitionSpread(), 2.0)
    half = stats.t.ppf(0.95, 2) * 3.0 * math.sqrt(1 / 3 + 1 / 5)
    assert (evidence.low, evidence.high) == pytest.approx((-half, half))


def test_the_deviation_of_a_single_published_run_counts_in_full() -> None:
    evidence = weigh(70.0, 2.0, PublishedRuns(1), [70.0] * 3, PartitionSpread(), 2.0)
    assert evidence.tolerance == pytest.approx(stats.norm.ppf(0.975) * 2.0)


def test_a_cell_that_would_hold_the_majority_class_is_uninformative() -> None:
    # Tolerance t(2) sqrt(3²/3) = 7.45 around 70.
    ours = around(75.0, 3.0, 3)
    assert verdict(70.0, 0.0, ours, control=62.0) == "compatible"
    assert verdict(70.0, 0.0, ours, control=63.0) == "uninformative"
    assert verdict(70.0, 0.0, ours, control=77.0) == "uninformative"
    # A reproduction stays one: its interval is told from learning nothing by the margin alone.
    assert verdict(70.0, 0.0, [70.0] * 3, control=70.0) == "reproduced"
    assert verdict(70.0, 0.0, [90.0] * 3, control=70.0) == "above"


def test_a_compatible_cell_says_that_the_control_is_unknown() -> None:
    target = printed(70.0, 3.0)
    known, unknown = (
        judge(target, FIVE, [70.0, 73.0], PartitionSpread(), 2.0, control) for control in (0.0, None)
    )
    assert known.name == unknown.name == "compatible"
    assert not known.reason
    assert unknown.reason


@settings(deadline=None)
@given(p=percent, s_p=st.floats(0, 30), ours=sample, s_d=st.floats(0, 10))
def test_swapping_signs_swaps_above_and_below(p: float, s_p: float, ours: list[float], s_d: float) -> None:
    swap = {"above": "below", "below": "above"}
    spread = PartitionSpread(s_d, 6, "own", 2, 5)
    there = verdict(p, s_p, ours, spread, control=None)
    back = verdict(-p, s_p, [-value for value in ours], spread, control=None)
    assert back == swap.get(there, there)
    assert there in GRADES


def test_one_seed_is_not_comparable() -> None:
    assert verdict(71.26, 0.29, [71.26]) == "not comparable"


def test_a_barred_value_is_not_comparable_even_where_equal() -> None:
    barred = judge(
        printed(71.26, 0.29),
        FIVE,
        [71.26] * 5,
        PartitionSpread(),
        2.0,
        not_comparable_reason="other protocol",
    )
    assert (barred.name, barred.reason, barred.evidence) == ("not comparable", "other protocol", None)


def test_a_published_failure_is_not_comparable() -> None:
    failed = judge(printed(None, status="OOM"), FIVE, [60.0] * 5, PartitionSpread(), 2.0)
    assert failed.name == "not comparable"
    assert "OOM" in failed.reason


def test_nothing_published() -> None:
    assert judge(None, FIVE, [60.0] * 5, PartitionSpread(), 2.0).name == "not published"


def test_a_value_of_unknown_stage_is_judged_where_all_stages_agree() -> None:
    evidence = Evidence(1.0, 2.0, 0.0, 2.0, 3.0, 5)
    first = Verdict("above", evidence=evidence)
    assert agreed_verdict({"trained": first, "received": Verdict("above")}, "trained") is first
    open_ = agreed_verdict({"trained": first, "received": Verdict("below")}, "trained")
    assert (open_.name, open_.evidence) == ("not comparable", evidence)
    assert "trained" in open_.reason
    assert "received" in open_.reason


def test_partitions_spread_without_the_share_of_training() -> None:
    # Means 61, 65 and 72 have the variance 31; of 2 within a partition of two runs, 1 is in each.
    assert between_partitions([[60, 62], [64, 66], [71, 73]]) == pytest.approx(math.sqrt(30))
    # One run each on two of them: 2 * (1/2 + 1 + 1) / 3 of the same 31.
    assert between_partitions([[60, 62], [65], [72]]) == pytest.approx(math.sqrt(31 - 5 / 3))


def test_partitions_that_differ_by_training_alone_spread_by_nothing() -> None:
    assert between_partitions([[60, 80], [69, 71], [70, 72]]) == 0.0


def test_too_few_partitions_or_runs_tell_nothing() -> None:
    assert between_partitions([[60, 62], [64, 66]]) is None
    assert between_partitions([[60], [64], [70]]) is None


def test_grades_follow_from_the_evidence_alone() -> None:
    evidence = Evidence(difference=3.0, margin=2.0, low=2.5, high=3.5, tolerance=3.2, runs=FIVE, control=10.0)
    assert grade(evidence, 70.0, 5) == "compatible"
    assert grade(evidence, 12.0, 5) == "uninformative"


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "5"])
def test_published_runs_are_a_whole_number_of_at_least_one(n: object) -> None:
    with pytest.raises(RequestError, match="at least 1"):
        PublishedRuns(n)  # type: ignore[arg-type]


@pytest.mark.parametrize("margin", [0, -1.0, math.nan, math.inf, "two", None, True])
def test_a_margin_is_a_positive_number(margin: object) -> None:
    with pytest.raises(RequestError, match="margin"):
        checked_margin(margin)


@pytest.mark.parametrize("state", sorted(STATES))
def test_states_pass_through(state: str) -> None:
    assert missing_verdict(state, "why") == Verdict(state.replace("_", " "), "why")


def test_every_state_without_numbers_has_a_verdict() -> None:
    assert set(get_args(State)) - {"done", "searched"} <= set(STATES)  # no report opens a search
