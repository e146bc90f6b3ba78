"""FedAGHN: the round by hand, its gradients by autograd, and what its numbers must do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from toy_federations import begun, copied, flat, make_spec, play

from bench.engine.method import Message
from bench.engine.run import Run
from bench.federation.types import Federation
from bench.methods.fedaghn import FedAGHN, attention, gradients

CLIENT = {"dropout": 0.0, "learning_rate": 0.02}
N = 5
ABLATION = {
    "w/o p and q": {"self_in_softmax": True, "q": 1.0, "trained": "none"},
    "frozen p and q": {"trained": "none"},
    "w/o p": {"self_in_softmax": True},
    "w/o q": {"q": 1.0, "trained": "p"},
    "same p and q": {"layerwise_pq": False},
    "full": {},
}


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def some_cosines() -> Tensor:
    directions = drawn(1, 3, N, 7)
    directions = directions / directions.norm(dim=2, keepdim=True)
    return directions @ directions.transpose(1, 2)


def aghn(it: Run) -> FedAGHN:
    assert isinstance(it.method, FedAGHN)
    return it.method


# The two functions


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("inside", [False, True])
def test_closed_forms_are_the_gradients(inside: bool, layers: int) -> None:
    """Of <update_i, bar_i> with respect to p and q, by autograd through the mixture of whole vectors."""
    cosine, theta, update = some_cosines(), drawn(4, 3, N, 11), drawn(5, 3, N, 11)
    p = (torch.zeros(layers, N) if inside else drawn(6, layers, N).abs()).double().requires_grad_()
    q = drawn(7, layers, N).requires_grad_()
    s, alpha = attention(cosine, p, q, inside)
    by_autograd = torch.autograd.grad((alpha @ theta * update).sum(), [p, q])
    with torch.no_grad():
        closed = gradients(cosine, s, alpha, p, update @ theta.transpose(1, 2))
    for gradient, value in zip(by_autograd, closed, strict=True):
        whole = value if layers == 3 else value.sum(dim=0, keepdim=True)
        if not (inside and gradient is by_autograd[0]):  # there p is no number of the graph
            assert float((gradient - whole).abs().max()) < 1e-10


# Rounds


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    exponentials = np.exp(scores - scores.max())
    return np.asarray(exponentials / exponentials.sum())


@pytest.mark.parametrize("hyper", ABLATION.values(), ids=ABLATION)
@pytest.mark.parametrize(("method", "turn"), [("fedaghn", -1), ("fedaghn_descent", 1)])
def test_three_rounds_follow_the_algorithm(
    federation: Federation, method: str, turn: int, hyper: dict[str, Any]
) -> None:
    """Graph, mixtures, p and q in every layer and round, client by client, from the clients' models."""
    p0, eta = 0.2, 0.3
    settings = {"p": p0, "q": 3.0, "learning_rate": eta, **hyper}
    it = Run(make_spec(method, federation, client=CLIENT, hyper=settings), federation)
    task, inside = it.method.task, settings.get("self_in_softmax", False)
    layers = list(task.layers)
    p = {layer: np.full(N, 0.0 if inside else p0) for layer in layers}
    q = {layer: np.full(N, settings["q"]) for layer in layers}
    initial = copied(task.common())
    theta = {layer: flat(initial, task.layers[layer]) for layer in layers}
    delta = dict(theta)
    it.warm_up()
    history = []
    for round in range(3):
        alphas, bars, steps = {}, {}, {}
        for layer in layers:
            alpha, by_p, by_q = np.zeros((N, N)), np.zeros((N, N)), np.zeros((N, N))
            for i in range(N):
                lengths = np.linalg.norm(delta[layer], axis=1)
                cosine = delta[layer] @ delta[layer][i] / lengths / lengths[i]
                seen = [j for j in range(N) if inside or j != i]
                s = np.zeros(N)
                s[seen] = softmax(q[layer][i] * cosine[seen])
                alpha[i] = s / (1 + p[layer][i])
                alpha[i, i] += p[layer][i] / (1 + p[layer][i])
                by_p[i] = (np.eye(N)[i] - alpha[i]) / (1 + p[layer][i])
                by_q[i] = s * (cosine - s @ cosine) / (1 + p[layer][i])
            alphas[layer], bars[layer], steps[layer] = alpha, alpha @ theta[layer], (by_p, by_q)
        it.method.round = round
        sent = copied(it.method.broadcast().model)
        for layer in layers:
            np.testing.assert_allclose(flat(sent, task.layers[layer]), bars[layer], atol=1e-5)
        history.append(np.stack([alphas[layer] for layer in layers]))
        it.step(round)
        trained = {layer: flat(it.own, task.layers[layer]) for layer in layers}
        delta = {layer: trained[layer] - flat(sent, task.layers[layer]) for layer in layers}
        changes = {
            layer: [turn * eta * ((by @ theta[layer]) * delta[layer]).sum(axis=1) for by in steps[layer]]
            for layer in layers
        }
        if not settings.get("layerwise_pq", True):
            together = [sum(changes[layer][k] for layer in layers) for k in (0, 1)]
            changes = dict.fromkeys(layers, together)
        for layer in layers:
            if not inside and settings.get("trained", "both") in ("both", "p"):
                p[layer] = np.maximum(p[layer] + changes[layer][0], 0)
            if settings.get("trained", "both") in ("both", "q"):
                q[layer] = q[layer] + changes[layer][1]
        theta = trained
    kept = {name: torch.from_numpy(value) for name, value in it.artefacts().items()}
    np.testing.assert_allclose(kept["collaboration_by_round"].numpy(), np.stack(history), atol=1e-4)
    np.testing.assert_allclose(kept["collaboration"].numpy(), history[-1], atol=1e-4)
    for name, expected in (("p", p), ("q", q)):
        state = getattr(it.method, name).expand(len(layers), N).numpy()
        np.testing.assert_allclose(state, np.stack([expected[layer] for layer in layers]), atol=1e-4)
    moved = any(
        not np.allclose(expected[layer], expected[layer][0], atol=1e-3)
        for expected in (p, q)
        for layer in layers
    )
    assert moved == (settings.get("trained") != "none")


