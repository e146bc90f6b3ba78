"""Clients with some of the classes, on label vectors alone: sizes and classes of image facts 1.4 and 1.6."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.data import Images
from bench.errors import RequestError
from bench.federation.build import build
from bench.federation.image_scenarios import CaseStudy, Pathological
from bench.federation.images import ImageScenario
from bench.federation.scenario import SCENARIOS

SETS = [(10, 6000), (100, 600), (200, 550)]
"""Classes and images of each: CIFAR-10, CIFAR-100, Tiny-ImageNet."""


def balanced(classes: int, size: int) -> NDArray[np.int64]:
    return np.random.default_rng(classes).permutation(np.repeat(np.arange(classes), size))


def counts(
    scenario: ImageScenario, labels: NDArray[np.int64], clients: int = 20, seed: int = 123
) -> NDArray[Any]:
    """Images by client and class; no image may go to two clients."""
    parts = scenario.shares(labels, clients, seed)
    together = np.concatenate(parts)
    assert len(np.unique(together)) == len(together)
    return np.stack([np.bincount(labels[part], minlength=labels.max() + 1) for part in parts])


@pytest.mark.parametrize(("classes", "size"), SETS)
def test_pathological_clients_have_equal_shards(classes: int, size: int) -> None:
    shares = 5 if classes == 10 else classes // 5
    shard = size // (shares * 20 // classes)
    table = counts(Pathological(), balanced(classes, size))
    assert (table % shard == 0).all()
    assert (table.sum(axis=1) == shares * shard).all()
    assert (table.sum(axis=0) == size // shard * shard).all()
    assert shares * shard == {10: 3000, 100: 3000, 200: 5480}[classes]  # facts 1.4


def test_shards_dealt_at_random_repeat_a_class() -> None:
    labels = balanced(10, 60)
    for seed in range(20):
        repeated = counts(Pathological(), labels, seed=seed).max(axis=1) > 6
        assert repeated.any()


def test_four_images_of_two_classes_for_two_clients() -> None:
    table = counts(Pathological(), np.array([0, 1, 1, 0]), clients=2)
    assert (table.sum(axis=1) == 2).all()
    assert (table.sum(axis=0) == 2).all()


@pytest.mark.parametrize(("classes", "size"), SETS)
def test_the_case_study_s_groups_share_their_classes(classes: int, size: int) -> None:
    table = counts(CaseStudy(), balanced(classes, size))
    own = size * 8 // 10 // 4
    even = size * 2 // 10 // 20
    assert (table.sum(axis=1) == {10: 3000, 100: 3000, 200: 5400}[classes]).all()  # facts 1.6
    groups = CaseStudy().groups(20)
    assert groups.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4 + [4] * 4
    owned = table == own + even
    assert (table[~owned] == even).all()
    assert (owned.sum(axis=1) == classes // 5).all()
    assert all((owned[groups == group] == owned[groups == group][0]).all() for group in range(5))
    assert (owned[::4].sum(axis=0) == 1).all()  # every class belongs to one group


def test_the_last_client_of_a_group_takes_what_is_left_of_its_classes() -> None:
    """Of 29 images 23 are a group's: 5, 5, 5 and 8 for its four clients; of 6 others nobody of 20 has one."""
    table = counts(CaseStudy(), balanced(5, 29))
    for group in range(5):
        owned = table[4 * group : 4 * group + 4]
        assert sorted(owned.sum(axis=0).tolist()) == [0, 0, 0, 0, 23]
        assert owned.sum(axis=1).tolist() == [5, 5, 5, 8]


def test_which_classes_a_group_has_hangs_on_the_seed() -> None:
    labels = balanced(10, 60)
    owners = {
        tuple(np.argsort(-counts(CaseStudy(), labels, seed=seed)[0])[:2].tolist()) for seed in range(30)
    }
    assert len(owners) > 15


def test_only_the_case_study_has_groups() -> None:
    grouped = [name for name, kind in SCENARIOS.all().items() if kind.groups is not ImageScenario.groups]
    assert grouped == ["case-study"]
    assert Pathological().groups(20) is None


@pytest.mark.parametrize(
    ("scenario", "classes", "size", "clients", "words"),
    [
        ("case-study", 10, 60, 12, "multiple of 5, got 12"),
        ("case-study", 12, 60, 20, "got 12"),
        ("case-study", 5, 4, 20, "none of them to train on"),
        ("pathological", 10, 60, 7, "multiple of 2.*got 7"),
        ("pathological", 10, 9, 20, "none of them to train on"),
    ],
)
def test_what_classes_do_not_allow_is_one_line(
    scenario: str,
    classes: int,
    size: int,
    clients: int,
    words: str,
    use_toy: Callable[..., object],
    suite_home: Path,
) -> None:
    labels = balanced(classes, size)
    use_toy(Images(np.zeros((len(labels), 1, 2, 2), np.uint8), labels, classes))
    with pytest.raises(RequestError, match=words) as caught:
        build("toy", scenario, clients, 0, (70, 10, 20))
    assert "\n" not in str(caught.value)
    assert not list(suite_home.rglob("*.npz"))
