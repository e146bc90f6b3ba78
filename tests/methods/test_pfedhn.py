"""pFedHN: its steps by hand and, on images, a residual and summed steps."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from plain_cnn import federation as image_federation
from plain_cnn import spec as image_spec
from torch import Tensor
from toy_federations import begun, copied, furthest, make_spec, permuted, random_federation

from bench.engine.method import Message, Stack
from bench.engine.run import Run
from bench.federation.types import Federation
from bench.spec import RunSpec

RESIDUAL = {
    "output": "residual",
    "combine": "sum",
    "learning_rate": 0.005,
    "momentum": 0.0,
    "weight_decay": 0.0,
}
"""The image study's settings."""


@pytest.fixture(scope="module")
def images() -> Federation:
    return image_federation(12, 40, 41)


def spec(**hyper: Any) -> RunSpec:
    return image_spec("pfedhn", 3, rounds=2, epochs=2).model_copy(update={"hyper": hyper})


@pytest.fixture(scope="module")
def graphs() -> Federation:
    return random_federation((24, 40, 9, 31), seed=7, width=30)


def small(
    method: str, clients: Federation, **hyper: Any
) -> Any:  # a run whose method's own attributes are looked at
    return begun(method, clients, rounds=8, client={"hidden": 8}, hyper=hyper)


def generated(it: Run, round: int = 0) -> dict[str, Tensor]:
    with torch.no_grad():
        return copied(it.method.broadcast().model)


def distance(one: Stack, other: Stack, names: Stack) -> float:
    return math.sqrt(sum(float((one[name] - other[name]).square().sum()) for name in names))


def test_a_residual_starts_near_the_common_model(images: Federation) -> None:
    residual = Run(spec(**RESIDUAL), images)
    common = residual.method.task.common()
    own = generated(residual)
    whole = generated(Run(spec(), images))
    for name in ("bn1.weight", "bn2.weight"):
        assert (own[name] - 1).abs().max() < 0.2
        assert whole[name].abs().max() < 0.5  # where everything is generated the normalisation is far from 1
    assert distance(own, common, own) < 0.3 * distance(whole, common, own)
    assert furthest({"": own["fc1.weight"][:1]}, {"": own["fc1.weight"][1:2]}) > 1e-4


def test_a_sum_is_so_many_means(images: Federation) -> None:
    """Without clipping, decay and momentum a step of the sum at a third of the rate is that of the mean."""
    calm = {"momentum": 0.0, "weight_decay": 0.0, "clip": 1e9}
    ends = []
    for combine, rate in (("mean", 0.03), ("sum", 0.01)):
        state: Any = Run(spec(**calm, combine=combine, learning_rate=rate), images).method
        with torch.no_grad():
            received = state.broadcast().model
        moved = {
            name: value + torch.linspace(-1, 1, value.numel()).view_as(value)
            for name, value in received.items()
        }
        start = [parameter.detach().clone() for parameter in state.parameters]
        state.aggregate(torch.arange(3), received, Message(moved))
        ends.append([one.detach() - other for one, other in zip(state.parameters, start, strict=True)])
    assert max(float(step.abs().max()) for step in ends[0]) > 1e-3
    for mean, total in zip(*ends, strict=True):
        torch.testing.assert_close(total, mean, rtol=1e-3, atol=1e-6)


def test_sizes(graphs: Federation) -> None:
    """Embeddings of int(1 + N / 4), four layers of 100 before the output, ReLU between them alone."""
    for count, width in ((4, 2), (10, 3), (30, 8), (50, 13)):
        many = permuted(graphs, [index % 4 for index in range(count)])
        state: Any = Run(make_spec("pfedhn", many, client={"hidden": 2}), many).method
        assert state.embeddings.shape == (count, width)
        sizes = [tuple(layer.weight.shape) for layer in state.network.body]
        assert sizes == [(100, width), (100, 100), (100, 100), (100, 100)]
        read = state.network.features(state.embeddings, None)
        hidden = state.embeddings
        for layer in state.network.body[:3]:
            hidden = torch.relu(layer(hidden))
        assert torch.allclose(read, state.network.body[3](hidden))
        assert (read < 0).any(), "the output layers read plain values"


def step_by_hand(it: Run, round: int, momentum: list[Tensor]) -> list[Tensor]:
    """A round of the run; returns where SGD on the surrogate ends, and moves ``momentum`` in place."""
    state: Any = it.method
    parameters = list(state.parameters)
    before = [parameter.detach().clone() for parameter in parameters]
    theta = generated(it, round)
    features = state.network.features(state.embeddings, None)
    outs = {
        name: layer(features).view(theta[name].shape)
        for name, layer in zip(theta, state.network.out.values(), strict=True)
    }
    # the run's own step trains theta~; its gradient is taken with the weights from before it
    aggregate = type(state).aggregate

    def keep(participants: Tensor, received: Stack, upload: Message) -> None:
        after = upload.model
        surrogate = sum((outs[name] * (theta[name] - after[name])).sum() / 4 for name in theta)
        gradients = torch.autograd.grad(surrogate, parameters)
        for index, gradient in enumerate(gradients):
            momentum[index] = 0.9 * momentum[index] + gradient + 1e-3 * before[index]
        aggregate(state, participants, received, upload)

    state.aggregate = keep
    it.step(round)
    return [old - 0.01 * push for old, push in zip(before, momentum, strict=True)]


def test_a_step_is_sgd_on_the_surrogate(graphs: Federation) -> None:
    """(theta * (theta - theta~)).sum() / N, weight decay, momentum, two rounds by hand."""
    it = small("pfedhn", graphs, clip=1e9)
    parameters = list(it.method.parameters)
    momentum = [torch.zeros_like(parameter) for parameter in parameters]
    for round in range(2):
        expected = step_by_hand(it, round, momentum)
        for parameter, end in zip(parameters, expected, strict=True):
            assert torch.allclose(parameter, end, atol=1e-5)


def test_clipping_bounds_the_step(graphs: Federation) -> None:
    """SGD without decay and momentum moves by at most rate * clip."""
    it = small("pfedhn", graphs, clip=0.01, momentum=0.0, weight_decay=0.0, learning_rate=1.0)
    parameters = list(it.method.parameters)
    before = [parameter.detach().clone() for parameter in parameters]
    it.step(0)
    moved = sum(float((a - b).square().sum()) for a, b in zip(parameters, before, strict=True)) ** 0.5
    assert moved == pytest.approx(0.01, rel=1e-2)
