from __future__ import annotations

from collections.abc import Callable

import numpy as np
from federation_toys import random_images

from bench.federation.build import build
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
