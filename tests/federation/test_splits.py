from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import RequestError
from bench.federation.splits import ceiled_roles, check_split, floored_roles, global_roles
from bench.federation.types import TEST, TRAIN, UNUSED, VALIDATION

PAPER = (40.0, 30.0, 30.0)


def counts(roles: np.ndarray) -> tuple[int, int, int, int]:
    return tuple(int((roles == role).sum()) for role in (TRAIN, VALIDATION, TEST, UNUSED))  # type: ignore[return-value]


def test_cora_and_citeseer_counts_of_the_paper() -> None:
    # 0.4 * 2485 = 994; 0.3 * 2485 = 745.5, which Python's round takes to the even 746; the rest is 745.
    assert counts(global_roles(2485, PAPER, np.random.default_rng(0))) == (994, 745, 746, 0)
    assert counts(global_roles(2120, PAPER, np.random.default_rng(0))) == (848, 636, 636, 0)


@given(st.integers(1, 400), st.integers(0, 10))
def test_a_permutation_trains_then_tests_then_validates(items: int, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(items)
    roles = global_roles(items, PAPER, np.random.default_rng(seed))
    dealt = roles[order].tolist()
    assert dealt == [TRAIN] * dealt.count(TRAIN) + [TEST] * dealt.count(TEST) + [VALIDATION] * dealt.count(
        VALIDATION
    )
    assert abs(dealt.count(TRAIN) - 0.4 * items) <= 0.5
    assert abs(dealt.count(TEST) - 0.3 * items) <= 0.5


def test_shares_below_100_leave_nodes_without_a_role() -> None:
    assert counts(global_roles(1000, (20.0, 10.0, 40.0), np.random.default_rng(0))) == (200, 100, 400, 300)


@pytest.mark.parametrize(
    ("items", "split", "expected"),
    [
        (904, (10, 20, 40), (90, 180, 361, 273)),
        (10, (10, 20, 40), (1, 2, 4, 3)),
        (9, (10, 20, 40), (0, 1, 3, 5)),
        (100, (29, 20, 40), (29, 20, 40, 11)),  # 0.29 * 100 is 28.999999999999996 in floating point
        (22_470, (0.8, 20, 40), (179, 4494, 8988, 8809)),
        (1125, (0.8, 20, 40), (9, 225, 450, 441)),
    ],
)
def test_hypergraph_counts_are_rounded_down_from_exact_shares(
    items: int, split: tuple[float, float, float], expected: tuple[int, ...]
) -> None:
    assert counts(floored_roles(items, split, np.random.default_rng(0))) == expected


@pytest.mark.parametrize(
    ("items", "train", "validation", "test"),
    [(3000, 2100, 300, 600), (5400, 3780, 540, 1080), (5480, 3836, 548, 1096), (3, 1, 1, 1), (11, 7, 1, 3)],
)
def test_image_counts_of_the_paper(items: int, train: int, validation: int, test: int) -> None:
    roles = ceiled_roles(items, (70.0, 10.0, 20.0), np.random.default_rng(0))
    assert counts(roles) == (train, validation, test, 0)


def test_image_shares_must_add_up_to_100() -> None:
    with pytest.raises(RequestError, match="add up to 100"):
        ceiled_roles(50, (60.0, 10.0, 20.0), np.random.default_rng(0))


@pytest.mark.parametrize(
    "split",
    [
        (0.0, 50.0, 50.0),
        (40.0, 30.0, 30.1),
        (-1.0, 50.0, 51.0),
        (float("nan"), 1.0, 1.0),
        (40, 30, float("inf")),
        (0.4, 0.3, 0.3),
    ],
)
def test_shares_that_are_no_percentages_are_refused(split: tuple[float, float, float]) -> None:
    with pytest.raises(RequestError, match=r"protocol\.split: expected .*percentages"):
        check_split(split)


def test_shares_that_add_up_in_decimals_are_fine() -> None:
    for split in ((33.4, 33.3, 33.3), (10, 20, 40), (0.4, 0.3, 0.4)):
        check_split(split)
