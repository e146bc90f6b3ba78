"""The client models of graphs and hypergraphs against plain modules of one client, and their parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor
from torch.func import functional_call
from torch_geometric.nn import GCNConv, SAGEConv
from toy_federations import both_ways, make_spec, random_federation

from bench.engine.run import Run
from bench.federation.types import TRAIN, Client, Federation
from bench.nn.base import ClientModel
from bench.nn.gcn import CommonGraph, GraphInputs
from bench.nn.models import build_model
from bench.nn.sage import neighbour_means, receptive_field
from bench.nn.sparse import csr_tensor, product
from bench.spec import ClientSettings

CPU = torch.device("cpu")
HIDDEN = 6
MODELS = ["gcn", "gcn2", "sage", "hgnn", "hgnn_relu"]

Drop = Callable[[Tensor, int], Tensor]


def convolved(name: str, w: Mapping[str, Tensor], layer: str, x: Tensor, edges: Tensor) -> Tensor:
    """One of torch-geometric's layers with a client's weights."""
    weight, bias = w[f"{layer}.weight"], w[f"{layer}.bias"]
    if name == "sage":
        roots, neighbours = weight.chunk(2, dim=1)
        own = {"lin_r.weight": roots.t(), "lin_l.weight": neighbours.t(), "lin_l.bias": bias}
        result: Tensor = functional_call(SAGEConv(len(weight), len(bias), aggr="mean"), own, (x, edges))
        return result
    return functional_call(GCNConv(*weight.shape), {"lin.weight": weight.t(), "bias": bias}, (x, edges))  # type: ignore[no-any-return]


def plain(name: str, w: Mapping[str, Tensor], client: Client, drop: Drop) -> tuple[Tensor, Tensor]:
    """Logits and embeddings of one client's nodes, by its weights."""
    x, edges = torch.from_numpy(client.dense()), torch.from_numpy(client.edges)
    if name.startswith("hgnn"):
        embedding = x @ w["theta1"]
        logits = drop(embedding, 0) @ w["theta2"]
        return (torch.relu(logits) if name == "hgnn_relu" else logits), embedding
    embedding = convolved(name, w, "conv1", x, edges)
    if name == "gcn":
        embedding = convolved(name, w, "conv2", drop(torch.relu(embedding), 0), edges)
        return drop(torch.relu(embedding), 1) @ w["head.weight"] + w["head.bias"], embedding
    return convolved(name, w, "conv2", drop(torch.relu(embedding), 0), edges), embedding


