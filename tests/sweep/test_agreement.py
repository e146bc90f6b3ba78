"""How two outcomes of one run agree, and what a sample of them says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from bench.store.bundle_import import Outcome
from bench.sweep.agreement import Check, Place, compare, contradict_lifted, counted, lead


def outcome_of(last: tuple[int, int], best: tuple[int, int], samples: tuple[int, int]) -> Outcome:
    """Two clients: correct test predictions by rule ``last`` and ``best_val``, of so many samples."""
    rows = tuple(
        (client, "trained", "test", rule, "accuracy", correct[client] / samples[client], samples[client])
        for client in (0, 1)
        for rule, correct in (("best_val", best), ("last", last))
    )
    return Outcome("done", "p", rows, {"trained": np.array([last], np.int32)})


@pytest.mark.parametrize(
    ("last", "best", "finding"),
    [
        ((100, 300), (100, 300), "equal"),
        ((100, 300), (100, 305), "close"),  # 5 of 1,000: 0.5 points
        ((100, 300), (100, 306), "differs"),
        ((110, 290), (90, 310), "close"),  # clients change places, the pooled accuracy does not
        ((100, 310), (100, 300), "close"),  # 10 of 1,000: 1 point
        ((100, 311), (100, 300), "differs"),
        ((95, 294), (100, 300), "differs"),
    ],
)
def test_tolerances(last: tuple[int, int], best: tuple[int, int], finding: str) -> None:
    stated = outcome_of((100, 300), (100, 300), (200, 800))
    assert compare(stated, outcome_of(last, best, (200, 800)))[0] == finding
    assert compare(outcome_of(last, best, (200, 800)), stated)[0] == finding


def test_the_lead_is_that_of_the_reading_furthest_apart() -> None:
    """By ``best_val`` 4 of 1,000 are 0.4 of 0.5 points, by ``last`` 7 are 0.7 of 1."""
    here = outcome_of((100, 300), (100, 300), (200, 800))
    assert lead(outcome_of((100, 293), (100, 304), (200, 800)), here) == pytest.approx(0.4)
    assert lead(outcome_of((100, 291), (100, 304), (200, 800)), here) == pytest.approx(-0.9)
    assert lead(here, here) == 0
    assert lead(here, Outcome("diverged", "p", (), {})) == 0


def test_runs_that_are_close_are_counted_with_their_side() -> None:
    checks = [Check("a", "a", "equal", ""), *(Check(str(n), "b", "close", "", n / 10) for n in (4, 3, -1))]
    text = counted(checks)
    for part in ("1 equal", "3 close", "2 above and 1 below", "+0.20 points"):
        assert part in text
    assert counted([Check("a", "a", None, "")]) == "1 not checked"


def test_two_predictions_may_differ_on_a_small_split() -> None:
    stated = outcome_of((10, 10), (10, 10), (20, 20))
    assert compare(stated, outcome_of((10, 10), (12, 10), (20, 20)))[0] == "close"
    assert compare(stated, outcome_of((10, 10), (12, 11), (20, 20)))[0] == "differs"


def test_equal_accuracies_of_other_curves_are_close() -> None:
    stated, new_outcome = (outcome_of((10, 10), (10, 10), (20, 20)) for _ in range(2))
    new_outcome.curves["trained"][0, 0] = 9
    assert compare(stated, new_outcome)[0] == "close"


def by_class(*matrix: Sequence[int], traffic: tuple[int, int] = (1000, 500)) -> Outcome:
    """Two clients with the same test items by true and predicted class, and what they exchange."""
    counts = np.stack([np.array(matrix, np.int32)] * 2)
    right, samples = int(np.trace(counts[0])), int(counts[0].sum())
    confusions = {("trained", rule): counts for rule in ("best_val", "last")}
    numbers = outcome_of((right, right), (right, right), (samples, samples))
    return replace(numbers, confusions=confusions, traffic=traffic)


def test_counts_by_class_are_compared_where_both_have_them() -> None:
    """Of 50 items of a rare class 40 are right, 39 or none, and 350 of 400 items in any case."""
    stated = by_class((40, 10), (40, 310))
    none_right = by_class((0, 50), (0, 350))
    finding, detail = compare(stated, by_class((40, 10), (40, 310)))
    assert (finding, "by class" in detail) == ("equal", True)
    assert compare(by_class((39, 11), (39, 311)), stated)[0] == "close"
    finding, detail = compare(stated, none_right)
    f1 = [50 * (80 / 130 + 620 / 670), 50 * (0 / 50 + 700 / 750)]
    balanced = [50 * (40 / 50 + 310 / 350), 50 * (0 / 50 + 350 / 350)]
    words = [f"{first:.2f} %, here {second:.2f} %" for first, second in (f1, balanced)]
    assert finding == "differs"
    assert any(text in detail for text in words)
    assert compare(by_class((39, 12), (39, 310)), stated)[0] == "differs", "other test items"
    for first, second in (
        (replace(stated, confusions={}), none_right),
        (stated, replace(none_right, confusions={})),
    ):
        finding, detail = compare(first, second)
        assert (finding, "no counts by class" in detail) == ("equal", True)


def test_the_traffic_is_compared() -> None:
    """What some methods send depends on what was learned: where it is not the same, the run is close."""
    stated = by_class((8, 2), (8, 82))
    for traffic, finding in (
        ((1000, 500), "equal"),
        ((1000, 490), "close"),
        ((1, 500), "differs"),
        ((1000, 1), "differs"),
    ):
        assert compare(stated, by_class((8, 2), (8, 82), traffic=traffic))[0] == finding
        assert compare(by_class((8, 2), (8, 82), traffic=traffic), stated)[0] == finding
    assert "1 bytes up, here 1,000" in compare(by_class((8, 2), (8, 82), traffic=(1, 500)), stated)[1]


def test_areas_under_the_curve_are_compared_where_both_have_them() -> None:
    stated = outcome_of((100, 300), (100, 300), (200, 800))
    low, high = (
        replace(stated, areas=((0, "trained", "test", "best_val", "roc_auc", value, 200),))
        for value in (0.6, 0.9)
    )
    assert compare(low, low)[0] == "equal"
    assert compare(high, low)[0] == "differs"
    assert compare(high, stated)[0] == "equal"


def test_what_is_no_agreement_at_all() -> None:
    stated = outcome_of((10, 10), (10, 10), (20, 20))
    finding, detail = compare(stated, replace(stated, partition_hash="q"))
    assert (finding, detail) == ("differs", "other clients: partition p, here q")
    assert compare(stated, outcome_of((10, 10), (10, 10), (20, 21)))[0] == "differs"
    for state, expected in (
        ("diverged", "differs"),
        ("not_applicable", "differs"),
        ("oom", None),
        ("failed", None),
        ("no_data", None),
    ):
        finding, detail = compare(stated, Outcome(state, "p", (), {}), "why")
        assert (finding, detail) == (expected, f"it ended here as {state}: why")


def test_a_run_that_diverged_has_to_diverge_again() -> None:
    stated = Outcome("diverged", "p", (), {})
    assert compare(stated, Outcome("diverged", "p", (), {}), "nan in round 3")[0] == "equal"
    finding, detail = compare(stated, outcome_of((10, 10), (10, 10), (20, 20)))
    assert (finding, detail) == ("differs", "it ended here as done; the bundle says diverged")
    assert compare(stated, Outcome("oom", "p", (), {}), "8 GB")[0] is None
    assert compare(stated, Outcome("diverged", "q", (), {}))[0] == "differs", "other clients"


def test_another_sort_of_device_contradicts_no_accuracy() -> None:
    """A GPU's roundings move some runs by more than is allowed; the clients are the same on either."""
    stated, far = (
        outcome_of((100, 300), (100, 300), (200, 800)),
        outcome_of((100, 300), (100, 380), (200, 800)),
    )
    gpu, cpu = Place("cuda"), Place("cpu", "Intel", 1)
    assert compare(stated, far, places=(gpu, gpu))[0] == "differs"
    finding, detail = compare(stated, far, places=(gpu, cpu))
    assert finding is None
    assert "48.00 %" in detail
    assert "cuda" in detail
    near = outcome_of((100, 300), (100, 305), (200, 800))
    assert compare(stated, near, places=(gpu, cpu))[0] == "close"
    assert compare(stated, Outcome("diverged", "p", (), {}), "why", (cpu, gpu))[0] is None
    assert compare(stated, far, places=(Place(), cpu))[0] == "differs", "a bundle that names no device"
    for outcome_there in (far, Outcome("diverged", "p", (), {})):
        other_clients = replace(outcome_there, partition_hash="q")
        assert compare(stated, other_clients, places=(cpu, gpu))[0] == "differs"


