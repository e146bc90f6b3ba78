"""FedRep: its two phases against a plain network, and what leaves a client."""

from __future__ import annotations

import pytest
import torch
from plain_cnn import federation as image_federation
from plain_cnn import of_module, plain_copy, plain_epochs, turned
from plain_cnn import spec as image_spec

from bench.engine.run import Run
from bench.federation.types import Federation

BASE = ("conv1", "bn1", "conv2", "bn2", "fc1")


@pytest.fixture(scope="module")
def images() -> Federation:
    return image_federation(12, 40, 41)


def test_head_then_base_equal_plain_networks(images: Federation) -> None:
    """Statistics move in both phases; heads stay, bases are averaged by training images."""
    spec = image_spec("fedrep", 3, rounds=2, epochs=2).model_copy(update={"hyper": {"head_epochs": 3}})
    it = Run(spec, images)
    networks = [plain_copy(it.own, number) for number in range(3)]
    shares = it.method.task.train_sizes / it.method.task.train_sizes.sum()
    it.warm_up()
    for round in range(2):
        for number, client in enumerate(images.clients):
            plain_epochs(networks[number], client, (number, round, 0), 3, ["fc"])
            plain_epochs(networks[number], client, (number, round, 1), 2, BASE)
        it.step(round)
        for number, network in enumerate(networks):
            for name in it.model.shapes:
                expected = turned(name, of_module(network, name))
                torch.testing.assert_close(it.own[name][number], expected, rtol=1e-4, atol=1e-5)
        for layer in BASE:
            for kind in ("weight", "bias"):
                values = [of_module(network, f"{layer}.{kind}").data for network in networks]
                mean = torch.einsum("i,i...->...", shares, torch.stack(values))
                for value in values:
                    value.copy_(mean)
