from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from toy_data import random_images

from bench.data import Images
from bench.errors import RequestError
from bench.federation.build import build
from bench.federation.images import ImageScenario
from bench.federation.prepared import prepare
from bench.federation.scenarios import parse
from bench.federation.splits import reseeded_roles
from bench.federation.types import TEST, TRAIN, VALIDATION


def test_every_image_goes_to_one_client_and_each_client_can_train(use_toy: Callable[..., object]) -> None:
    data = random_images(400)
    use_toy(data)
    for seed in range(5):
        clients = build("toy", "dirichlet0.1", 20, seed, (70, 10, 20)).clients
        assert sorted(np.concatenate([client.ids for client in clients]).tolist()) == list(range(400))
        for client in clients:
            images = len(client.ids)
            tested = -(-images // 5)
            validated = -(-(images - tested) // 8)
            assert (client.count(TEST), client.count(VALIDATION)) == (tested, validated)
            assert client.count(TRAIN) == images - tested - validated >= 1
            assert np.array_equal(client.features, data.pixels[client.ids])
            assert np.array_equal(client.labels, data.labels[client.ids])


def test_every_client_and_every_seed_has_a_split_of_its_own(use_toy: Callable[..., object]) -> None:
    use_toy(random_images(400))
    first, second = (build("toy", "dirichlet1", 1, seed, (70, 10, 20)).clients[0].roles for seed in (1, 2))
    assert not np.array_equal(first, second)
    pairs = (build("toy", "dirichlet10", 2, seed, (70, 10, 20)).clients for seed in range(200))
    one, two = next(pair for pair in pairs if len(pair[0].ids) == len(pair[1].ids))
    assert not np.array_equal(one.roles, two.roles)


def sampled(data: Images, positions: list[int]) -> Images:
    """The images at these positions, as a sample of all."""
    chosen = np.array(positions)
    return Images(data.pixels[chosen], data.labels[chosen], data.classes, data.labels, chosen)


@pytest.mark.parametrize("scenario", ["dirichlet0.5", "pathological", "case-study"])
def test_clients_of_a_sample_are_those_of_the_complete_set(
    scenario: str, use_toy: Callable[..., object]
) -> None:
    complete = random_images(1000)
    positions = list(range(1, 1000, 3))
    use_toy(complete)
    whole = build("toy", scenario, 10, 4, (70, 10, 20))
    use_toy(sampled(complete, positions))
    part = build("toy", scenario, 10, 4, (70, 10, 20))
    for one, other in zip(whole.clients, part.clients, strict=True):
        assert [positions[image] for image in other.ids] == [image for image in one.ids if image % 3 == 1]
        assert np.array_equal(other.features, complete.pixels[1::3][other.ids])
        assert other.count(TEST) == -(-len(other.ids) // 5)  # split after the rest was left out


def test_the_population_decides_the_data_s_checksum(use_toy: Callable[..., object]) -> None:
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


@pytest.mark.parametrize(
    ("population", "positions"),
    [
        ([0, 1, 0, 1], None),
        (None, [0, 1]),
        ([0, 1, 0, 1], [0]),
        ([0, 1, 0, 1], [3, 0]),
        ([0, 1, 0, 1], [0, 4]),
        ([0, 1, 0, 1], [0, 2]),
    ],
)
def test_a_sample_of_something_else_is_refused(
    population: list[int] | None, positions: list[int] | None, use_toy: Callable[..., object]
) -> None:
    arrays = (None if values is None else np.array(values) for values in (population, positions))
    use_toy(Images(np.zeros((2, 1, 2, 2), np.uint8), np.array([0, 1]), 2, *arrays))
    with pytest.raises(RequestError, match="toy") as caught:
        prepare("toy")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("held", [0, 1])
def test_a_client_of_whom_the_sample_holds_too_little_is_refused(
    held: int, use_toy: Callable[..., object], suite_home: Path
) -> None:
    complete = random_images(200)
    use_toy(complete)
    clients = build("toy", "dirichlet1", 4, 0, (70, 10, 20)).clients
    lost = set(clients[2].ids[held:].tolist())
    use_toy(sampled(complete, [image for image in range(200) if image not in lost]))
    before = sorted(suite_home.rglob("*.npz"))
    with pytest.raises(RequestError, match="client 2 of 4") as caught:
        build("toy", "dirichlet1", 4, 0, (70, 10, 20))
    assert "\n" not in str(caught.value)
    assert sorted(suite_home.rglob("*.npz")) == before


SPLIT = (70.0, 10.0, 20.0)

CIFAR10_SIZES = {
    "0.1": "3062 4229 1470 6097 2424 4649 933 443 5794 4254 1728 2968 3961 4104 1532 3353 3023 362 2990 2624",
    "0.2": "3029 2712 5709 2372 2330 2591 290 4482 2002 2661 "
    "5034 1578 3054 3786 2465 3508 1271 5824 3031 2271",
    "0.5": "3337 3402 3559 1892 3363 3068 3186 4262 2007 1887 "
    "4218 1940 3401 1862 4224 3040 3371 3203 3195 1583",
}

BATCHES = {"0.1": 645, "0.2": 647, "0.5": 646}


def labels_of(classes: int) -> NDArray[np.int64]:
    """Balanced labels of 60,000 or, for 200 classes, 110,000 images; counts do not hang on their order."""
    return np.arange(110_000 if classes == 200 else 60_000) % classes


def shares(name: str, labels: NDArray[np.int64], seed: int = 0) -> list[NDArray[np.int64]]:
    scenario = parse(name)
    assert isinstance(scenario, ImageScenario)
    return scenario.shares(labels, 20, seed)


def sizes(parts: list[NDArray[np.int64]]) -> list[int]:
    return [len(part) for part in parts]


def class_numbers(parts: list[NDArray[np.int64]], labels: NDArray[np.int64]) -> list[int]:
    return [len(np.unique(labels[part])) for part in parts]


def training(sizes: list[int]) -> list[int]:
    return [int((reseeded_roles(size, SPLIT, 666) == TRAIN).sum()) for size in sizes]


@pytest.mark.parametrize("concentration", CIFAR10_SIZES)
def test_sizes_of_cifar10_s_clients(concentration: str) -> None:
    labels = labels_of(10)
    parts = shares(f"dirichlet{concentration}-released", labels)
    assert sizes(parts) == [int(size) for size in CIFAR10_SIZES[concentration].split()]
    assert sum(images // 64 for images in training(sizes(parts))) == BATCHES[concentration]
    if concentration == "0.1":
        numbers, trained = class_numbers(parts, labels), training(sizes(parts))
        assert (min(numbers), max(numbers)) == (3, 10)
        assert (min(trained), max(trained)) == (252, 4267)


@pytest.mark.parametrize(
    ("classes", "images", "numbers", "batches", "most"),
    [(100, (1959, 3416), (32, 79), 644, 37), (200, (4602, 5916), (64, 168), 1193, 64)],
)
def test_sizes_of_the_larger_sets(
    classes: int, images: tuple[int, int], numbers: tuple[int, int], batches: int, most: int
) -> None:
    labels = labels_of(classes)
    parts = shares("dirichlet0.1-released", labels)
    held, own = sizes(parts), class_numbers(parts, labels)
    assert (min(held), max(held)) == images
    assert (min(own), max(own)) == numbers
    full = [count // 64 for count in training(held)]
    assert (sum(full), max(full)) == (batches, most)


@pytest.mark.parametrize(
    ("classes", "numbers", "total"),
    [
        (10, [4, 5, 3, 4, 5, 4, 4, 5, 4, 4, 3, 5, 4, 4, 5, 4, 5, 3, 5, 4], 3000),
        (100, (17, 20), 3000),
        (200, (34, 40), 5480),
    ],
)
def test_classes_of_the_pathological_clients(
    classes: int, numbers: list[int] | tuple[int, int], total: int
) -> None:
    labels = labels_of(classes)
    parts = shares("pathological-released", labels)
    assert sizes(parts) == [total] * 20
    own = class_numbers(parts, labels)
    assert numbers in (own, (min(own), max(own)))


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


@pytest.mark.parametrize(
    ("images", "counts"),
    [(3000, (2100, 300, 600)), (5400, (3780, 540, 1080)), (5480, (3836, 548, 1096)), (4, (2, 1, 1))],
)
def test_the_two_cuts_of_one_seed(images: int, counts: tuple[int, int, int]) -> None:
    roles = reseeded_roles(images, SPLIT, 666)
    assert tuple(np.bincount(roles)) == counts
    order = list(range(images))
    for role, count in ((TEST, counts[2]), (VALIDATION, counts[1])):
        shuffled = [order[place] for place in np.random.RandomState(666).permutation(len(order))]
        assert set(roles[shuffled[:count]]) == {role}
        order = shuffled[count:]
    assert (roles[order] == TRAIN).all()


@pytest.mark.parametrize("scenario", ["dirichlet0.5-released", "pathological-released"])
def test_the_partition_seed_has_no_influence_and_the_released_ones_are_kept(
    scenario: str, use_toy: Callable[..., object]
) -> None:
    use_toy(random_images(2000))
    one, other = (build("toy", scenario, 20, seed, SPLIT) for seed in (1, 2))
    assert one.hash == other.hash
    assert "66666" in str(one.provenance)
    for client in one.clients:
        assert (np.diff(client.ids) > 0).all()
    own = scenario.removesuffix("-released")
    assert build("toy", own, 20, 1, SPLIT).hash != build("toy", own, 20, 2, SPLIT).hash


def test_roles_follow_the_order_of_the_deal(use_toy: Callable[..., object]) -> None:
    data = random_images(2000)
    use_toy(data)
    federation = build("toy", "dirichlet0.5-released", 20, 0, SPLIT)
    for client, part in zip(federation.clients, shares("dirichlet0.5-released", data.labels), strict=True):
        dealt = reseeded_roles(len(part), SPLIT, 666)
        assert dict(zip(part, dealt, strict=True)) == dict(zip(client.ids, client.roles, strict=True))


def test_a_data_set_of_which_no_partition_was_released_is_refused(use_toy: Callable[..., object]) -> None:
    use_toy(Images(np.zeros((40, 1, 2, 2), np.uint8), np.arange(40) % 2, 2))
    with pytest.raises(RequestError, match="got 2") as caught:
        build("toy", "pathological-released", 4, 0, SPLIT)
    assert "\n" not in str(caught.value)


def test_the_sample_s_clients(at_hand: Callable[[str], None]) -> None:
    at_hand("cifar10-sample")
    clients = build("cifar10-sample", "dirichlet0.1-released", 20, 0, SPLIT).clients
    trained = [client.count(TRAIN) for client in clients]
    assert (trained[7], trained[17]) == (31, 28)
    assert sum(max(1, images // 64) for images in trained) == 57
