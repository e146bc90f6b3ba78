from collections.abc import Iterable

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from bench.statistics.paired import (
    COLUMNS,
    compare,
    compare_tasks,
    of_one,
    paired,
    tie_groups,
    with_verdicts,
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
    ((_, differences, _, runs),) = paired(together(first=first, second=second), ["first", "second"])
    np.testing.assert_allclose(differences, [10, 5])
    assert runs == 1
    for elsewhere in (plain([[60, 75]], partition="q"), plain([[60, 75]], first_seed=5)):
        (found,) = compared(first=first, second=elsewhere).to_dict("records")
        assert (found["units"], found["verdict"]) == (0, "no test")
        assert np.isnan(found["difference"])


def test_the_cell_and_not_the_pair_decides_on_the_unit() -> None:
    one, other = plain([[70, 80, 75]]), plain([[60, 75, 70]])
    third = pd.concat([plain([[50, 50, 50]]), plain([[51, 51, 51]], partition="q", first_seed=1)])
    assert set(compared(a=one, b=other)["unit"]) == {"client"}
    pairs = compared(a=one, b=other, c=third)
    assert set(pairs["unit"]) == {"partition"}
    found = pairs.loc[("a", "b")]
    assert (found["units"], found["difference"], found["verdict"]) == (1, pytest.approx(20 / 3), "no test")
    assert found[["p", "p_holm", "low", "high"]].isna().all()


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
        (-0.4, 0.2, 0.001, "undecided"),  # significant, neither surely small nor large
        (0.5, 0.1, 0.001, "undecided"),
        (0.51, 0.1, 0.001, "better"),
    ],
)
def test_what_is_claimed(difference: float, half: float, corrected: float, verdict: str) -> None:
    assert judged(difference, half, corrected) == verdict


def test_equal_differences_have_no_spread_to_test_against() -> None:
    base = [70.0, 80.0, 75.0, 90.0]
    scores = pd.DataFrame({"a": base, "b": base, "c": [value - 0.25 for value in base]})
    pairs = compare_tasks(scores).set_index(["first", "second"])
    assert pairs["p"].tolist() == [1.0, 0.0, 0.0]
    assert set(pairs["verdict"]) == {"equivalent"}


def test_clients_of_one_run_are_no_test() -> None:
    """Ten clients that are all ahead may owe it to the one seed that they share."""
    ahead_of = plain([[80 + client / 10 for client in range(10)]])
    behind = plain([[70 + client / 7 for client in range(10)]] * 3)
    found = compared(a=ahead_of, b=behind)
    (pair,) = found.to_dict("records")
    assert pair["difference"] == pytest.approx(10 + 4.5 * (1 / 10 - 1 / 7))
    assert (pair["units"], pair["runs"]) == (10, 1)
    assert np.isnan([pair["p"], pair["low"], pair["high"]]).all()
    assert [*found["verdict"], *of_one("b", found)["verdict"]] == ["no test", "no test"]
    assert set(tie_groups("ab", found).values()) == {1}


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
    assert found["p_holm"].tolist() == pytest.approx(multipletests(found["p"], method="holm")[1].tolist())


def test_the_tests_of_one_method_have_it_first() -> None:
    turned = of_one("b", of_p_values({"ab": 0.001}, low=2.0, high=4.0))
    numbers = turned[["first", "second", "difference", "low", "high", "verdict"]]
    assert numbers.iloc[0].tolist() == ["b", "a", -3.0, -4.0, -2.0, "worse"]


def test_one_methods_comparisons_are_corrected_over_these_alone() -> None:
    p_values: dict[str, float | None] = {"ab": 0.02, "ac": 0.9, "bc": 0.04, "bd": None, "cd": 0.9}
    against = of_one("b", of_p_values(p_values)).set_index("second")
    # Holm over two: 0.02 x 2 = 0.04, then 0.04; over all four it would be 0.08 and 0.12.
    assert against["p_holm"].dropna().to_dict() == {"a": 0.04, "c": 0.04}
    assert against["difference"].to_dict() == {"a": -3.0, "c": 3.0, "d": 3.0}
    assert against["verdict"].to_dict() == {"a": "worse", "c": "better", "d": "no test"}


def test_groups_are_corrected_for_the_comparisons_with_their_leader_alone() -> None:
    p_values: dict[str, float | None] = {
        **{"ab": 0.02, "ac": 0.03, "ad": 0.012},
        **{"bc": 0.04, "bd": 0.9, "cd": 0.9},
    }
    pairs = of_p_values(p_values)
    # Holm over three: 0.012 x 3 = 0.036, then 0.02 x 2 = 0.04, then 0.03; over all six none would hold.
    # Over the two with b: 0.04 x 2 = 0.08; alone 0.04.
    assert tie_groups("abcd", pairs) == {"a": 1, "b": 2, "c": 2, "d": 2}
    assert tie_groups("bc", pairs) == {"b": 1, "c": 2}


def ahead(pairs: Iterable[str]) -> pd.DataFrame:
    """Tests of which each says that its first method is better beyond all doubt."""
    return of_p_values(dict.fromkeys(pairs, 0.0))


def test_groups_start_with_the_best_and_all_not_worse_than_it() -> None:
    groups = tie_groups("abcde", ahead(["ac", "ad", "ae", "cd"]))
    # e ties with c; d is worse than c.
    assert groups == {"a": 1, "b": 1, "c": 2, "d": 3, "e": 2}
