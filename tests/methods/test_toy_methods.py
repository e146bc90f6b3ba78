"""The methods that show the seam: they keep the contract, and do what their docstrings say."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from plain_cnn import BATCH, SETTINGS, normalised, of_module, plain_copy, turned
from plain_cnn import federation as image_federation
from plain_cnn import spec as image_spec
from plain_gcn import dense_gcn
from torch import Tensor, nn
from torch.nn import functional
from toy_federations import copied, furthest, make_spec, play
from toy_methods import PERSONAL, LayerMixing, Prototypes, SecondModel

from bench import streams
from bench.contract.rules import RULES, Rule
from bench.contract.subject import Subject
from bench.data import Family
from bench.engine.attack import Attacker
from bench.engine.execute import run
from bench.engine.message import Message
from bench.engine.method import Stack
from bench.engine.methods import METHODS
from bench.engine.run import Run
from bench.engine.stacks import part
from bench.federation.types import TRAIN, Client, Federation
from bench.spec import Attack

TOYS = (SecondModel, LayerMixing, Prototypes)
CALM = {"dropout": 0.0, "learning_rate": 0.02, "weight_decay": 5e-3}
PLAIN = {"dropout": 0.0, "optimizer": "sgd", "learning_rate": 0.1, "weight_decay": 0.0}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in TOYS:
        monkeypatch.setitem(METHODS.all(), kind.name, kind)


subject = cache(Subject)  # rules share a method's short run


@pytest.mark.parametrize("family", ["graph", "images"])
@pytest.mark.parametrize("method", [kind.name for kind in TOYS])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_contract(rule: Rule, method: str, family: Family) -> None:
    rule(subject(method, family))


def training_of(client: Client) -> tuple[Tensor, Tensor]:
    """Positions and labels of a client's training items."""
    chosen = np.flatnonzero(client.roles == TRAIN)
    return torch.from_numpy(chosen), torch.from_numpy(client.labels[chosen])


def leaves(stack: Stack, client: int) -> dict[str, Tensor]:
    return {name: value[client].clone().requires_grad_() for name, value in stack.items()}


# A second model


def test_two_models_of_a_client_equal_plain_loops(federation: Federation) -> None:
    """Two rounds of both models, each with its own torch.optim.Adam per client, kept over rounds."""
    pull, rate, epochs = 0.7, 0.05, 3
    hyper = {"pull": pull, "personal_rate": rate}
    spec = make_spec("toy_second_model", federation, local_epochs=epochs, client=CALM, hyper=hyper)
    it = Run(spec, federation, block_size=2)
    it.warm_up()
    average = {name: value[0].clone() for name, value in it.method.broadcast(0).model.items()}
    shared = [leaves(it.own, index) for index in range(len(federation))]
    shared = [{name: w[name] for name in average} for w in shared]
    personal = [leaves(part(PERSONAL, it.own), index) for index in range(len(federation))]
    adam = [torch.optim.Adam(list(w.values()), lr=0.02, weight_decay=5e-3) for w in shared]
    own_adam = [torch.optim.Adam(list(v.values()), lr=rate, weight_decay=5e-3) for v in personal]
    for round in range(2):
        for index, client in enumerate(federation.clients):
            forward, (chosen, labels) = dense_gcn(client), training_of(client)
            w, v = shared[index], personal[index]
            with torch.no_grad():
                for name, value in average.items():
                    w[name].copy_(value)
            for _ in range(epochs):
                adam[index].zero_grad()
                functional.cross_entropy(forward(w)[0][chosen], labels).backward()
                adam[index].step()
                own_adam[index].zero_grad()
                near = sum((v[name] - average[name]).square().sum() for name in average)
                (functional.cross_entropy(forward(v)[0][chosen], labels) + pull / 2 * near).backward()
                own_adam[index].step()
        average = {name: torch.stack([w[name].detach() for w in shared]).mean(dim=0) for name in average}
        it.step(round)
        expected = {name: torch.stack([w[name].detach() for w in shared]) for name in average}
        kept = {name: torch.stack([v[name].detach() for v in personal]) for name in average}
        assert furthest({name: it.own[name] for name in expected}, expected) < 1e-5
        assert furthest(part(PERSONAL, it.own), kept) < 1e-5
        for index, (client, v) in enumerate(zip(federation.clients, personal, strict=True)):
            right = (dense_gcn(client)(v)[0].argmax(dim=1).numpy() == client.labels) & (client.roles == TRAIN)
            assert it.correct()["trained", "train"][round, index] == right.sum()
    apart = furthest({name: it.own[name] for name in average}, part(PERSONAL, it.own))
    assert apart > 1e-2, "the two models are two"


