from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from federation_toys import random_images

from bench.data import Images
from bench.errors import RequestError
from bench.federation.build import build
from bench.federation.prepared import prepare
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


def test_a_larger_concentration_gives_more_classes_a_client(use_toy: Callable[..., object]) -> None:
    use_toy(random_images(2000))
    uneven, even = (
        np.mean([len(np.unique(client.labels)) for client in build("toy", name, 10, 1, (70, 10, 20)).clients])
        for name in ("dirichlet0.1", "dirichlet100")
    )
    assert uneven < 7
    assert even == 10


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


@pytest.mark.parametrize("scenario", ["dirichlet0.5", "pathological", "pathological-distinct", "case-study"])
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