@pytest.mark.parametrize(
    ("other", "finding"),
    [
        (Place("cpu", "Intel", 1), "differs"),
        (Place("cpu", "Intel", 2), None),
        (Place("cpu", "AMD", 1), None),
        (Place("cpu", "", 1), "differs"),  # what is not known is no other
        (Place("cuda", "H100"), None),
    ],
)
def test_other_roundings_explain_up_to_ten_points(other: Place, finding: str | None) -> None:
    here = Place("cpu", "Intel", 1)
    stated = outcome_of((100, 300), (100, 300), (200, 800))
    for right, expected in ((305, "close"), (306, finding), (400, finding), (401, "differs")):
        assert (
            compare(stated, outcome_of((100, 300), (100, right), (200, 800)), "", (other, here))[0]
            == expected
        )


def test_runs_that_are_all_stated_too_high_differ() -> None:
    """Of ten coins all ten show heads once in 1,024 times, nine or ten eleven times."""

    def checks(*points: float) -> list[Check]:
        return [Check(str(place), "", "close", "", value) for place, value in enumerate(points)]

    equal = Check("e", "", "equal", "")
    lifted = contradict_lifted([*checks(*[0.1] * 10), equal])
    assert [check.finding for check in lifted] == ["differs"] * 10 + ["equal"]
    for honest in (
        checks(*[0.1] * 9),
        checks(*[0.1] * 9, -0.1),
        checks(*[-0.1] * 12),
        [*checks(*[0.1] * 9), equal, equal],
        [],
    ):
        assert contradict_lifted(honest) == honest
    far = [Check(str(place), "", None, "another processor", 3.0) for place in range(10)]
    assert [check.finding for check in contradict_lifted(far)] == ["differs"] * 10, "too far to be close"