def plain_epochs(
    network: nn.Sequential, client: Client, key: tuple[int, int, int], rate: float, pull: Callable[[], Any]
) -> None:
    """Two epochs of SGD on shuffled whole batches; ``key`` is number, round and fit of the round."""
    optimiser = torch.optim.SGD(network.parameters(), lr=rate)
    training = np.flatnonzero(client.roles == TRAIN)
    network.train()
    for epoch in range(2):
        order = streams.generator(5, "order", *key, epoch).permutation(training)
        for first in range(0, max(len(order) - BATCH, 0) + 1, BATCH):
            batch = order[first : first + BATCH]
            optimiser.zero_grad()
            entropy = functional.cross_entropy(
                network(normalised(client.features[batch])), torch.from_numpy(client.labels[batch])
            )
            (entropy + pull()).backward()
            optimiser.step()


@pytest.mark.parametrize("block_size", [1, 3])
def test_two_models_with_running_statistics_equal_plain_networks(block_size: int) -> None:
    """Mini-batches and batch normalisation: every model has statistics of its own, which are not sent."""
    toy = image_federation(12, 40, 41)
    spec = image_spec("toy_second_model", 3, rounds=2, epochs=2)
    spec = spec.model_copy(update={"hyper": {"weights": "uniform", "pull": 0.5, "personal_rate": 0.03}})
    it = Run(spec, toy, block_size=block_size)
    it.warm_up()
    start = {name: it.own[name].clone() for name in it.model.shapes}
    shared = [plain_copy(start, number) for number in range(3)]
    personal = [plain_copy(start, number) for number in range(3)]
    sent = {name: value.clone() for name, value in it.method.broadcast(0).model.items()}
    for round in range(2):
        for number, client in enumerate(toy.clients):
            with torch.no_grad():
                for name, value in sent.items():
                    of_module(shared[number], name).copy_(turned(name, value[number]))

            def near(number: int = number) -> Tensor:
                terms = [
                    (of_module(personal[number], name) - turned(name, value[number])).square().sum()
                    for name, value in sent.items()  # noqa: B023
                ]
                return 0.25 * torch.stack(terms).sum()

            plain_epochs(shared[number], client, (number, round, 0), SETTINGS.learning_rate, lambda: 0)
            plain_epochs(personal[number], client, (number, round, 1), 0.03, near)
        it.step(round)
        for networks, stack in ((shared, it.own), (personal, part(PERSONAL, it.own))):
            for number, network in enumerate(networks):
                for name in it.model.shapes:
                    expected = turned(name, of_module(network, name))
                    torch.testing.assert_close(stack[name][number], expected, rtol=1e-4, atol=1e-5)
        sent = {name: it.own[name].mean(dim=0, keepdim=True).expand_as(value) for name, value in sent.items()}
    assert not set(sent) & it.model.buffers
    for name in it.model.buffers:
        assert furthest({name: it.own[name]}, {name: it.own[PERSONAL + name]}) > 1e-4


def test_a_personal_model_sends_nothing(federation: Federation) -> None:
    plain = play(make_spec("fedavg", federation), federation)
    it = play(make_spec("toy_second_model", federation), federation)
    assert (it.traffic.bytes_up, it.traffic.bytes_down) == (plain.traffic.bytes_up, plain.traffic.bytes_down)
    assert furthest({name: it.own[name] for name in plain.own}, plain.own) == 0  # nor is it in the way


# Mixtures by layer


def test_layers_are_mixed_as_by_hand(federation: Federation) -> None:
    temperature = 0.3
    spec = make_spec("toy_layer_mixing", federation, hyper={"temperature": temperature})
    it = Run(spec, federation)
    it.warm_up()
    for round in range(2):
        received = copied(it.method.broadcast(round).model)
        it.step(round)
        trained = {name: it.own[name].double().numpy() for name in received}
        sent, matrices = it.method.broadcast(round + 1).model, it.method.artefacts()["mixing"].numpy()
        assert matrices.shape == (3, 5, 5)
        assert len({matrix.tobytes() for matrix in matrices}) == 3
        for layer, matrix in zip(("conv1", "conv2", "head"), matrices, strict=True):
            names = [f"{layer}.weight", f"{layer}.bias"]
            moved = np.concatenate(
                [(trained[name] - received[name].numpy()).reshape(5, -1) for name in names], axis=1
            )
            unit = moved / np.linalg.norm(moved, axis=1, keepdims=True)
            weights = np.exp(unit @ unit.T / temperature)
            weights /= weights.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(matrix, weights, atol=1e-4)
            for name in names:
                expected = np.einsum("ij,j...->i...", weights, trained[name])
                np.testing.assert_allclose(sent[name].numpy(), expected, atol=1e-4)


def test_matrices_of_layers_are_kept_with_the_run(federation: Federation) -> None:
    result = run(make_spec("toy_layer_mixing", federation), federation)
    assert result.artefacts["mixing"].shape == (3, 5, 5)
    np.testing.assert_allclose(result.artefacts["mixing"].sum(axis=2), 1, rtol=1e-5)


# Prototypes