def test_p_is_never_negative(federation: Federation) -> None:
    hyper = {"learning_rate": 100.0, "trained": "p"}
    it = play(make_spec("fedaghn", federation, client=CLIENT, hyper=hyper, rounds=4), federation)
    p = torch.from_numpy(it.artefacts()["p_by_round"])
    assert p.min() == 0
    assert (torch.from_numpy(it.artefacts()["collaboration_by_round"]) >= 0).all()


def test_a_layer_that_nobody_changed_leaves_all_numbers_finite(federation: Federation) -> None:
    it = Run(make_spec("fedaghn", federation), federation)
    received = copied(it.method.broadcast().model)
    trained = {
        name: value + (0 if name.startswith("head") else drawn(1, *value.shape).float())
        for name, value in received.items()
    }
    trained["conv1.weight"][2] = received["conv1.weight"][2]
    trained["conv1.bias"][2] = received["conv1.bias"][2]
    it.method.aggregate(torch.arange(N), received, Message(trained))
    sent = it.method.broadcast().model
    assert all(torch.isfinite(value).all() for value in sent.values())
    alpha = it.method.records["collaboration"]
    uniform = (1 - torch.eye(N)) / 1.03 / (N - 1) + torch.eye(N) * 0.03 / 1.03
    assert torch.allclose(alpha[list(it.method.task.layers).index("head")], uniform, atol=1e-5)
    assert torch.allclose(alpha[0, 2], uniform[2], atol=1e-5)
    assert torch.isfinite(aghn(it).p).all()
    assert torch.isfinite(aghn(it).q).all()


def test_the_absent_keep_their_numbers(federation: Federation) -> None:
    hyper = {"learning_rate": 0.5}
    it = begun("fedaghn", federation, participation=0.4, hyper=hyper, rounds=4)
    for round in range(4):
        before = aghn(it).p, aghn(it).q, copied(aghn(it).models), copied(aghn(it).updates)
        it.step(round)
        absent = [i for i in range(N) if i not in it.participants(round).tolist()]
        after = aghn(it).p, aghn(it).q, aghn(it).models, aghn(it).updates
        assert torch.equal(before[0][:, absent], after[0][:, absent])
        assert torch.equal(before[1][:, absent], after[1][:, absent])
        for then, now in zip(before[2:], after[2:], strict=True):
            assert all(torch.equal(value[absent], now[name][absent]) for name, value in then.items())
    assert not torch.equal(before[1], after[1])
