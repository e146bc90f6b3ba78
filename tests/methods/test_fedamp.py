"""FedAMP and HeurFedAMP: attention by hand, the local objective by autograd, and what is sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from toy_federations import copied, furthest, make_spec, permuted, play

from bench.engine.run import Run
from bench.federation.types import TRAIN, Federation

PLAIN = {"optimizer": "sgd", "learning_rate": 0.1, "weight_decay": 0.0, "dropout": 0.0}
N = 5


def whole(stack: dict[str, torch.Tensor], names: list[str]) -> NDArray[np.float64]:
    return np.concatenate(
        [stack[name].double().numpy().reshape(len(stack[name]), -1) for name in names], axis=1
    )


def by_distance(models: NDArray[np.float64], alpha: float, sigma: float) -> NDArray[np.float64]:
    xi = np.zeros((N, N))
    for i in range(N):
        for j in range(N):
            if i != j:
                xi[i, j] = alpha / sigma * np.exp(-np.square(models[i] - models[j]).sum() / sigma)
        xi[i, i] = 1 - xi[i].sum()
    return xi


def by_cosine(models: NDArray[np.float64], omega: float, sigma: float) -> NDArray[np.float64]:
    xi = np.zeros((N, N))
    unit = models / np.linalg.norm(models, axis=1, keepdims=True)
    for i in range(N):
        others = [j for j in range(N) if j != i]
        scores = np.exp(sigma * (unit[others] @ unit[i]))
        xi[i, others] = (1 - omega) * scores / scores.sum()
        xi[i, i] = omega
    return xi


@pytest.mark.parametrize("method", ["fedamp", "h_fedamp"])
def test_attention_and_mixtures_in_every_round(federation: Federation, method: str) -> None:
    settings: dict[str, Any] = (
        {"alpha": 0.2, "sigma": 2.0} if method == "fedamp" else {"self_weight": 0.3, "sigma": 5.0}
    )
    it = Run(make_spec(method, federation, client=PLAIN | {"learning_rate": 1.0}, hyper=settings), federation)
    names = list(it.model.shapes)
    it.warm_up()
    expected = np.eye(N)
    for round in range(3):
        it.method.round = round
        sent = it.method.broadcast()
        assert not sent.model, "clients go on from their own models"
        assert set(sent.extras) == (set(names) if round else set())
        if round:
            models = whole(copied(it.own), names)
            expected = by_distance(models, 0.2, 2.0) if method == "fedamp" else by_cosine(models, 0.3, 5.0)
            assert expected.std() > 0.05
            np.testing.assert_allclose(whole(copied(sent.extras), names), expected @ models, atol=1e-5)
        it.step(round)
        kept = {name: torch.from_numpy(value) for name, value in it.artefacts().items()}
        np.testing.assert_allclose(kept["collaboration"].numpy(), expected, atol=1e-5)
    assert kept["collaboration_by_round"].shape == (3, N, N)
    assert torch.allclose(kept["collaboration_by_round"].sum(dim=2), torch.ones(3, N), atol=1e-6)
    off = ~torch.eye(N, dtype=torch.bool)
    assert kept["collaboration_by_round"][2][off].std() > 1e-3, "like models weigh more"


@pytest.mark.parametrize("method", ["fedamp", "h_fedamp"])
def test_local_objective_by_autograd(federation: Federation, method: str) -> None:
    """F_i(w) + lambda / (2 alpha_K) ||w - u_i||^2 from the client's own w, plain gradient descent."""
    strength, alpha, epochs = 1.5, 0.5, 3
    few = permuted(federation, [1, 2, 4])
    hyper = {"strength": strength, "alpha": alpha}
    it = Run(make_spec(method, few, local_epochs=epochs, client=PLAIN, hyper=hyper), few)
    names = list(it.model.shapes)
    it.warm_up()
    for round in range(2):
        it.method.round = round
        mixtures = copied(it.method.broadcast().extras)
        w = {name: it.own[name].clone().requires_grad_() for name in names}
        block = it.clients.blocks[0]
        for _ in range(epochs):
            block.inputs.begin_step()
            logits = it.model.forward(w, block.inputs, lambda x, site: x).logits
            loss = torch.zeros(())
            for index, client in enumerate(few.clients):
                train = np.flatnonzero(client.roles == TRAIN)
                labels = torch.from_numpy(client.labels[train])
                loss = loss + torch.nn.functional.cross_entropy(logits[index, train], labels)
            near = [(w[name] - mixture).square().sum() for name, mixture in mixtures.items()]
            assert len(near) == (len(names) if round else 0)
            penalty = torch.stack(near).sum() if near else torch.zeros(())
            gradients = torch.autograd.grad(loss + strength / (2 * alpha) * penalty, list(w.values()))
            with torch.no_grad():
                for value, gradient in zip(w.values(), gradients, strict=True):
                    value -= 0.1 * gradient
        it.step(round)
        assert furthest(copied(it.own), {name: value.detach() for name, value in w.items()}) < 1e-5


def test_as_released_mixtures_are_sent_to_no_effect(federation: Federation) -> None:
    released, drawn = (
        play(make_spec(method, federation, hyper={"alpha": 1.0, "sigma": 10.0}), federation)
        for method in ("fedamp_released", "fedamp")
    )
    assert drawn.traffic.bytes_down == released.traffic.bytes_down > 0
    assert furthest(drawn.own, released.own) > 1e-3


def test_h_fedamp_of_no_preference_mixes_uniformly(federation: Federation) -> None:
    it = play(make_spec("h_fedamp", federation, hyper={"sigma": 0.0, "self_weight": 1 / N}), federation)
    last = it.method.records["collaboration"]
    assert torch.allclose(last, torch.full((N, N), 1 / N), atol=1e-6)
    sent = it.method.broadcast().extras
    for name, value in sent.items():
        assert torch.allclose(value, it.own[name].mean(dim=0).expand_as(value), atol=1e-6)


def test_a_strong_penalty_ends_near_the_mixture(federation: Federation) -> None:
    """At the fixed point w - u = -gradient / lambda, and a step of rate .1 keeps 1 - .1 lambda of the way."""
    apart = {}
    for strength in (0.1, 5.0):
        hyper = {"strength": strength, "sigma": 0.0}
        spec = make_spec("h_fedamp", federation, client=PLAIN, hyper=hyper, rounds=2, local_epochs=20)
        it = Run(spec, federation)
        it.warm_up()
        it.step(0)
        it.method.round = 1
        mixtures = copied(it.method.broadcast().extras)
        it.step(1)
        apart[strength] = sum(
            float((it.own[name] - value).square().sum()) for name, value in mixtures.items()
        )
    assert apart[5.0] < 0.2 * apart[0.1]