def prototypes_by_hand(federation: Federation, models: Stack) -> tuple[Tensor, Tensor]:
    """Class means ``[clients, classes, width]`` and numbers of items ``[clients, classes]``."""
    means = torch.zeros(len(federation), federation.classes, 16)
    counts = torch.zeros(len(federation), federation.classes)
    for index, client in enumerate(federation.clients):
        embedding = dense_gcn(client)({name: value[index] for name, value in models.items()})[1]
        for label in range(federation.classes):
            items = np.flatnonzero((client.roles == TRAIN) & (client.labels == label))
            counts[index, label] = len(items)
            if len(items):
                means[index, label] = embedding[items].mean(dim=0)
    return means, counts


def test_prototypes_equal_a_plain_computation(federation: Federation) -> None:
    """Class means up, their mean down, and the second round's steps on the loss with both its terms."""
    spec = make_spec(
        "toy_prototypes", federation, rounds=2, local_epochs=3, client=PLAIN, hyper={"strength": 2.0}
    )
    it = Run(spec, federation, block_size=2)
    it.warm_up()
    uploads: list[Message] = []
    aggregate = it.method.aggregate

    def watched(participants: Tensor, received: Stack, upload: Message) -> None:
        uploads.append(upload)
        aggregate(participants, received, upload)

    it.method.aggregate = watched  # type: ignore[method-assign]
    assert not it.method.broadcast(0).extras
    it.step(0)
    means, counts = prototypes_by_hand(federation, it.own)
    assert (counts == 0).any(), "some client lacks a class"
    assert torch.equal(uploads[0].extras["counts"], counts)
    assert torch.allclose(uploads[0].extras["prototypes"], means, atol=1e-5)
    assert not uploads[0].model

    whole = (counts[:, :, None] * means).sum(dim=0) / counts.sum(dim=0)[:, None]
    message = it.method.broadcast(1)
    assert not message.model
    for row in message.extras["prototypes"]:
        assert torch.allclose(row, whole, atol=1e-5)

    start = copied(it.own)
    it.step(1)
    for index, client in enumerate(federation.clients):
        w, forward, (chosen, labels) = leaves(start, index), dense_gcn(client), training_of(client)
        for _ in range(3):
            logits, embedding = forward(w)
            far = (embedding[chosen] - whole[labels]).square().mean()
            loss = functional.cross_entropy(logits[chosen], labels) + 2.0 * far
            gradients = torch.autograd.grad(loss, list(w.values()), allow_unused=True)
            with torch.no_grad():
                for value, gradient in zip(w.values(), gradients, strict=True):
                    value -= 0.1 * gradient
        for name, value in w.items():
            assert torch.allclose(it.own[name][index], value, atol=1e-5), name


def test_bytes_of_every_tensor_are_counted_in_both_directions(federation: Federation) -> None:
    """Three classes, 16 hidden units, five clients: means and numbers up, means and marks down."""
    it = Run(make_spec("toy_prototypes", federation, rounds=3), federation)
    it.warm_up()
    each = 5 * (3 * 16 + 3) * 4
    for round in range(3):
        it.step(round)
        assert it.traffic.bytes_up == (round + 1) * each
        assert it.traffic.bytes_down == round * each  # nothing is known in the first


@pytest.mark.parametrize("kind", ["same", "gaussian"])
def test_all_that_malicious_clients_report_is_replaced_and_nothing_else(
    federation: Federation, kind: str
) -> None:
    plain = make_spec("toy_prototypes", federation, rounds=1)
    attack = Attack.model_validate({"kind": kind, "ratio": 0.4, "tau": 5.0})
    spec = plain.model_copy(update={"attack": attack})

    def reported(it: Run) -> tuple[Message, Run]:
        uploads: list[Message] = []
        it.method.aggregate = lambda participants, received, upload: uploads.append(upload)  # type: ignore[method-assign]
        it.warm_up()
        it.step(0)
        return uploads[0], it

    honest, _ = reported(Run(plain, federation))
    attacked, it = reported(Run(spec, federation))
    again, _ = reported(Run(spec, federation))
    assert it.attacker is not None
    bad = torch.from_numpy(it.attacker.malicious)
    assert np.array_equal(it.attacker.malicious, Attacker(attack, spec.seed, 5).malicious)
    assert bad.sum() == 2
    for name, value in honest.extras.items():
        assert torch.equal(attacked.extras[name], again.extras[name])
        assert torch.equal(attacked.extras[name][~bad], value[~bad])
        for row in attacked.extras[name][bad]:
            assert (len(row.unique()) == 1) == (kind == "same")
        assert not torch.isclose(attacked.extras[name][bad], value[bad]).any()
    assert furthest(it.own, play(plain, federation).own) == 0  # their own models stay honest


def test_prototypes_without_strength_are_local_training(federation: Federation) -> None:
    plain = play(make_spec("local", federation), federation)
    it = play(make_spec("toy_prototypes", federation, hyper={"strength": 0.0}), federation)
    assert furthest(it.own, plain.own) < 1e-6
    pulled = play(make_spec("toy_prototypes", federation, hyper={"strength": 10.0}), federation)
    assert furthest(pulled.own, plain.own) > 1e-3
