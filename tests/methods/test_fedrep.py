"""FedRep: its two phases against a plain network, and what leaves a client."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from plain_cnn import federation as image_federation
from plain_cnn import of_module, plain_copy, plain_epochs, turned
from plain_cnn import spec as image_spec
from torch import Tensor
from toy_federations import copied, furthest, make_spec, play

from bench.engine.clients import Clients
from bench.engine.message import Message
from bench.engine.method import Stack
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


class Phases(Clients):
    """Clients that remember what their fits changed."""

    def fit(self, stack: Stack, **options: Any) -> Stack:
        before = copied(stack)
        result = super().fit(stack, **options)
        moved = {name for name, value in result.items() if not torch.equal(value, before[name])}
        self.changed = [*getattr(self, "changed", []), moved]
        return result


def test_each_phase_leaves_the_others_weights_alone(images: Federation) -> None:
    it = Run(image_spec("fedrep", 3, rounds=1), images, clients_type=Phases)
    it.warm_up()
    it.step(0)
    assert isinstance(it.clients, Phases)
    head, base = it.clients.changed
    statistics = set(it.model.buffers)
    assert head == set(it.method.task.head) | statistics
    assert set(it.method.task.backbone) | statistics == base


def test_the_head_never_leaves(federation: Federation) -> None:
    it = Run(make_spec("fedrep", federation), federation)
    uploads: list[Message] = []
    aggregate = it.method.aggregate

    def watched(participants: Tensor, received: Stack, upload: Message) -> None:
        uploads.append(upload)
        aggregate(participants, received, upload)

    it.method.aggregate = watched  # type: ignore[method-assign]
    it.warm_up()
    heads = {name: it.own[name].clone() for name in it.method.task.head}
    for round in range(2):
        assert not set(it.method.broadcast().model) & set(heads)
        it.step(round)
        assert set(uploads[round].model) == set(it.method.task.backbone)
        assert not uploads[round].extras
        for name, before in heads.items():
            assert (it.own[name] != before).flatten(1).any(dim=1).all(), "every client trains its own"
            heads[name] = it.own[name].clone()


def test_without_head_epochs_heads_stay_as_they_were_drawn(federation: Federation) -> None:
    it = Run(make_spec("fedrep", federation, hyper={"head_epochs": 0}), federation)
    heads = {name: it.own[name].clone() for name in it.method.task.head}
    ended = play(it.spec, federation)
    assert furthest({name: ended.own[name] for name in heads}, heads) == 0
