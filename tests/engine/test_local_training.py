"""What ``Clients.fit`` can be asked for, against plain networks that are trained client by client."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from plain_cnn import CLASSES, IMAGE_COUNTS, SETTINGS, of_module, plain_copy, plain_epochs, turned
from plain_cnn import federation as image_federation
from plain_cnn import spec as image_spec
from torch import Tensor, nn
from torch.nn import functional
from toy_federations import PLAIN, copied, furthest, make_spec, random_federation

from bench.engine.batch import Batch, Stack, cross_entropy
from bench.engine.clients import Clients
from bench.engine.optimiser import Optimiser
from bench.engine.run import Run
from bench.federation.types import TRAIN, Federation
from bench.nn.cnn import CNN

SIZES = (4, 12, 40, 41)
"""Images of each client: 3, 9, 28 and 29 for training, so batches of 3, 8, 8 and 8."""


@pytest.fixture(scope="module")
def images() -> Federation:
    return image_federation(*SIZES)


def image_clients(
    images: Federation, block_size: int = 4, epochs: int = 2
) -> tuple[Clients, dict[str, Tensor]]:
    spec = image_spec("local", len(images), epochs=epochs)
    model = CNN(images.clients, CLASSES, SETTINGS)
    clients = Clients(spec, model, images.clients, CLASSES, torch.device("cpu"), block_size)
    clients.begin_round(0)
    drawn = [model.initial(np.random.default_rng(number)) for number in range(len(images))]
    return clients, {name: torch.from_numpy(np.stack([one[name] for one in drawn])) for name in model.shapes}


def assert_equal_models(trained: Stack, number: int, network: nn.Sequential) -> None:
    """A client's models in a stack against a plain network."""
    for name, value in trained.items():
        expected = turned(name, of_module(network, name))
        torch.testing.assert_close(value[number], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("block_size", [1, 3, 5])
def test_local_training_equals_a_plain_loop_over_clients(block_size: int) -> None:
    """Two rounds of three epochs: parameters, running statistics, and the mean loss before the steps."""
    images = image_federation(*IMAGE_COUNTS)
    assert [client.count(TRAIN) for client in images.clients] == [3, 9, 28, 29, 49]
    clients, stack = image_clients(images, block_size, epochs=3)
    plain = [plain_copy(stack, number) for number in range(len(images))]
    initial = copied(stack)
    trained: Stack = stack
    for round in range(2):
        clients.begin_round(round)
        trained = clients.fit(trained)
        losses = []
        for number, (network, client) in enumerate(zip(plain, images.clients, strict=True)):
            losses += plain_epochs(network, client, (number, round, 0), 3)
            assert_equal_models(trained, number, network)
        assert clients.loss == pytest.approx(np.mean(losses), rel=1e-4)
    assert furthest(stack, initial) == 0


@pytest.mark.parametrize("block_size", [1, 3, 4])
def test_an_objective_sees_features_and_labels_of_its_mini_batch(images: Federation, block_size: int) -> None:
    """Cross-entropy of the head on perturbed embeddings, and a term of labels: by its own forward pass."""
    clients, stack = image_clients(images, block_size)
    strength = torch.tensor([0.1, 0.2, 0.3, 0.4])

    def objective(models: Stack, batch: Batch) -> Tensor:
        embedding = batch.embed(models)
        logits = batch.head(models, embedding * 0.5)
        share = batch.label_counts / batch.label_counts.sum(dim=1, keepdim=True)
        length = (embedding.square().sum(dim=2) * batch.weights).sum(dim=1)
        return batch.cross_entropy(logits) + batch.of(strength) * length * share.square().sum(dim=1)

    trained = clients.fit(stack, objective=objective)
    for number, client in enumerate(images.clients):

        def plain(
            network: nn.Sequential, images: Tensor, labels: Tensor, factor: Tensor = strength[number]
        ) -> Tensor:
            embedding = network[:-1](images)
            share = torch.bincount(labels, minlength=CLASSES) / len(labels)
            length = embedding.square().sum(dim=1).mean()
            entropy = functional.cross_entropy(network[-1](embedding * 0.5), labels)
            return entropy + factor * length * share.square().sum()

        network = plain_copy(stack, number)
        plain_epochs(network, client, (number, 0, 0), 2, objective=plain)
        assert_equal_models(trained, number, network)


def test_given_items_alone_are_in_the_mini_batches(images: Federation) -> None:
    """Halves of the training items; a client of one item has a batch of it."""
    clients, stack = image_clients(images)
    half = [items[: max(len(items) // 2, 2)] for items in clients.training]
    trained = clients.fit(stack, items=half, epochs=2)
    shares = [len(some) / len(every) for some, every in zip(half, clients.training, strict=True)]
    assert clients.passes == pytest.approx(2 * np.mean(shares))
    for number, client in enumerate(images.clients):
        network = plain_copy(stack, number)
        plain_epochs(network, client, (number, 0, 0), 2, items=half[number])
        assert_equal_models(trained, number, network)


@pytest.mark.parametrize("block_size", [1, 4])
def test_a_pass_is_in_order_and_ends_with_what_is_left_over(images: Federation, block_size: int) -> None:
    """Clients of 3, 9, 28 and 29 training images, of which the second has one left over, which is none."""
    clients, _ = image_clients(images, block_size)
    labels: list[list[int]] = [[] for _ in images.clients]
    sizes: list[list[int]] = [[] for _ in images.clients]
    for batch in clients.batches(clients.training):
        for number, row in zip(batch.of(clients.numbers), batch.labels.tolist(), strict=True):
            labels[number] += row
            sizes[number].append(len(row))
    assert sizes == [[3], [8], [8, 8, 8, 4], [8, 8, 8, 5]]
    for client, seen in zip(images.clients, labels, strict=True):
        assert seen == client.labels[client.roles == TRAIN][: len(seen)].tolist()
    assert clients.passes == 1


def test_clients_without_items_take_no_step(images: Federation) -> None:
    clients, stack = image_clients(images)
    trained = clients.fit(stack, items=[np.zeros(0, np.int64), *clients.training[1:]])
    assert all(torch.equal(value[0], stack[name][0]) for name, value in trained.items())
    assert all(not torch.equal(trained["fc.weight"][row], stack["fc.weight"][row]) for row in (1, 2, 3))


def graph_clients(
    federation: Federation, client: dict[str, Any] = PLAIN, **settings: Any
) -> tuple[Clients, Stack]:
    it = Run(make_spec("local", federation, client=client, **settings), federation, block_size=2)
    it.clients.begin_round(0)
    return it.clients, it.own


@pytest.mark.parametrize("state", ["keep", "reset"])
def test_fits_of_a_round_share_an_optimiser_by_copy(federation: Federation, state: str) -> None:
    """A second fit of the same copy goes on with its moments; a new copy starts afresh."""
    client = {"dropout": 0.0, "optimizer_state": state}
    clients, start = graph_clients(federation, client)
    whole = copied(clients.fit(start, epochs=2))
    clients, _ = graph_clients(federation, client)
    half = copied(clients.fit(start, epochs=1))
    assert furthest(clients.fit(half, epochs=1), whole) < 1e-6
    fresh = copied(clients.fit(half, epochs=1, copy="another"))
    clients, _ = graph_clients(federation, client)
    assert furthest(fresh, clients.fit(half, epochs=1)) < 1e-6
    assert furthest(fresh, whole) > 1e-4


def test_dropout_masks_differ_between_rounds_and_between_fits_of_a_round(federation: Federation) -> None:
    def fitted(round: int, earlier_fits: int) -> dict[str, Tensor]:
        clients, start = graph_clients(federation, {})
        clients.begin_round(round)
        for fit in range(earlier_fits):
            clients.fit(start, copy=f"before {fit}")
        return copied(clients.fit(start))

    assert furthest(fitted(0, 0), fitted(0, 0)) == 0
    assert furthest(fitted(1, 0), fitted(0, 0)) > 1e-4
    assert furthest(fitted(0, 1), fitted(0, 0)) > 1e-4


def test_embeddings_are_means_over_a_clients_own_nodes(federation: Federation) -> None:
    clients, start = graph_clients(federation)
    means = clients.embeddings(start)
    for index, client in enumerate(federation.clients):
        alone = clients.model.collate([client], torch.device("cpu"))
        one = {name: value[index : index + 1] for name, value in start.items()}
        embedding = clients.model.forward(one, alone, None).embedding[0]
        assert embedding.shape == (len(client.ids), 16)
        assert torch.allclose(means[index], embedding.mean(dim=0), atol=1e-6)


def test_an_optimiser_of_ones_own_has_its_rate(federation: Federation) -> None:
    """One step of plain SGD moves in proportion to the rate; decay of single parameters is their own."""
    clients, start = graph_clients(federation)

    def stepped(name: str, *optimiser: Any) -> Stack:
        return copied(clients.fit(start, epochs=1, optimiser=Optimiser(*optimiser), copy=name))

    usual = copied(clients.fit(start, epochs=1))
    faster = stepped("faster", "sgd", 0.3)
    decayed = stepped("decayed", "sgd", 0.1, 0.0, {"conv1.weight": 0.5})
    for name, value in start.items():
        assert torch.allclose(faster[name] - value, 3 * (usual[name] - value), atol=1e-6)
        decay = 0.1 * 0.5 * value if name == "conv1.weight" else 0.0
        assert torch.allclose(decayed[name], usual[name] - decay, atol=1e-6)
    moved = (stepped("adam", "adam", 0.01)["head.bias"] - start["head.bias"]).abs()
    assert torch.allclose(moved, torch.full_like(moved, 0.01), rtol=1e-3)  # Adam's first step is its rate


def test_what_an_objective_adds_beside_the_cross_entropy_is_not_logged(federation: Federation) -> None:
    clients, start = graph_clients(federation)

    def objective(models: Stack, batch: Batch) -> Tensor:
        return cross_entropy(models, batch) + 100.0

    first = clients.reduce(start, cross_entropy)
    clients.fit(start, epochs=1, objective=objective)
    assert clients.loss == pytest.approx(float(first.mean()), rel=1e-5)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_some_clients_go_on_with_their_own_optimisers(optimizer: str) -> None:
    """Clients of different numbers of epochs train as each of them does alone."""
    federation = random_federation((9, 31, 60, 5, 22))
    wanted = torch.tensor([6, 1, 3, 5, 3])
    client = {**PLAIN, "optimizer": optimizer, "learning_rate": 0.5 if optimizer == "sgd" else 0.02}
    clients, start = graph_clients(federation, client)
    models = copied(start)
    epochs = torch.zeros(clients.count, dtype=torch.int64)
    rows = clients.rows
    while len(rows):
        some = clients.some(rows)
        trained = some.fit({name: value[rows] for name, value in models.items()}, epochs=1)
        for name, value in trained.items():
            models[name][rows] = value
        epochs[rows] += 1
        rows = rows[epochs[rows] < wanted[rows]]
    for number in range(clients.count):
        alone, _ = graph_clients(federation, client)
        whole = alone.fit(start, epochs=int(epochs[number]))
        for name, value in whole.items():
            assert torch.allclose(models[name][number], value[number], atol=1e-5), (number, name)
    assert clients.passes == pytest.approx(float(epochs.float().mean()))
