"""FedAvg, FedProx, FedPer, Local and Majority: weights by hand, and degenerate cases."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from toy_federations import copied, furthest, make_spec, permuted, play

from bench.engine.execute import run
from bench.engine.method import Clients, Message, Stack, Update
from bench.engine.run import Run
from bench.federation.types import TRAIN, Federation


def after_one_round(it: Run) -> None:
    it.warm_up()
    it.step(0)


@pytest.mark.parametrize("weights", ["uniform", "samples"])
def test_fedavg_is_the_weighted_mean(federation: Federation, weights: str) -> None:
    it = Run(make_spec("fedavg", federation, hyper={"weights": weights}), federation)
    after_one_round(it)
    sizes = [int((client.roles == TRAIN).sum()) for client in federation.clients]
    assert len(set(sizes)) > 1
    if weights == "uniform":
        sizes = [1] * len(sizes)
    for name, sent in it.method.broadcast(1).model.items():
        mean = torch.zeros_like(sent[0], dtype=torch.float64)
        for index, n in enumerate(sizes):
            mean += n / sum(sizes) * it.own[name][index].double()
        for index in range(len(federation)):
            assert torch.allclose(sent[index].double(), mean, atol=1e-6)


def test_fedavg_starts_everybody_from_one_model(federation: Federation) -> None:
    it = Run(make_spec("fedavg", federation), federation)
    sent = it.method.broadcast(0).model
    assert set(sent) == set(it.model.shapes)
    for value in sent.values():
        assert (value == value[:1]).all()


def test_fedprox_without_its_term_is_fedavg(federation: Federation) -> None:
    plain = play(make_spec("fedavg", federation), federation)
    prox = play(make_spec("fedprox", federation, hyper={"mu": 0.0}), federation)
    assert furthest(plain.own, prox.own) < 1e-6
    for key, counts in plain.correct().items():
        assert np.array_equal(counts, prox.correct()[key])
    strong = play(make_spec("fedprox", federation, hyper={"mu": 1.0}), federation)
    assert furthest(plain.own, strong.own) > 1e-3


def moved(federation: Federation, mu: float) -> float:
    """How far a round of plain gradient descent takes the clients from what they received."""
    settings = {"optimizer": "sgd", "learning_rate": 0.05, "weight_decay": 0.0, "dropout": 0.0}
    spec = make_spec("fedprox", federation, local_epochs=20, hyper={"mu": mu}, client=settings)
    it = Run(spec, federation)
    received = copied(it.method.broadcast(0).model)
    after_one_round(it)
    return math.sqrt(sum(float((it.own[name] - received[name]).square().sum()) for name in received))


def test_a_large_mu_keeps_clients_near_the_received_model(federation: Federation) -> None:
    distances = [moved(federation, mu) for mu in (0.0, 1.0, 10.0)]
    assert distances[0] > distances[1] > distances[2]
    # at the fixed point mu (w - W) = -gradient, and 20 steps of factor (1 - 0.05 * 10) are there
    assert distances[2] < 0.2 * distances[0]


def test_fedprox_is_gradient_descent_on_the_written_objective(federation: Federation) -> None:
    """F_i(w) + mu/2 ||w - W||^2, one client, three steps, gradient by autograd on the whole sum."""
    mu, rate = 0.7, 0.1
    settings = {"optimizer": "sgd", "learning_rate": rate, "weight_decay": 0.0, "dropout": 0.0}
    one = replace(federation, clients=federation.clients[:1])
    spec = make_spec("fedprox", one, local_epochs=3, hyper={"mu": mu}, client=settings)
    it = Run(spec, one)
    received = copied(it.method.broadcast(0).model)
    block = it.clients.blocks[0]
    w = {name: value.clone().requires_grad_() for name, value in received.items()}
    for _ in range(3):
        logits = it.model.forward(w, block.inputs, lambda x, site: x).logits
        train = np.flatnonzero(one.clients[0].roles == TRAIN)
        labels = torch.from_numpy(one.clients[0].labels[train])
        loss = torch.nn.functional.cross_entropy(logits[0, train], labels)
        loss = loss + mu / 2 * sum((w[name] - received[name]).square().sum() for name in w)
        gradients = torch.autograd.grad(loss, list(w.values()))
        with torch.no_grad():
            for value, gradient in zip(w.values(), gradients, strict=True):
                value -= rate * gradient
        block.inputs.begin_step()
    after_one_round(it)
    assert furthest(it.own, {name: value.detach() for name, value in w.items()}) < 1e-5


@pytest.mark.parametrize("method", ["fedavg", "fedper"])
def test_one_client_alone_trains_as_local(federation: Federation, method: str) -> None:
    one = permuted(federation, [2])
    alone = play(make_spec("local", one, initial="common", rounds=4), one)
    federated = play(make_spec(method, one, initial="common", rounds=4), one)
    assert furthest(alone.own, federated.own) < 1e-6
    for key, counts in alone.correct().items():
        assert np.array_equal(counts, federated.correct()[key])


def test_fedper_averages_the_backbone_and_keeps_heads(federation: Federation) -> None:
    it = Run(make_spec("fedper", federation), federation)
    heads = {name: it.own[name].clone() for name in ("head.weight", "head.bias")}
    assert all(furthest({"a": value[:1]}, {"a": value[1:2]}) > 0 for value in heads.values())
    it.warm_up()
    received: list[dict[str, torch.Tensor]] = []
    update = it.method.update

    def seen(clients: Clients, stack: Stack, message: Message) -> Update:
        received.append(copied(stack))
        return update(clients, stack, message)

    it.method.update = seen  # type: ignore[method-assign]
    it.step(0)
    trained = copied(it.own)
    it.step(1)
    for name, value in heads.items():
        assert torch.equal(received[0][name], value)
        assert torch.equal(received[1][name], trained[name])
    for name in ("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias"):
        mean = trained[name].double().mean(dim=0)
        assert torch.allclose(received[1][name].double(), mean.expand_as(received[1][name]), atol=1e-6)


def test_local_is_one_long_training(federation: Federation) -> None:
    """Without dropout, R rounds of E epochs are R x E steps of the same optimiser."""
    calm = {"dropout": 0.0}
    rounds = play(make_spec("local", federation, rounds=4, local_epochs=3, client=calm), federation)
    whole = play(make_spec("local", federation, rounds=1, local_epochs=12, client=calm), federation)
    assert furthest(rounds.own, whole.own) < 1e-5
    first, last = (rounds.correct()[("received", "test")], rounds.correct()[("trained", "test")])
    assert np.array_equal(first[1:], last[:-1])


def test_local_models_start_apart_unless_asked_to_be_common(federation: Federation) -> None:
    own = Run(make_spec("local", federation), federation).own
    assert not torch.equal(own["conv1.weight"][0], own["conv1.weight"][1])
    common = Run(make_spec("local", federation, initial="common"), federation).own
    assert all((value == value[:1]).all() for value in common.values())


def test_majority_counts_by_hand(tiny: Federation) -> None:
    # the first client trains on one item of class 0 and one of class 1: the lowest of the two wins
    result = run(make_spec("majority", tiny, rounds=1), tiny)
    assert result.correct[("trained", "train")].tolist() == [[1, 1]]
    assert result.correct[("trained", "val")].tolist() == [[0, 1]]
    assert result.correct[("trained", "test")].tolist() == [[1, 0]]
    assert np.array_equal(result.correct[("received", "test")], result.correct[("trained", "test")])