def two(name: str, dense: bool) -> tuple[Federation, ClientModel, dict[str, Tensor]]:
    """Clients of nine and thirty-one nodes, some of them isolated, a model, and weights without zeros."""
    federation = random_federation((9, 31), seed=2, dense=dense)
    model = build_model(ClientSettings(model=name, hidden=HIDDEN), federation)
    rng = torch.Generator().manual_seed(0)
    sizes = {key: (len(federation), *shape) for key, shape in model.shapes.items()}
    return federation, model, {key: torch.randn(size, generator=rng) for key, size in sizes.items()}


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_logits_embeddings_and_gradients_of_training_nodes_are_those_of_plain_modules(
    name: str, dense: bool
) -> None:
    federation, model, stack = two(name, dense)
    inputs = model.collate(federation.clients, CPU)
    if isinstance(inputs, GraphInputs):
        assert (inputs.dense is not None) == dense
    rng = np.random.default_rng(0)
    masks = torch.from_numpy(2.0 * rng.integers(0, 2, (2, 2, 31, HIDDEN))).float()
    slope = torch.from_numpy(rng.normal(size=(2, 31, 3))).float()
    leaves = {key: value.requires_grad_() for key, value in stack.items()}
    output = model.forward(leaves, inputs, lambda x, site: x * masks[site])
    for index, client in enumerate(federation.clients):
        training = torch.from_numpy(np.flatnonzero(client.roles == TRAIN))
        mask, own = masks[:, index, : len(client.ids)], {key: w[index] for key, w in leaves.items()}
        expected = plain(name, own, client, lambda x, site, mask=mask: x * mask[site])
        for got, wanted in zip((output.logits, output.embedding), expected, strict=True):
            torch.testing.assert_close(got[index, training], wanted[training], atol=1e-5, rtol=1e-5)
        weights = slope[index, training]
        sums = ((logits[training] * weights).sum() for logits in (output.logits[index], expected[0]))
        ours, theirs = (torch.autograd.grad(s, list(leaves.values()), retain_graph=True) for s in sums)
        for got, wanted in zip(ours, theirs, strict=True):
            torch.testing.assert_close(got, wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_evaluation_is_that_of_plain_modules_at_every_node(name: str, dense: bool) -> None:
    federation, model, stack = two(name, dense)
    output = model.forward(stack, model.collate(federation.clients, CPU), None)
    for index, client in enumerate(federation.clients):
        own = {key: value[index] for key, value in stack.items()}
        logits, embedding = plain(name, own, client, lambda x, site: x)
        size = len(client.ids)
        torch.testing.assert_close(output.logits[index, :size], logits, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(output.embedding[index, :size], embedding, atol=1e-5, rtol=1e-5)


def within(fan_in: int) -> float:
    return float(1 / np.sqrt(fan_in))


def glorot(fan_in: int, fan_out: int) -> float:
    return float(np.sqrt(6 / (fan_in + fan_out)))


@pytest.mark.parametrize(
    ("name", "hidden", "bounds", "head"),
    [
        (
            "gcn",
            128,
            {"conv1.weight": glorot(1433, 128), "conv1.bias": 0, "conv2.weight": glorot(128, 128)}
            | {"conv2.bias": 0, "head.weight": within(128), "head.bias": within(128)},
            128 * 7 + 7,
        ),
        (
            "gcn2",
            16,
            {
                "conv1.weight": glorot(1433, 16),
                "conv1.bias": 0,
                "conv2.weight": glorot(16, 7),
                "conv2.bias": 0,
            },
            16 * 7 + 7,
        ),
        (
            "sage",
            16,
            dict.fromkeys(("conv1.weight", "conv1.bias"), within(1433))
            | dict.fromkeys(("conv2.weight", "conv2.bias"), within(16)),
            2 * 16 * 7 + 7,
        ),
        ("hgnn", 64, {"theta1": within(1433), "theta2": within(64)}, 64 * 7),
    ],
)
def test_sizes_and_initial_weights(name: str, hidden: int, bounds: dict[str, float], head: int) -> None:
    """Of Cora's widths: Glorot for convolutions, torch's default for others; the largest weight is near."""
    wide = Client(
        ids=np.arange(1),
        labels=np.zeros(1, np.int64),
        roles=np.zeros(1, np.int8),
        features=sparse.csr_matrix((1, 1433), dtype=np.float32),
        edges=both_ways([]),
    )
    federation = Federation("toy", "wide", "graph", 7, (wide,), "wide")
    model = build_model(ClientSettings(model=name, hidden=hidden), federation)
    drawn = model.initial(np.random.default_rng(0))
    assert list(drawn) == list(bounds)
    assert {key: value.shape for key, value in drawn.items()} == model.shapes
    assert all(value.dtype == np.float32 for value in drawn.values())
    assert sum(drawn[key].size for key in model.head) == head
    if name == "gcn":  # facts 3.7.2, C9
        assert sum(value.size for value in drawn.values()) - head == 200_064
    for key, bound in bounds.items():
        least = 0.9 if drawn[key].ndim == 2 else 0.5
        assert least * bound <= np.abs(drawn[key]).max() <= bound


@pytest.mark.parametrize("dense", [False, True])
def test_one_model_for_all_equals_its_copies(dense: bool) -> None:
    inputs = GraphInputs(random_federation(dense=dense).clients, not dense, CPU)
    weight = torch.randn(48, 6)
    with torch.no_grad():
        shared = inputs.first_layer(weight.expand(5, 48, 6))
        copies = inputs.first_layer(weight.repeat(5, 1, 1))
    assert torch.allclose(shared, copies, atol=1e-6)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("chosen", [1, 3])
def test_embeddings_on_common_data(dense: bool, chosen: int) -> None:
    federation = random_federation(dense=dense)
    common = federation.clients[chosen]
    it = Run(make_spec("local", federation), federation, block_size=2)
    everywhere = replace(federation, clients=(common,) * len(federation))
    expected = Run(make_spec("local", everywhere), everywhere, block_size=2).clients.embeddings(it.own)
    assert torch.allclose(it.clients.embeddings(it.own, on=common), expected, atol=1e-5)
    own = it.clients.embeddings(it.own)
    assert torch.allclose(own[chosen], expected[chosen], atol=1e-5)
    assert not torch.allclose(own, expected, atol=1e-2)


def test_common_features_are_held_once() -> None:
    client = random_federation().clients[2]
    one, many = (CommonGraph(client, count, CPU).dense for count in (1, 7))
    assert one is not None
    assert many is not None
    assert many.shape == (7, *one.shape[1:])
    assert many.untyped_storage().nbytes() == one.untyped_storage().nbytes()


def test_what_a_training_node_depends_on_by_hand() -> None:
    # path 0 - 1 - 2 - 3 - 4, a triangle 5 - 6 - 7 and node 8 alone
    edges = both_ways([(0, 1), (1, 2), (2, 3), (3, 4), (5, 6), (6, 7), (5, 7)])
    means = neighbour_means(edges, 9)
    for training, reached in (([0], [0, 1, 2]), ([2, 8], [0, 1, 2, 3, 4, 8]), ([6], [5, 6, 7]), ([], [])):
        nodes = np.isin(np.arange(9), training)
        np.testing.assert_array_equal(receptive_field(means, nodes), reached)


def test_a_sparse_product_overwrites_whatever_memory_held(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    held = torch.full((7, 5), float("nan"))
    monkeypatch.setattr(torch.Tensor, "new_empty", lambda self, *shape: held)
    for density in (0.2, 0.0):
        matrix = sparse.random(7, 9, density, format="csr", dtype=np.float32, random_state=0)
        dense = torch.from_numpy(rng.normal(size=(9, 5)).astype(np.float32))
        got = product(csr_tensor(matrix, CPU), dense)
        np.testing.assert_allclose(got.numpy(), matrix.toarray() @ dense.numpy(), atol=1e-6)
