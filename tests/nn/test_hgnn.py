from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from toy_hypergraphs import clients_of, federation_of, hypergraph, learnable, spec

from bench.data import Hypergraph
from bench.engine.clients import Block
from bench.federation.types import TRAIN, Client
from bench.nn.models import build_model

CPU = torch.device("cpu")


class PlainHGNN(nn.Module):
    """The paper's classifier for one client."""

    def __init__(self, width: int, hidden: int, classes: int, relu: bool) -> None:
        super().__init__()
        self.first = nn.Linear(width, hidden, bias=False)
        self.second = nn.Linear(hidden, classes, bias=False)
        self.relu = relu

    def forward(self, z: Tensor, drop: Callable[[Tensor], Tensor]) -> Tensor:
        logits = self.second(drop(self.first(z)))
        return torch.relu(logits) if self.relu else logits


def plain(models: dict[str, Tensor], index: int, relu: bool) -> PlainHGNN:
    width, hidden = models["theta1"].shape[1:]
    module = PlainHGNN(width, hidden, models["theta2"].shape[2], relu)
    module.first.weight.data = models["theta1"][index].t().clone()
    module.second.weight.data = models["theta2"][index].t().clone()
    return module


def rows_of(client: Client) -> Tensor:
    return torch.from_numpy(np.asarray(client.features))


@pytest.fixture
def data() -> tuple[Hypergraph, tuple[Client, ...]]:
    return learnable()


@pytest.mark.parametrize("name", ["hgnn", "hgnn_relu"])
def test_stacked_model_equals_plain_modules(name: str, data: tuple[Hypergraph, tuple[Client, ...]]) -> None:
    graph, clients = data
    assert (
        len({len(client.ids) for client in clients}) == len({client.count(TRAIN) for client in clients}) == 3
    )
    model = build_model(spec("fedhgn", 3, model=name).client, federation_of(graph, clients))
    drawn = [model.initial(np.random.default_rng(seed)) for seed in range(3)]
    models = {key: torch.from_numpy(np.stack([one[key] for one in drawn])) for key in drawn[0]}
    block = Block(model, clients, 0, graph.classes, CPU)

    output = block.evaluation.forward(models)
    for index, client in enumerate(clients):
        module, size = plain(models, index, name == "hgnn_relu"), len(client.ids)
        torch.testing.assert_close(output.logits[index, :size], module(rows_of(client), lambda x: x))
        torch.testing.assert_close(output.embedding[index, :size], module.first(rows_of(client)))

    mask = torch.from_numpy(np.random.default_rng(9).integers(0, 2, (3, block.items, 6)) * 2.0).float()
    leaves = {key: value.clone().requires_grad_() for key, value in models.items()}
    training = model.forward(leaves, block.inputs, lambda x, site: x * mask)
    losses = block.evaluation.cross_entropy(training.logits)
    losses.sum().backward()
    for index, client in enumerate(clients):
        module, chosen = plain(models, index, name == "hgnn_relu"), np.flatnonzero(client.roles == TRAIN)
        logits = module(rows_of(client)[chosen], lambda x, i=index, c=chosen: x * mask[i, c])
        loss = functional.cross_entropy(logits, torch.from_numpy(client.labels[chosen]))
        loss.backward()
        torch.testing.assert_close(losses[index], loss)
        for key, weight in (("theta1", module.first.weight), ("theta2", module.second.weight)):
            assert leaves[key].grad is not None
            assert weight.grad is not None
            torch.testing.assert_close(leaves[key].grad[index], weight.grad.t())


def test_relu_gives_class_zero_where_all_logits_are_negative() -> None:
    graph = hypergraph([[1.0], [0.0]], [{0, 1}], classes=3)
    (client,) = clients = clients_of(graph, [0, 0])
    models = {"theta1": torch.ones(1, 1, 6), "theta2": -torch.ones(1, 6, 3) * torch.tensor([3.0, 2.0, 1.0])}
    best = {}
    for name in ("hgnn", "hgnn_relu"):
        model = build_model(spec("fedhgn", 1, model=name).client, federation_of(graph, clients))
        logits = Block(model, [client], 0, 3, CPU).evaluation.forward(models).logits
        best[name] = logits.argmax(dim=2)[0].tolist()
    assert best == {"hgnn": [2, 0], "hgnn_relu": [0, 0]}


def test_initial_weights_are_uniform_within_the_inverse_root_of_the_fan_in() -> None:
    graph = hypergraph(np.ones((2, 400)), [{0, 1}], classes=5)
    federation = federation_of(graph, clients_of(graph, [0, 0]))
    model = build_model(spec("fedhgn", 1, hidden=64).client, federation)
    drawn = model.initial(np.random.default_rng(0))
    for name, fan_in, shape in (("theta1", 400, (400, 64)), ("theta2", 64, (64, 5))):
        assert drawn[name].shape == shape
        assert drawn[name].dtype == np.float32
        bound = 1 / np.sqrt(fan_in)
        assert 0.95 * bound < np.abs(drawn[name]).max() <= bound
        assert drawn[name].std() == pytest.approx(bound / np.sqrt(3), rel=0.1)
