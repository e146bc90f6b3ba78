"""FedSheafHN and its variants: one server step by autograd, directions, what moves."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor
from toy_federations import begun, copied, make_spec, random_federation

from bench.engine.method import Clients, Message, Stack, Update
from bench.engine.run import Run
from bench.federation.types import Federation
from bench.methods._collaboration import collaboration_graph

CALM: dict[str, Any] = {"sheaf_dropout": 0.0, "hypernetwork_dropout": 0.0, "warm_up_epochs": 3}
BACKBONE = ("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias")


@pytest.fixture(scope="module")
def clients() -> Federation:
    return random_federation((24, 40, 9, 31), seed=7, width=30)


def small(
    method: str, clients: Federation, rounds: int = 8, **hyper: Any
) -> Any:  # a run whose method's own attributes are looked at
    return begun(method, clients, rounds=rounds, client={"hidden": 8}, hyper=hyper)


def generated(it: Run, round: int) -> dict[str, Tensor]:
    it.method.round = round
    with torch.no_grad():
        return copied(it.method.broadcast().model)


def distance(one: Any, other: Any, names: Any) -> float:
    return math.sqrt(sum(float((one[name] - other[name]).square().sum()) for name in names))


@pytest.mark.parametrize("attention", ["qkv", "matrix"])
@pytest.mark.parametrize(("method", "sign"), [("fedsheafhn", 1), ("fedsheafhn_papersign", -1)])
def test_the_update_is_the_gradient_of_the_surrogate(
    clients: Federation, method: str, sign: int, attention: str
) -> None:
    """One backward pass of (Omega * G).sum() / N with G = received - trained (facts 8.1), dropout on."""
    it = small(method, clients, attention=attention, clip=1e9, stalk=2, graph="knn", neighbours=2)
    method_ = it.method
    assert not torch.equal(collaboration_graph(method_.x0, method_.hyper), 1 - torch.eye(4))
    received = generated(it, 0)
    aggregate = method_.aggregate
    expected: list[Tensor] = []
    everything = [*method_.theta, *method_.phi]

    def checked(participants: Tensor, received: Stack, upload: Message) -> None:
        trained = upload.model
        network = method_.network
        features = method_.features(method_.x0, 0, dropout=True)
        surrogate = torch.zeros(())
        for name, layer in zip(network.shapes, network.out.values(), strict=True):
            omega = layer(features).view(received[name].shape)
            surrogate = surrogate + (omega * sign * (received[name] - trained[name])).sum() / len(clients)
        expected.extend(torch.autograd.grad(surrogate, everything))
        aggregate(participants, received, upload)

    before = [parameter.detach().clone() for parameter in everything]
    method_.aggregate = checked
    it.step(0)
    assert len(expected) == len(everything)
    for parameter, gradient in zip(everything, expected, strict=True):
        assert torch.allclose(parameter.grad, gradient, rtol=1e-3, atol=1e-5 * float(gradient.abs().max()))
    assert distance(received, it.own, BACKBONE) > 0
    # Adam's first step is the rate times the sign, with L2 decay in theta's gradient only
    for index, (parameter, old) in enumerate(zip(everything, before, strict=True)):
        decay = 5e-4 if index < len(method_.theta) else 0.0
        slope = parameter.grad + decay * old
        clear = slope.abs() > 1e-5
        step = (old - parameter.detach())[clear]
        assert torch.allclose(step, 1e-3 * slope[clear].sign(), atol=2e-6)


def test_printed_the_gradient_is_the_sum_over_clients(clients: Federation) -> None:
    """One step of two runs that differ in this alone: N = 4 times the gradient for every parameter."""
    gradients = []
    for how in ("mean", "sum"):
        it = small("fedsheafhn_printed", clients, server_gradient=how)
        it.step(0)
        gradients.append([parameter.grad for parameter in (*it.method.theta, *it.method.phi)])
    for mean, total in zip(*gradients, strict=True):
        assert torch.allclose(4 * mean, total, rtol=1e-4, atol=1e-6 * float(total.abs().max()))
    assert any(bool(mean.any()) for mean in gradients[0])


def test_generation_is_without_dropout_unless_asked_for(clients: Federation) -> None:
    for noisy in (False, True):
        it = small("fedsheafhn", clients, generation_dropout=noisy, warm_up_epochs=2)
        one, same, other = generated(it, 0), generated(it, 0), generated(it, 1)
        assert distance(one, same, BACKBONE) == 0
        assert (distance(one, other, BACKBONE) > 0) == noisy


def test_generated_models_start_near_a_glorot_backbone(clients: Federation) -> None:
    bound = (6 / (30 + 8)) ** 0.5
    near = generated(small("fedsheafhn", clients, warm_up_epochs=2), 0)
    start = generated(small("fedsheafhn", clients, warm_up_epochs=2, output_scale=0.0), 0)
    assert float(start["conv1.weight"].abs().max()) <= bound
    assert float(start["conv1.weight"].std()) == pytest.approx(bound / 3**0.5, rel=0.15)
    assert not start["conv1.bias"].any()
    assert (
        0
        < distance(near, start, BACKBONE)
        < 0.5 * distance(start, {n: 0 * v for n, v in start.items()}, BACKBONE)
    )


@pytest.mark.parametrize("method", ["fedsheafhn", "fedsheafhn_released"])
def test_embeddings_are_refreshed_and_used_from_the_next_round_on(clients: Federation, method: str) -> None:
    it = small(method, clients, refresh=2, graph="knn", neighbours=1, warm_up_epochs=3)
    state = it.method
    warm = it.clients.embeddings(it.own)
    assert torch.equal(state.x0, warm)
    used = []
    for round in range(6):
        used.append(state.x0.clone())
        it.step(round)
        if round in (2, 4):
            fresh = it.clients.embeddings(it.own)
            assert torch.equal(state.x0, fresh)
            adjacency = collaboration_graph(state.x0, state.hyper)
            similarity = torch.nn.functional.cosine_similarity(fresh[:, None], fresh[None], dim=2)
            nearest = similarity.fill_diagonal_(-2).argmax(dim=1)
            assert all(adjacency[u, int(v)] == 1 for u, v in enumerate(nearest))
            assert 4 <= adjacency.sum() <= 8
    changed = [not torch.equal(a, b) for a, b in pairwise(used)]
    assert changed == [False, False, True, False, True]


@pytest.mark.parametrize("epochs", [0, 4])
def test_warm_up_trains_the_whole_model_and_reports_it(clients: Federation, epochs: int) -> None:
    """Without an epoch that is the initial one."""
    it = small("fedsheafhn", clients, warm_up_epochs=epochs)
    local = Run(make_spec("local", clients, client={"hidden": 8}), clients)
    local.clients.begin_round(-1)
    alone = local.clients.fit(local.own, epochs=epochs) if epochs else local.own
    for name, value in it.own.items():
        assert torch.equal(value, alone[name])
        assert torch.equal(value, local.own[name]) == (epochs == 0)
    assert torch.allclose(it.method.x0, local.clients.embeddings(alone), atol=1e-6)


# the released code


def test_released_nothing_reaches_the_hypernetwork(clients: Federation) -> None:
    """Facts 3.7.3, T1 and T3: phi never changes, theta only shrinks by its weight decay."""
    it = small("fedsheafhn_released", clients, refresh=2)
    state = it.method
    phi = [parameter.detach().clone() for parameter in state.phi]
    theta = [parameter.detach().clone() for parameter in state.theta]
    for round in range(6):
        it.step(round)
    assert all(torch.equal(a, b) for a, b in zip(state.phi, phi, strict=True))
    # Adam on a pure L2 gradient: every weight goes towards zero by about the rate a step
    for now, before in zip(state.theta, theta, strict=True):
        large = before.abs() > 0.02
        shrunk = (before.abs() - now.abs())[large]
        assert torch.allclose(shrunk, torch.full_like(shrunk, 6 * 1e-3), rtol=0.05)
        assert (now.sign() == before.sign())[large].all()


def test_released_only_generated_biases_act_and_stay_as_they_came(clients: Federation) -> None:
    it = small("fedsheafhn_released", clients)
    seen: list[tuple[dict[str, Tensor], dict[str, Tensor]]] = []
    update = it.method.update

    def watched(inside: Clients, received: Stack, message: Message) -> Update:
        came = copied(received)
        result = update(inside, received, message)
        seen.append((came, copied(result.keep)))
        return result

    it.method.update = watched
    last = copied(it.own)
    for round in range(3):
        sent = generated(it, round)
        it.step(round)
        received, trained = seen[-1]
        for name in ("conv1.bias", "conv2.bias"):
            assert torch.equal(received[name], sent[name])
            assert torch.equal(trained[name], sent[name])
        for name in ("conv1.weight", "conv2.weight", "head.weight", "head.bias"):
            assert torch.equal(received[name], last[name])
            assert not torch.equal(trained[name], received[name])
        last = trained
    # dropout noise in generation: the biases of two rounds differ though no network has learnt
    assert not torch.allclose(seen[0][0]["conv1.bias"], seen[1][0]["conv1.bias"], atol=1e-3)


def test_released_settings(clients: Federation) -> None:
    it = small("fedsheafhn_released", clients)
    assert torch.equal(collaboration_graph(it.method.x0, it.method.hyper), 1 - torch.eye(4))
    assert torch.equal(it.method.attention.matrix, torch.eye(4))
    assert len(it.method.sheaf.learners) == 1
    # torch's default for the output layers of width 128: within 1 / sqrt(128), biases included
    for layer in it.method.network.out.values():
        assert 0.5 * 128**-0.5 < float(layer.bias.detach().abs().max()) <= 128**-0.5
