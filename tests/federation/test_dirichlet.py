from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.errors import RequestError
from bench.federation.dirichlet import label_dirichlet


class Scripted:
    """A stream whose permutations change nothing and whose Dirichlet draws are given."""

    def __init__(self, *weights: list[float]) -> None:
        self.weights = iter(weights)

    def permutation(self, items: Any) -> Any:
        return items

    def dirichlet(self, alpha: Any) -> Any:
        return np.array(next(self.weights))


def sizes(parts: list[Any], labels: Any) -> list[list[int]]:
    return [np.bincount(labels[part], minlength=labels.max() + 1).tolist() for part in parts]


LABELS = np.array([0] * 10 + [1] * 10)


def test_cuts_are_rounded_down() -> None:
    parts = label_dirichlet(LABELS, 3, 1.0, 1, Scripted([0.5, 0.3, 0.2], [0.25, 0.25, 0.5]))  # type: ignore[arg-type]
    assert [part.tolist() for part in parts] == [
        [0, 1, 2, 3, 4, 10, 11],
        [5, 6, 7, 12, 13, 14],
        [8, 9, 15, 16, 17, 18, 19],
    ]


def test_a_client_with_its_share_gets_no_more() -> None:
    # Cuts of class 0 at floor(9), floor(9.5): sizes 9, 0, 1. 9 >= 20 / 3, so class 1 is for the others.
    parts = label_dirichlet(LABELS, 3, 1.0, 1, Scripted([0.9, 0.05, 0.05], [0.9, 0.05, 0.05]))  # type: ignore[arg-type]
    assert sizes(parts, LABELS) == [[9, 0], [0, 5], [1, 5]]


def test_weights_that_vanish_are_replaced_by_equal_ones() -> None:
    parts = label_dirichlet(LABELS, 3, 1.0, 1, Scripted([0.9, 0.05, 0.05], [1.0, 0.0, 0.0]))  # type: ignore[arg-type]
    assert sizes(parts, LABELS) == [[9, 0], [0, 5], [1, 5]]


def test_all_is_drawn_again_until_every_client_has_enough() -> None:
    # The first draw gives 1 + 2 and 9 + 8 items, the second 6 + 6 and 4 + 4.
    draws = ([0.1, 0.9], [0.2, 0.8], [0.6, 0.4], [0.6, 0.4])
    accepted = label_dirichlet(LABELS, 2, 1.0, 3, Scripted(*draws))  # type: ignore[arg-type]
    assert sizes(accepted, LABELS) == [[1, 2], [9, 8]]
    again = label_dirichlet(LABELS, 2, 1.0, 4, Scripted(*draws))  # type: ignore[arg-type]
    assert sizes(again, LABELS) == [[6, 6], [4, 4]]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 5), min_size=30, max_size=200),
    st.integers(1, 6),
    st.sampled_from([0.1, 0.5, 1.0, 10000.0]),
    st.integers(0, 1000),
)
def test_every_item_goes_to_one_client_and_full_clients_get_nothing(
    classes: list[int], clients: int, concentration: float, seed: int
) -> None:
    labels = np.array(classes)
    parts = label_dirichlet(labels, clients, concentration, 1, np.random.default_rng(seed))
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(labels)))
    assert all(len(part) for part in parts)
    counts = np.array(sizes(parts, labels))
    before = np.cumsum(counts, axis=1) - counts
    late = counts[before >= len(labels) / clients]
    # Rounding the last cut down can leave one item to the last client.
    assert late.max(initial=0) <= 1


def test_large_concentration_gives_nearly_equal_clients_and_classes() -> None:
    labels = np.arange(2708) % 7
    parts = label_dirichlet(labels, 3, 10000.0, 10, np.random.default_rng(5))
    assert all(abs(len(part) - 2708 / 3) < 0.03 * 2708 / 3 for part in parts)
    assert all(np.bincount(labels[part]).min() > 0.8 * 2708 / 21 for part in parts)


def test_small_concentration_gives_uneven_classes() -> None:
    labels = np.arange(6000) % 10
    parts = label_dirichlet(labels, 20, 0.1, 1, np.random.default_rng(1))
    assert np.mean([len(np.unique(labels[part])) for part in parts]) < 9
    assert max(len(part) for part in parts) > 1.3 * 300


def test_an_impossible_draw_is_given_up() -> None:
    with pytest.raises(RequestError, match="larger concentration"):
        label_dirichlet(LABELS, 10, 0.001, 2, np.random.default_rng(0))
