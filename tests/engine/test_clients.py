"""Local training of stacked clients: what ``fit`` promises, mini-batches, embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from toy_federations import copied, furthest, make_spec, random_federation

from bench import streams
from bench.engine.batch import Batch, Stack, cross_entropy
from bench.engine.clients import Clients
from bench.engine.run import Run
from bench.federation.types import TRAIN, Client, Federation
from bench.nn.base import ClientModel, Drop, Inputs
from bench.spec import ClientSettings


def gcn_clients(federation: Federation, **changes: Any) -> tuple[Clients, Stack]:
    client = changes.pop("client", {})
    run = Run(make_spec("local", federation, client=client, **changes), federation, block_size=2)
    run.clients.begin_round(0)
    return run.clients, run.own


def test_only_trainable_parameters_move(federation: Federation) -> None:
    clients, start = gcn_clients(federation)
    before = copied(start)
    trained = clients.fit(start, trainable={"head.weight", "conv1.bias"})
    for name, value in trained.items():
        moved = not torch.equal(value, before[name])
        assert moved == (name in {"head.weight", "conv1.bias"}), name


@pytest.mark.parametrize("state", ["keep", "reset"])
def test_fits_of_a_round_share_an_optimiser_by_copy(federation: Federation, state: str) -> None:
    """A second fit of the same copy goes on with its moments; a new copy starts afresh."""
    settings = {"client": {"dropout": 0.0, "optimizer_state": state}, "local_epochs": 1}
    clients, start = gcn_clients(federation, **settings)
    whole = copied(clients.fit(start, epochs=2))

    clients, start = gcn_clients(federation, **settings)
    half = copied(clients.fit(start, epochs=1))
    assert furthest(clients.fit(half, epochs=1), whole) < 1e-6

    clients, start = gcn_clients(federation, **settings)
    half = copied(clients.fit(start, epochs=1))
    fresh = copied(clients.fit(half, epochs=1, copy="another"))
    clients, _ = gcn_clients(federation, **settings)
    assert furthest(fresh, clients.fit(half, epochs=1)) < 1e-6
    assert furthest(fresh, whole) > 1e-4


def test_a_loss_term_is_added_client_by_client(federation: Federation) -> None:
    """With ``c_i * sum(w)`` on top, plain SGD moves every weight of client i by ``rate * c_i`` more."""
    settings = {
        "client": {"dropout": 0.0, "optimizer": "sgd", "learning_rate": 0.1, "weight_decay": 0.0},
        "local_epochs": 1,
    }
    clients, start = gcn_clients(federation, **settings)
    plain = copied(clients.fit(start))
    pull = torch.arange(1.0, 1.0 + len(federation))

    def objective(models: Stack, batch: Batch) -> Tensor:
        return cross_entropy(models, batch) + batch.of(pull) * models["conv1.weight"].flatten(1).sum(dim=1)

    pulled = clients.fit(start, objective=objective)
    shift = plain["conv1.weight"] - pulled["conv1.weight"]
    for index in range(len(federation)):
        assert torch.allclose(shift[index], torch.full_like(shift[index], 0.1 * (index + 1)), atol=1e-6)
    assert torch.equal(plain["head.weight"], pulled["head.weight"])


def test_dropout_masks_differ_between_rounds_and_between_fits_of_a_round(federation: Federation) -> None:
    clients, start = gcn_clients(federation)

    def fitted(round: int, earlier_fits: int) -> dict[str, Tensor]:
        clients.begin_round(round)
        for fit in range(earlier_fits):
            clients.fit(start, copy=f"before {round} {fit}")
        return copied(clients.fit(start, copy=f"looked at {round} {earlier_fits}"))

    one, again, next_round, second_fit = fitted(0, 0), fitted(0, 0), fitted(1, 0), fitted(0, 1)
    del again  # its copy has moments by now; a fresh object follows
    clients, start = gcn_clients(federation)
    assert furthest(fitted(0, 0), one) == 0
    assert furthest(next_round, one) > 1e-4
    assert furthest(second_fit, one) > 1e-4


def test_embeddings_are_means_over_a_clients_own_nodes(federation: Federation) -> None:
    clients, start = gcn_clients(federation)
    means = clients.embeddings(start)
    assert means.shape == (len(federation), 16)
    for index, client in enumerate(federation.clients):
        alone = clients.model.collate([client], torch.device("cpu"))
        one = {name: value[index : index + 1] for name, value in start.items()}
        embedding = clients.model.forward(one, alone, None).embedding[0]
        assert embedding.shape == (len(client.ids), 16)
        assert torch.allclose(means[index], embedding.mean(dim=0), atol=1e-6)


class Rows(Inputs):
    """Feature rows, padded."""

    def __init__(self, x: Tensor, lengths: Tensor) -> None:
        self.x, self.lengths, self.items = x, lengths, x.shape[1]

    def select(self, items: Tensor, rows: Tensor) -> Inputs:
        return Rows(self.x[rows[:, None], items], torch.full((len(rows),), items.shape[1]))


class Softmax(ClientModel):
    """One linear layer on feature rows: a model without a graph, to test mini-batches with."""

    name = "softmax"
    families = ("graph",)
    head = frozenset({"weight"})

    def __init__(self, clients: Sequence[Client], classes: int, settings: ClientSettings) -> None:
        self.shapes = {"weight": (clients[0].features.shape[1], classes), "bias": (classes,)}

    def initial(self, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        return {name: rng.normal(size=shape).astype(np.float32) for name, shape in self.shapes.items()}

    def collate(self, clients: Sequence[Client], device: torch.device) -> Rows:
        lengths = [len(client.ids) for client in clients]
        x = np.zeros((len(clients), max(lengths), clients[0].features.shape[1]), np.float32)
        for row, client in enumerate(clients):
            x[row, : lengths[row]] = client.features
        return Rows(torch.from_numpy(x), torch.tensor(lengths))

    def embed(self, stack: Mapping[str, Tensor], inputs: Any, drop: Drop | None) -> Tensor:
        rows: Tensor = inputs.x
        return rows

    def classify(
        self, stack: Mapping[str, Tensor], embedding: Tensor, inputs: Any, drop: Drop | None
    ) -> Tensor:
        return torch.bmm(embedding, stack["weight"]) + stack["bias"][:, None, :]


BATCH = 8


def batch_clients(federation: Federation, block_size: int, seed: int = 5) -> tuple[Clients, Stack]:
    settings = {"dropout": 0.0, "batch_size": BATCH, "learning_rate": 0.05, "weight_decay": 1e-3}
    spec = make_spec("local", federation, client=settings, local_epochs=2, seed=seed)
    model = Softmax(federation.clients, federation.classes, spec.client)
    clients = Clients(
        spec, model, federation.clients, federation.classes, torch.device("cpu"), block_size=block_size
    )
    drawn = [model.initial(np.random.default_rng(index)) for index in range(len(federation))]
    return clients, {name: torch.from_numpy(np.stack([one[name] for one in drawn])) for name in drawn[0]}


def test_mini_batches_equal_a_loop_over_clients_and_batches() -> None:
    """Shuffled whole batches; a client with fewer training items than a batch takes them all at once."""
    federation = random_federation((9, 70, 33, 5, 50), dense=True, width=6)
    sizes = [client.count(TRAIN) for client in federation.clients]
    assert min(sizes) < BATCH
    assert len({size // BATCH for size in sizes}) >= 3
    expected: dict[str, list[Tensor]] = {"weight": [], "bias": []}
    _, start = batch_clients(federation, 1)
    losses = []
    for index, client in enumerate(federation.clients):
        w = {name: value[index].clone().requires_grad_() for name, value in start.items()}
        stepper = torch.optim.Adam(list(w.values()), lr=0.05, weight_decay=1e-3)
        train = np.flatnonzero(client.roles == TRAIN)
        for round in range(2):
            for epoch in range(2):
                order = streams.generator(5, "order", index, round, 0, epoch).permutation(train)
                batches = [order[first : first + BATCH] for first in range(0, len(order) - BATCH + 1, BATCH)]
                own = []
                for batch in batches or [order]:
                    stepper.zero_grad()
                    logits = torch.from_numpy(client.features[batch]) @ w["weight"] + w["bias"]
                    loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(client.labels[batch]))
                    loss.backward()
                    stepper.step()
                    own.append(loss.item())
                if round == 1:
                    losses.append(np.mean(own))
        for name, value in w.items():
            expected[name].append(value.detach())
    for block_size in (1, 2, 5):
        clients, models = batch_clients(federation, block_size)
        for round in range(2):
            clients.begin_round(round)
            models = clients.fit(models)
        assert furthest(models, {name: torch.stack(each) for name, each in expected.items()}) < 1e-5
        assert clients.loss == pytest.approx(np.mean(losses), rel=1e-5)
