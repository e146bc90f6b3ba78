"""The client models ``gcn2`` and ``sage`` against torch-geometric's layers, one client at a time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, SAGEConv
from toy_federations import both_ways, random_federation

from bench.federation.types import TRAIN, Client, Federation
from bench.nn.models import build_model
from bench.nn.sage import neighbour_means, receptive_field
from bench.spec import ClientSettings

CPU = torch.device("cpu")
HIDDEN = 6
MODELS = ["gcn2", "sage"]


class Plain(nn.Module):
    """Two of torch-geometric's layers with weights copied from client ``index`` of a stack."""

    def __init__(self, name: str, stack: Mapping[str, Tensor], index: int) -> None:
        super().__init__()
        own = {key: value[index].detach().clone() for key, value in stack.items()}
        self.name, self.layers = name, nn.ModuleList()
        for layer in ("conv1", "conv2"):
            weight, bias = own[f"{layer}.weight"], own[f"{layer}.bias"]
            conv: nn.Module
            if name == "gcn2":
                conv = GCNConv(len(weight), len(bias))
                conv.lin.weight.data = weight.t()
                conv.bias.data = bias
            else:
                conv = SAGEConv(len(weight), len(bias), aggr="mean")
                conv.lin_r.weight.data = weight[:, : len(bias)].t()
                conv.lin_l.weight.data = weight[:, len(bias) :].t()
                conv.lin_l.bias.data = bias
            self.layers.append(conv)

    def forward(self, client: Client, mask: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.from_numpy(sparse.csr_matrix(client.features).toarray())
        edges = torch.from_numpy(client.edges)
        embedding = self.layers[0](x, edges)
        return self.layers[1](torch.relu(embedding) * mask, edges), embedding

    def gradients(self) -> dict[str, Tensor]:
        result: dict[str, Tensor] = {}
        for name, conv in zip(("conv1", "conv2"), self.layers, strict=True):
            if self.name == "gcn2":
                result[f"{name}.weight"], result[f"{name}.bias"] = conv.lin.weight.grad.t(), conv.bias.grad
            else:
                sides = conv.lin_r.weight.grad.t(), conv.lin_l.weight.grad.t()
                result[f"{name}.weight"], result[f"{name}.bias"] = (
                    torch.cat(sides, dim=1),
                    conv.lin_l.bias.grad,
                )
        return result


def two(dense: bool) -> Federation:
    """Nine and thirty-one nodes; the second client has isolated ones."""
    return random_federation((9, 31), seed=2, dense=dense)


def stack_of(name: str, federation: Federation) -> dict[str, Tensor]:
    """Random weights, biases included."""
    model = build_model(ClientSettings(model=name, hidden=HIDDEN), federation)
    rng = torch.Generator().manual_seed(0)
    sizes = {key: (len(federation), *shape) for key, shape in model.shapes.items()}
    return {key: torch.randn(size, generator=rng).requires_grad_() for key, size in sizes.items()}


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_logits_embeddings_and_gradients_are_torch_geometrics(name: str, dense: bool) -> None:
    federation = two(dense)
    model = build_model(ClientSettings(model=name, hidden=HIDDEN), federation)
    stack = stack_of(name, federation)
    inputs = model.collate(federation.clients, CPU)
    assert (inputs.dense is not None) == dense  # type: ignore[attr-defined]
    rng = np.random.default_rng(0)
    mask = torch.from_numpy(2.0 * rng.integers(0, 2, (2, 31, HIDDEN))).float()
    slope = torch.from_numpy(rng.normal(size=(2, 31, 3))).float()
    for index, client in enumerate(federation.clients):
        slope[index, client.roles.size :] = 0  # nothing of the padding counts
        slope[index, np.flatnonzero(client.roles != TRAIN)] = 0  # a step may leave out what they need
    for _ in range(2):  # buffers are used again in the second step
        inputs.begin_step()
        output = model.forward(stack, inputs, lambda x, site: x * mask)
        ours = dict(
            zip(stack, torch.autograd.grad((output.logits * slope).sum(), stack.values()), strict=True)
        )
        for index, client in enumerate(federation.clients):
            plain, size = Plain(name, stack, index), len(client.ids)
            logits, embedding = plain(client, mask[index, :size])
            (logits * slope[index, :size]).sum().backward()
            training = client.roles == TRAIN
            assert training.any()
            got = output.logits[index, :size], output.embedding[index, :size]
            for ours_, theirs in zip(got, (logits, embedding), strict=True):
                torch.testing.assert_close(ours_[training], theirs[training], atol=1e-5, rtol=1e-5)
            for key, gradient in plain.gradients().items():
                torch.testing.assert_close(ours[key][index], gradient, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_evaluation_is_torch_geometrics_at_every_node(name: str, dense: bool) -> None:
    federation = two(dense)
    model = build_model(ClientSettings(model=name, hidden=HIDDEN), federation)
    stack = stack_of(name, federation)
    output = model.forward(stack, model.collate(federation.clients, CPU), None)
    for index, client in enumerate(federation.clients):
        size = len(client.ids)
        logits, embedding = Plain(name, stack, index)(client, torch.ones(size, HIDDEN))
        torch.testing.assert_close(output.logits[index, :size], logits, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(output.embedding[index, :size], embedding, atol=1e-5, rtol=1e-5)


def test_what_a_training_node_depends_on_by_hand() -> None:
    # path 0 - 1 - 2 - 3 - 4, a triangle 5 - 6 - 7 and node 8 alone
    edges = both_ways([(0, 1), (1, 2), (2, 3), (3, 4), (5, 6), (6, 7), (5, 7)])
    means = neighbour_means(edges, 9)
    for training, reached in (([0], [0, 1, 2]), ([2, 8], [0, 1, 2, 3, 4, 8]), ([6], [5, 6, 7]), ([], [])):
        nodes = np.isin(np.arange(9), training)
        np.testing.assert_array_equal(receptive_field(means, nodes), reached)


def test_means_by_hand() -> None:
    # path 0 - 1 - 2 and node 3 alone
    got = neighbour_means(both_ways([(0, 1), (1, 2)]), 4).toarray()
    np.testing.assert_array_equal(got, [[0, 1, 0, 0], [0.5, 0, 0.5, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    assert neighbour_means(both_ways([]), 2).nnz == 0


@pytest.mark.parametrize("name", MODELS)
def test_sizes_and_initial_weights(name: str) -> None:
    """Cora's widths; Glorot for convolutions, torch's default for GraphSAGE; the second layer is the head."""
    wide = Client(
        ids=np.arange(1),
        labels=np.zeros(1, np.int64),
        roles=np.zeros(1, np.int8),
        features=sparse.csr_matrix((1, 1433), dtype=np.float32),
        edges=both_ways([]),
    )
    federation = Federation("toy", "wide", "graph", 7, (wide,), "wide")
    model = build_model(ClientSettings(model=name, hidden=16), federation)
    sides = {"gcn2": 1, "sage": 2}[name]
    assert sum(int(np.prod(shape)) for shape in model.shapes.values()) == sides * 16 * (1433 + 7) + 16 + 7
    assert model.head == {"conv2.weight", "conv2.bias"}
    drawn = model.initial(np.random.default_rng(0))
    assert {key: value.shape for key, value in drawn.items()} == model.shapes
    assert all(value.dtype == np.float32 for value in drawn.values())
    bounds = {"gcn2": (np.sqrt(6 / 1449), np.sqrt(6 / 23)), "sage": (1 / np.sqrt(1433), 1 / 4)}[name]
    for layer, bound in zip(("conv1", "conv2"), bounds, strict=True):
        assert 0.95 * bound < np.abs(drawn[f"{layer}.weight"]).max() <= bound
        largest = np.abs(drawn[f"{layer}.bias"]).max()
        assert largest == 0 if name == "gcn2" else 0.5 * bound < largest <= bound
