"""Ditto: the personal model against a plain network, its degenerate cases, and what stays apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from plain_cnn import PlainObjective, of_module, plain_copy, plain_cross_entropy, plain_epochs, turned
from plain_cnn import federation as image_federation
from plain_cnn import spec as image_spec
from torch import Tensor, nn
from toy_federations import copied, furthest

from bench.engine.execute import run
from bench.engine.run import Run
from bench.federation.types import Federation

MU = 0.7


@pytest.fixture(scope="module")
def images() -> Federation:
    return image_federation(12, 40, 41)


def near(sent: dict[str, Tensor], number: int) -> PlainObjective:
    """What a client's personal model minimises: its loss, and the distance from what it was sent."""

    def objective(network: nn.Sequential, images: Tensor, labels: Tensor) -> Tensor:
        squares = [
            (of_module(network, name) - turned(name, value[number])).square().sum()
            for name, value in sent.items()
        ]
        return plain_cross_entropy(network, images, labels) + MU / 2 * torch.stack(squares).sum()

    return objective


def test_both_models_equal_plain_networks(images: Federation) -> None:
    """Two rounds: v_i near the received w, then w, each with its own statistics and by its own batches."""
    hyper = {"mu": MU, "personal_epochs": 2}
    spec = image_spec("ditto", 3, rounds=2, epochs=1).model_copy(update={"hyper": hyper})
    it = Run(spec, images)
    start = copied(it.own)
    personal = [plain_copy({name: start[name] for name in it.model.shapes}, number) for number in range(3)]
    shared = [plain_copy({name: start[name] for name in it.model.shapes}, number) for number in range(3)]
    sizes = it.method.task.train_sizes
    assert len(set(sizes.tolist())) > 1
    it.warm_up()
    for round in range(2):
        sent = copied(it.method.broadcast().model)
        for number, client in enumerate(images.clients):
            for name, value in sent.items():
                of_module(shared[number], name).data.copy_(turned(name, value[number]))
            plain_epochs(personal[number], client, (number, round, 0), 2, objective=near(sent, number))
            plain_epochs(shared[number], client, (number, round, 1), 1)
        it.step(round)
        for number, network in enumerate(personal):
            for name in it.model.shapes:
                expected = turned(name, of_module(network, name))
                torch.testing.assert_close(it.own[name][number], expected, rtol=1e-4, atol=1e-5)
        for name in it.model.buffers:
            expected = torch.stack([of_module(network, name) for network in shared])
            torch.testing.assert_close(it.own[f"global.{name}"], expected, rtol=1e-4, atol=1e-5)
            assert furthest({name: it.own[name]}, {name: expected}) > 1e-4
        for name, value in it.method.broadcast().model.items():
            models = torch.stack([turned(name, of_module(network, name)).detach() for network in shared])
            mean = torch.einsum("i,i...->...", sizes / sizes.sum(), models)
            torch.testing.assert_close(value, mean.expand_as(value), rtol=1e-4, atol=1e-5)


def test_received_is_the_clients_own_last_model(images: Federation) -> None:
    result = run(image_spec("ditto", 3, rounds=3), images)
    for split in ("train", "val", "test"):
        before, after = result.correct["received", split], result.correct["trained", split]
        assert np.array_equal(before[1:], after[:-1])
