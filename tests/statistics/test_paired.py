from collections.abc import Iterable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bench.statistics.paired import (
    COLUMNS,
    compare,
    compare_tasks,
    of_one,
    opposite,
    p_value,
    side_by_side,
    tie_groups,
    with_verdicts,
    worse_than,
)

Rows = list[tuple[str, int, int, float, float]]


def frame(rows: Rows, samples: int = 1) -> pd.DataFrame:
    """Scores; so many clients, one after the other, are samples of one part."""
    made = pd.DataFrame(rows, columns=[name for name in COLUMNS if name not in ("method", "part")])
    return made.assign(part=made["client"] // samples)


def together(**scores: pd.DataFrame) -> pd.DataFrame:
    """The scores of methods by name."""
    return pd.concat([rows.assign(method=name) for name, rows in scores.items()], ignore_index=True)


def compared(**scores: pd.DataFrame) -> pd.DataFrame:
    """The tests of all pairs, with the two methods as their index."""
    found = compare(together(**scores), list(scores))
    return found.set_index(["first", "second"], drop=False)


def of_p_values(p_values: dict[str, float | None], **more: object) -> pd.DataFrame:
    """Tests over nine units of pairs of methods, whose names are letters, with these p values."""
    rows = [
        {"first": first, "second": second, "p": p, "difference": 3.0, "low": 0.1, "high": 5.9, **more}
        for (first, second), p in p_values.items()
    ]
    made = pd.DataFrame(
        rows, columns=["first", "second", "p", "difference", "low", "high", "unit", "units", "runs"]
    )
    return with_verdicts(made.assign(unit="task", units=9, runs=np.nan))


def plain(
    values: list[list[float]], partition: str = "p", first_seed: int = 0, samples: int = 1
) -> pd.DataFrame:
    """Scores ``values[seed][client]`` on one partition."""
    rows: Rows = [
        (partition, first_seed + seed, client, value, 1.0)
        for seed, clients in enumerate(values)
        for client, value in enumerate(clients)
    ]
    return frame(rows, samples)


def test_clients_of_one_partition_are_the_units() -> None:
    first, second = [[70, 80, 90], [72, 84, 90]], [[69, 77, 88], [71, 79, 86]]
    (found,) = compared(a=plain(first), b=plain(second)).to_dict("records")
    # Differences by client, mean over seeds: (1 + 1)/2, (3 + 5)/2, (2 + 4)/2.
    assert (found["unit"], found["units"], found["difference"]) == ("client", 3, pytest.approx(8 / 3))
    reference = stats.ttest_rel(np.mean(first, axis=0), np.mean(second, axis=0))
    assert found["p"] == pytest.approx(reference.pvalue)
    assert found["p_holm"] == pytest.approx(reference.pvalue)  # one pair: nothing to correct
    assert (found["low"], found["high"]) == pytest.approx(tuple(reference.confidence_interval()))


def test_samples_of_one_part_count_as_one() -> None:
    """Two parts of two clients: four values that look alike are two."""
    first, second = [[70, 72, 90, 92], [72, 74, 90, 92]], [[69, 71, 86, 88], [70, 72, 88, 90]]
    (found,) = compared(a=plain(first, samples=2), b=plain(second, samples=2)).to_dict("records")
    # Part 0: (1 + 1 + 2 + 2)/4, part 1: (4 + 4 + 2 + 2)/4.
    assert (found["unit"], found["units"]) == ("part", 2)
    assert found["difference"] == pytest.approx((1.5 + 3) / 2)
    assert found["p"] == pytest.approx(stats.ttest_1samp([1.5, 3.0], 0).pvalue)
    (alone,) = compared(a=plain(first), b=plain(second)).to_dict("records")
    assert alone["unit"] == "client"
    assert alone["p"] < found["p"]


def test_several_partitions_are_the_units() -> None:
    first: Rows = [
        ("p", 0, 0, 80, 10),
        ("p", 0, 1, 60, 30),
        ("p", 1, 0, 82, 10),
        ("p", 1, 1, 62, 30),
        ("q", 2, 0, 70, 1),
    ]
    second: Rows = [(partition, seed, client, 50, weight) for partition, seed, client, _, weight in first]
    (found,) = compared(a=frame(first), b=frame(second)).to_dict("records")
    # p: seed 0 (30 * 10 + 10 * 30) / 40 = 15, seed 1 (32 * 10 + 12 * 30) / 40 = 17; q: 20.
    assert (found["unit"], found["units"]) == ("partition", 2)
    assert found["difference"] == pytest.approx((16 + 20) / 2)
    assert found["p"] == pytest.approx(stats.ttest_1samp([16.0, 20.0], 0).pvalue)


def test_only_common_seeds_of_the_same_partition_are_paired() -> None:
    first = plain([[70, 80], [99, 99]])
    second = plain([[60, 75]])
    names = ["first", "second"]
    table = side_by_side(together(first=first, second=second), names)
    np.testing.assert_allclose(table.differences("first", "second"), [10, 5])
    elsewhere = side_by_side(together(first=first, second=plain([[60, 75]], partition="q")), names)
    assert len(elsewhere.differences("first", "second")) == 0


def test_the_cell_and_not_the_pair_decides_on_the_unit() -> None:
    one, other = plain([[70, 80, 75]]), plain([[60, 75, 70]])
    third = pd.concat([plain([[50, 50, 50]]), plain([[51, 51, 51]], partition="q", first_seed=1)])
    assert side_by_side(together(a=one, b=other), ["a", "b"]).unit == "client"
    pairs = compared(a=one, b=other, c=third)
    assert set(pairs["unit"]) == {"partition"}
    found = pairs.loc[("a", "b")]
    assert (found["units"], found["difference"], found["verdict"]) == (1, pytest.approx(20 / 3), "no test")
    assert found[["p", "p_holm", "low", "high"]].isna().all()


def test_without_common_seeds_there_is_no_test() -> None:
    (found,) = compared(a=plain([[70, 80]]), b=plain([[60, 75]], first_seed=5)).to_dict("records")
    assert (found["units"], found["verdict"]) == (0, "no test")
    assert np.isnan(found["difference"])


def judged(difference: float, half: float, corrected: float) -> str:
    found = of_p_values(
        {"ab": corrected}, difference=difference, low=difference - half, high=difference + half
    )
    return str(found["verdict"].iloc[0])


@pytest.mark.parametrize(
    ("difference", "half", "corrected", "verdict"),
    [
        (2.0, 1.0, 0.01, "better"),
        (-2.0, 1.0, 0.01, "worse"),
        (2.0, 1.0, 0.05, "undecided"),  # not below the level
        (2.0, 3.0, 0.4, "undecided"),
        (0.1, 0.3, 0.9, "equivalent"),
        (0.3, 0.1, 0.001, "equivalent"),  # significant, and too small to matter
        (0.0, 0.5, 1.0, "equivalent"),  # the ends belong to the region
        (0.4, 0.2, 0.001, "undecided"),  # significant, neither surely small nor large
        (-0.4, 0.2, 0.001, "undecided"),
        (0.5, 0.1, 0.001, "undecided"),
        (0.51, 0.1, 0.001, "better"),
    ],
)
def test_what_is_claimed(difference: float, half: float, corrected: float, verdict: str) -> None:
    assert judged(difference, half, corrected) == verdict


def test_equal_differences_have_no_spread_to_test_against() -> None:
    spread = [1.0, 2.0, 4.0, 3.0]
    p_values = [p_value(np.array(units)) for units in ([0.0] * 4, [0.25] * 4, spread)]
    assert p_values == [1.0, 0.0, pytest.approx(stats.ttest_1samp(spread, 0.0).pvalue)]
    same = compared(a=plain([[70, 80], [71, 82]]), b=plain([[70, 80], [71, 82]]))
    assert same["verdict"].tolist() == ["equivalent"]


def test_clients_of_one_run_are_no_test() -> None:
    """Ten clients that are all ahead may owe it to the one seed that they share."""
    ahead_of = plain([[80 + client / 10 for client in range(10)]])
    behind = plain([[70 + client / 7 for client in range(10)]] * 3)
    found = compared(a=ahead_of, b=behind)
    (pair,) = found.to_dict("records")
    assert pair["difference"] == pytest.approx(10 + 4.5 * (1 / 10 - 1 / 7))
    assert (pair["units"], pair["runs"]) == (10, 1)
    assert np.isnan([pair["p"], pair["low"], pair["high"]]).all()
    assert [*found["verdict"], *opposite(found)["verdict"]] == ["no test", "no test"]
    assert worse_than("a", ["b"], found) == set()


def test_runs_in_common_are_those_of_both() -> None:
    """Seeds 0 to 2 and 1 to 3 have two in common, 0 to 2 and 2 to 4 one."""
    values = [[70.0, 80.0, 90.0], [71.0, 83.0, 90.0], [72.0, 82.0, 95.0]]
    pairs = compared(a=plain(values), b=plain(values, first_seed=1), c=plain(values, first_seed=2))
    assert pairs["runs"].to_dict() == {("a", "b"): 2, ("a", "c"): 1, ("b", "c"): 2}
    assert pairs["verdict"].eq("no test").to_dict()["a", "c"]
    assert pairs["p"].notna().to_dict()["a", "b"]


def test_tasks_are_the_units_with_holms_correction_over_all_pairs() -> None:
    first, second, third = [81, 72, 91, 60, 55], [80, 74, 80, 50, 54], [70, 60, 71, 58, np.nan]
    scores = pd.DataFrame({"a": first, "b": second, "c": third}, dtype=float)
    found = compare_tasks(scores).set_index(["first", "second"])
    raw = {
        ("a", "b"): stats.ttest_rel(first, second).pvalue,
        ("a", "c"): stats.ttest_rel(first[:4], third[:4]).pvalue,
        ("b", "c"): stats.ttest_rel(second[:4], third[:4]).pvalue,
    }
    assert found["p"].to_dict() == pytest.approx(raw)
    assert found["units"].tolist() == [5, 4, 4]
    assert found["difference"].iloc[0] == pytest.approx((1 - 2 + 11 + 10 + 1) / 5)
    # Holm: the smallest of three times 3, the next times 2, the largest as it is, never falling.
    ordered = sorted(raw, key=lambda names: raw[names])
    least = np.maximum.accumulate(
        [factor * raw[names] for factor, names in zip((3, 2, 1), ordered, strict=True)]
    )
    assert found["p_holm"].loc[ordered].tolist() == pytest.approx(np.minimum(least, 1))


def test_turned_is_the_other_method_against_the_one() -> None:
    pair = of_p_values({"ab": 0.001}, low=2.0, high=4.0)
    turned = opposite(pair)
    numbers = turned[["first", "second", "difference", "low", "high"]]
    assert numbers.iloc[0].tolist() == ["b", "a", -3.0, -4.0, -2.0]
    assert [*pair["verdict"], *turned["verdict"]] == ["better", "worse"]
    assert worse_than("a", ["b"], pair) == worse_than("a", ["b"], turned) == {"b"}
    assert worse_than("b", ["a"], pair) == set()


def test_one_methods_comparisons_are_corrected_over_these_alone() -> None:
    p_values: dict[str, float | None] = {"ab": 0.02, "ac": 0.9, "bc": 0.04, "bd": None, "cd": 0.9}
    against = of_one("b", of_p_values(p_values)).set_index("second")
    # Holm over two: 0.02 x 2 = 0.04, then 0.04; over all four it would be 0.08 and 0.12.
    assert against["p_holm"].dropna().to_dict() == {"a": 0.04, "c": 0.04}
    assert against["difference"].to_dict() == {"a": -3.0, "c": 3.0, "d": 3.0}
    assert against["verdict"].to_dict() == {"a": "worse", "c": "better", "d": "no test"}
    assert of_one("b", of_p_values(p_values), others=["c"])["second"].tolist() == ["c"]


def test_worse_than_the_leader_is_corrected_for_the_comparisons_with_it_alone() -> None:
    p_values: dict[str, float | None] = {
        "ab": 0.02,
        "ac": 0.03,
        "ad": 0.012,
        "bc": 0.04,
        "bd": 0.9,
        "cd": 0.9,
    }
    pairs = of_p_values(p_values)
    # Holm over three: 0.012 x 3 = 0.036, then 0.02 x 2 = 0.04, then 0.03; over all six none would hold.
    assert worse_than("a", ["b", "c", "d"], pairs) == {"b", "c", "d"}
    # Over two: 0.04 x 2 = 0.08; alone 0.04.
    assert worse_than("b", ["c", "d"], pairs) == set()
    assert worse_than("b", ["c"], pairs) == {"c"}


def ahead(pairs: Iterable[str]) -> pd.DataFrame:
    """Tests of which each says that its first method is better beyond all doubt."""
    return of_p_values(dict.fromkeys(pairs, 0.0))


def test_groups_start_with_the_best_and_all_not_worse_than_it() -> None:
    groups = tie_groups("abcde", ahead(["ac", "ad", "ae", "cd"]))
    # e ties with c; d is worse than c.
    assert groups == {"a": 1, "b": 1, "c": 2, "d": 3, "e": 2}


@settings(deadline=None)
@given(st.permutations("abcdef"), st.sets(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef"))))
def test_first_are_exactly_those_not_worse_than_the_best(
    order: list[str], better: set[tuple[str, str]]
) -> None:
    groups = tie_groups(order, ahead(map("".join, better)))
    first = {name for name in order if name == order[0] or (order[0], name) not in better}
    assert {name for name, group in groups.items() if group == 1} == first
    assert set(groups) == set(order)
    assert set(groups.values()) == set(range(1, max(groups.values()) + 1))
