"""Clients of images: on toy data, and on label vectors alone, whose counts the image facts have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from toy_data import random_hypergraph, random_images

from bench.data import Data, Images
from bench.errors import RequestError
from bench.federation.build import build
from bench.federation.images import CaseStudy, ImageScenario
from bench.federation.prepared import prepare
from bench.federation.scenario import SCENARIOS
from bench.federation.scenarios import parse
from bench.federation.splits import reseeded_roles
from bench.federation.types import TEST, TRAIN, VALIDATION

SPLIT = (70.0, 10.0, 20.0)
Use = Callable[..., object]


def test_every_image_goes_to_one_client_and_each_client_can_train(use_toy: Use) -> None:
    data = random_images(400)
    use_toy(data)
    for seed in range(5):
        clients = build("toy", "dirichlet0.1", 20, seed, SPLIT).clients
        assert sorted(np.concatenate([client.ids for client in clients]).tolist()) == list(range(400))
        for client in clients:
            images = len(client.ids)
            tested = -(-images // 5)
            validated = -(-(images - tested) // 8)
            assert (client.count(TEST), client.count(VALIDATION)) == (tested, validated)
            assert client.count(TRAIN) == images - tested - validated >= 1
            assert np.array_equal(client.features, data.pixels[client.ids])
            assert np.array_equal(client.labels, data.labels[client.ids])


@pytest.mark.parametrize(
    ("data", "scenario"), [(random_images(400), "dirichlet10"), (random_hypergraph(), "label-dirichlet10")]
)
def test_every_client_and_every_seed_has_a_split_of_its_own(use_toy: Use, data: Data, scenario: str) -> None:
    use_toy(data)
    first, second = (build("toy", scenario, 1, seed, SPLIT).clients[0].roles for seed in (1, 2))
    assert not np.array_equal(first, second)
    pairs = (build("toy", scenario, 2, seed, SPLIT).clients for seed in range(200))
    one, two = next(pair for pair in pairs if len(pair[0].ids) == len(pair[1].ids))
    assert not np.array_equal(one.roles, two.roles)


def sampled(data: Images, positions: list[int]) -> Images:
    """The images at these positions, as a sample of all."""
    chosen = np.array(positions)
    return Images(data.pixels[chosen], data.labels[chosen], data.classes, data.labels, chosen)


@pytest.mark.parametrize("scenario", ["dirichlet0.5", "pathological", "case-study"])
def test_clients_of_a_sample_are_those_of_the_complete_set(scenario: str, use_toy: Use) -> None:
    complete = random_images(1000)
    positions = list(range(1, 1000, 3))
    use_toy(complete)
    whole = build("toy", scenario, 10, 4, SPLIT)
    use_toy(sampled(complete, positions))
    part = build("toy", scenario, 10, 4, SPLIT)
    for one, other in zip(whole.clients, part.clients, strict=True):
        assert [positions[image] for image in other.ids] == [image for image in one.ids if image % 3 == 1]
        assert np.array_equal(other.features, complete.pixels[1::3][other.ids])
        assert other.count(TEST) == -(-len(other.ids) // 5)  # split after the rest was left out


def test_the_population_decides_the_data_s_checksum(use_toy: Use) -> None:
    complete = random_images(40)
    sums = set()
    for data in (
        sampled(complete, [0, 1]),
        sampled(complete, [10, 11]),
        sampled(Images(complete.pixels[:30], complete.labels[:30], 10), [0, 1]),
        Images(complete.pixels[:2], complete.labels[:2], 10),
    ):
        pixels = complete.pixels[:2]
        use_toy(Images(pixels, data.labels, 10, data.population, data.positions))
        sums.add(prepare("toy").checksum)
    assert len(sums) == 4


@pytest.mark.parametrize("held", [0, 1])
def test_a_client_of_whom_the_sample_holds_too_little_is_refused(held: int, use_toy: Use) -> None:
    complete = random_images(200)
    use_toy(complete)
    lost = set(build("toy", "dirichlet1", 4, 0, SPLIT).clients[2].ids[held:].tolist())
    use_toy(sampled(complete, [image for image in range(200) if image not in lost]))
    with pytest.raises(RequestError, match="client 2 of 4"):
        build("toy", "dirichlet1", 4, 0, SPLIT)


# --- counts of the facts, on labels alone ------------------------------------------------------------

SETS = [(10, 6000), (100, 600), (200, 550)]
"""Classes and images of each: CIFAR-10, CIFAR-100, Tiny-ImageNet."""


def balanced(classes: int, size: int) -> NDArray[np.int64]:
    return np.random.default_rng(classes).permutation(np.repeat(np.arange(classes), size))


def shares(
    name: str, labels: NDArray[np.int64], clients: int = 20, seed: int = 123
) -> list[NDArray[np.int64]]:
    scenario = parse(name)
    assert isinstance(scenario, ImageScenario)
    return scenario.shares(labels, clients, seed)


def counts(name: str, labels: NDArray[np.int64], clients: int = 20, seed: int = 123) -> NDArray[Any]:
    """Images by client and class; no image may go to two clients."""
    parts = shares(name, labels, clients, seed)
    together = np.concatenate(parts)
    assert len(np.unique(together)) == len(together)
    return np.stack([np.bincount(labels[part], minlength=labels.max() + 1) for part in parts])


@pytest.mark.parametrize(("classes", "size"), SETS)
def test_pathological_clients_have_equal_shards(classes: int, size: int) -> None:
    shards = 5 if classes == 10 else classes // 5
    shard = size // (shards * 20 // classes)
    table = counts("pathological", balanced(classes, size))
    assert (table % shard == 0).all()
    assert (table.sum(axis=1) == shards * shard).all()
    assert (table.sum(axis=0) == size // shard * shard).all()
    assert shards * shard == {10: 3000, 100: 3000, 200: 5480}[classes]  # facts 1.4
    if classes == 10:
        assert table.max() > shard  # shards dealt at random repeat a class


@pytest.mark.parametrize(("classes", "size"), SETS)
def test_the_case_study_s_groups_share_their_classes(classes: int, size: int) -> None:
    table = counts("case-study", balanced(classes, size))
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
    table = counts("case-study", balanced(5, 29))
    for group in range(5):
        owned = table[4 * group : 4 * group + 4]
        assert sorted(owned.sum(axis=0).tolist()) == [0, 0, 0, 0, 23]
        assert owned.sum(axis=1).tolist() == [5, 5, 5, 8]


def test_which_classes_a_group_has_hangs_on_the_seed_and_only_the_case_study_has_groups() -> None:
    tables = (counts("case-study", balanced(10, 60), seed=seed) for seed in range(30))
    assert len({tuple(np.argsort(-table[0])[:2].tolist()) for table in tables}) > 15
    grouped = [name for name, kind in SCENARIOS.all().items() if kind.groups is not ImageScenario.groups]
    assert grouped == ["case-study"]


@pytest.mark.parametrize(
    ("scenario", "classes", "size", "clients", "words"),
    [
        ("case-study", 10, 60, 12, "multiple of 5, got 12"),
        ("case-study", 12, 60, 20, "got 12"),
        ("case-study", 5, 4, 20, "none of them to train on"),
        ("pathological", 10, 60, 7, "multiple of 2.*got 7"),
        ("pathological", 10, 9, 20, "none of them to train on"),
        ("pathological-released", 2, 20, 4, "got 2"),
    ],
)
def test_what_classes_do_not_allow_is_one_line(
    scenario: str, classes: int, size: int, clients: int, words: str, use_toy: Use, suite_home: Path
) -> None:
    labels = balanced(classes, size)
    use_toy(Images(np.zeros((len(labels), 1, 2, 2), np.uint8), labels, classes))
    with pytest.raises(RequestError, match=words) as caught:
        build("toy", scenario, clients, 0, SPLIT)
    assert "\n" not in str(caught.value)
    assert not list(suite_home.rglob("*.npz"))


# --- the released partitions -------------------------------------------------------------------------

CIFAR10_SIZES = {
    "0.1": "3062 4229 1470 6097 2424 4649 933 443 5794 4254 1728 2968 3961 4104 1532 3353 3023 362 2990 2624",
    "0.2": "3029 2712 5709 2372 2330 2591 290 4482 2002 2661 "
    "5034 1578 3054 3786 2465 3508 1271 5824 3031 2271",
    "0.5": "3337 3402 3559 1892 3363 3068 3186 4262 2007 1887 "
    "4218 1940 3401 1862 4224 3040 3371 3203 3195 1583",
}


def labels_of(classes: int) -> NDArray[np.int64]:
    """Balanced labels of 60,000 or, for 200 classes, 110,000 images; counts do not hang on their order."""
    return np.arange(110_000 if classes == 200 else 60_000) % classes


@pytest.mark.parametrize("concentration", CIFAR10_SIZES)
def test_sizes_of_cifar10_s_clients(concentration: str) -> None:
    parts = shares(f"dirichlet{concentration}-released", labels_of(10))
    assert [len(part) for part in parts] == [int(size) for size in CIFAR10_SIZES[concentration].split()]


@pytest.mark.parametrize(
    ("classes", "images", "numbers", "batches", "most"),
    [
        (10, (362, 6097), (3, 10), 645, 66),
        (100, (1959, 3416), (32, 79), 644, 37),
        (200, (4602, 5916), (64, 168), 1193, 64),
    ],
)
def test_images_classes_and_batches_of_released_clients(
    classes: int, images: tuple[int, int], numbers: tuple[int, int], batches: int, most: int
) -> None:
    table = counts("dirichlet0.1-released", labels_of(classes))
    held, own = table.sum(axis=1), (table > 0).sum(axis=1)
    assert (held.min(), held.max()) == images
    assert (own.min(), own.max()) == numbers
    full = [int((reseeded_roles(size, SPLIT, 666) == TRAIN).sum()) // 64 for size in held.tolist()]
    assert (sum(full), max(full)) == (batches, most)


def test_items_are_dealt_as_the_released_loop_deals_them() -> None:
    """Facts 1.5 written down as they read, on labels in no order."""
    labels = np.random.default_rng(3).permutation(np.arange(4000) % 10)
    state = np.random.RandomState(66666)
    buckets: list[list[int]] = [[] for _ in range(20)]
    for label in range(10):
        items = np.flatnonzero(labels == label)
        state.shuffle(items)
        weights = state.dirichlet(np.full(20, 0.5))
        weights = weights * [len(bucket) < 4000 / 20 for bucket in buckets]
        ends = np.floor(np.cumsum(weights / weights.sum()) * len(items)).astype(int)
        ends[-1] = len(items)
        for bucket, start, end in zip(buckets, [0, *ends[:-1]], ends, strict=True):
            bucket += items[start:end].tolist()
    assert [part.tolist() for part in shares("dirichlet0.5-released", labels)] == buckets


def test_shards_are_dealt_as_the_released_steps_deal_them() -> None:
    """Facts 1.4 written down as they read: ten classes of 47 images, ten shards of four of each."""
    labels = np.random.default_rng(4).permutation(np.arange(470) % 10)
    state = np.random.RandomState(66666)
    shards = []
    for label in range(10):
        items = np.flatnonzero(labels == label)
        state.shuffle(items)
        shards += [items[4 * number : 4 * number + 4].tolist() for number in range(10)]
    order = np.arange(100)
    state.shuffle(order)
    hands = [
        [item for number in order[5 * client : 5 * client + 5] for item in shards[number]]
        for client in range(20)
    ]
    assert [part.tolist() for part in shares("pathological-released", labels)] == hands


@pytest.mark.parametrize("scenario", ["dirichlet0.5-released", "pathological-released"])
def test_the_partition_seed_has_no_influence_and_the_released_ones_are_kept(
    scenario: str, use_toy: Use
) -> None:
    data = random_images(2000)
    use_toy(data)
    one, other = (build("toy", scenario, 20, seed, SPLIT) for seed in (1, 2))
    assert one.hash == other.hash
    assert "66666" in str(one.provenance)
    for client, part in zip(one.clients, shares(scenario, data.labels), strict=True):
        assert (np.diff(client.ids) > 0).all()
        dealt = reseeded_roles(len(part), SPLIT, 666)  # roles follow the order of the deal
        assert dict(zip(part, dealt, strict=True)) == dict(zip(client.ids, client.roles, strict=True))
    own = scenario.removesuffix("-released")
    assert build("toy", own, 20, 1, SPLIT).hash != build("toy", own, 20, 2, SPLIT).hash


def test_the_sample_s_clients(at_hand: Callable[[str], None]) -> None:
    at_hand("cifar10-sample")
    clients = build("cifar10-sample", "dirichlet0.1-released", 20, 0, SPLIT).clients
    trained = [client.count(TRAIN) for client in clients]
    assert (trained[7], trained[17]) == (31, 28)
    assert sum(max(1, images // 64) for images in trained) == 57
