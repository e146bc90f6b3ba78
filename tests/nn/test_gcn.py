"""The client model's pieces: adjacency, sparse first layer, propagation, padding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor
from toy_federations import both_ways, make_spec, random_federation

from bench.engine.run import Run
from bench.federation.types import Client, Federation
from bench.nn.gcn import GCN, CommonGraph, GraphInputs, normalised_adjacency
from bench.nn.models import build_model
from bench.spec import ClientSettings

CPU = torch.device("cpu")


def test_normalised_adjacency_of_a_path_and_an_isolated_node() -> None:
    # path 0 - 1 - 2 and node 3 alone: degrees with loops 2, 3, 2, 1
    expected = np.array(
        [
            [1 / 2, 1 / np.sqrt(6), 0, 0],
            [1 / np.sqrt(6), 1 / 3, 1 / np.sqrt(6), 0],
            [0, 1 / np.sqrt(6), 1 / 2, 0],
            [0, 0, 0, 1],
        ]
    )
    got = normalised_adjacency(both_ways([(0, 1), (1, 2)]), 4)
    np.testing.assert_allclose(got.toarray(), expected, rtol=1e-6)
    np.testing.assert_allclose(normalised_adjacency(both_ways([]), 2).toarray(), np.eye(2))


def features_of(federation: Federation) -> list[Tensor]:
    return [
        torch.from_numpy(
            client.features if isinstance(client.features, np.ndarray) else client.features.toarray()
        )
        for client in federation.clients
    ]


@pytest.mark.parametrize("dense", [False, True])
def test_first_layer_and_its_gradient(dense: bool) -> None:
    federation = random_federation(dense=dense)
    inputs = GCN(federation.clients, 2, ClientSettings()).collate(federation.clients, CPU)
    assert (inputs.dense is not None) == dense
    weight = torch.randn(5, 48, 6, requires_grad=True)
    other = torch.randn(5, 48, 6, requires_grad=True)
    slope = torch.randn(5 * 60, 6)
    for _ in range(2):  # the buffer is used again in the second step
        inputs.begin_step()
        # two uses within a step: the second must not overwrite the gradient of the first
        out = inputs.first_layer(weight) * slope, inputs.first_layer(other) * slope.square()
        got = torch.autograd.grad(out[0].sum() + out[1].sum(), [weight, other])
        for index, x in enumerate(features_of(federation)):
            rows = slice(60 * index, 60 * index + len(x))
            assert torch.allclose(out[0][rows] / slope[rows], x @ weight[index], atol=1e-4)
            assert torch.allclose(got[0][index], x.t() @ slope[rows], atol=1e-4)
            assert torch.allclose(got[1][index], x.t() @ slope[rows].square(), atol=1e-4)


@pytest.mark.parametrize("dense", [False, True])
def test_one_model_for_all_equals_its_copies(dense: bool) -> None:
    inputs = GraphInputs(random_federation(dense=dense).clients, not dense, CPU)
    weight = torch.randn(48, 6)
    with torch.no_grad():
        shared = inputs.first_layer(weight.expand(5, 48, 6))
        copies = inputs.first_layer(weight.repeat(5, 1, 1))
    assert torch.allclose(shared, copies, atol=1e-6)


def test_padding_and_neighbours_in_a_block_change_nothing() -> None:
    federation = random_federation()
    model = build_model(make_spec("local", federation).client, federation)
    drawn = [model.initial(np.random.default_rng(index)) for index in range(5)]
    stack = {name: torch.from_numpy(np.stack([one[name] for one in drawn])) for name in drawn[0]}
    together = model.forward(stack, model.collate(federation.clients, CPU), None)
    for index, client in enumerate(federation.clients):
        one = {name: value[index : index + 1] for name, value in stack.items()}
        alone = model.forward(one, model.collate([client], CPU), None)
        nodes = len(client.ids)
        assert torch.allclose(together.logits[index, :nodes], alone.logits[0], atol=1e-6)
        assert torch.allclose(together.embedding[index, :nodes], alone.embedding[0], atol=1e-6)


def test_a_client_without_a_word_or_an_edge() -> None:
    empty = Client(
        ids=np.arange(3),
        labels=np.zeros(3, np.int64),
        roles=np.zeros(3, np.int8),
        features=sparse.csr_matrix((3, 4), dtype=np.float32),
        edges=both_ways([]),
    )
    model = GCN([empty], 2, ClientSettings(hidden=5))
    drawn = model.initial(np.random.default_rng(0))
    stack = {name: torch.from_numpy(value)[None] for name, value in drawn.items()}
    stack["conv1.bias"] = torch.full((1, 5), 2.0)
    logits = model.forward(stack, model.collate([empty], CPU), None).logits
    hidden = torch.relu(torch.full((5,), 2.0) @ stack["conv2.weight"][0])
    assert torch.allclose(logits[0, 0], hidden @ stack["head.weight"][0] + stack["head.bias"][0], atol=1e-6)


def test_sizes_and_initial_weights() -> None:
    """Cora's backbone has 200,064 parameters (facts 3.7.2, C9); Glorot convolutions, zero bias."""
    wide = Client(
        ids=np.arange(1),
        labels=np.zeros(1, np.int64),
        roles=np.zeros(1, np.int8),
        features=sparse.csr_matrix((1, 1433), dtype=np.float32),
        edges=both_ways([]),
    )
    model = GCN([wide], 7, ClientSettings())
    backbone = sum(int(np.prod(shape)) for name, shape in model.shapes.items() if name not in model.head)
    assert backbone == 200_064
    assert {name: model.shapes[name] for name in model.head} == {"head.weight": (128, 7), "head.bias": (7,)}
    drawn = model.initial(np.random.default_rng(0))
    assert {name: value.shape for name, value in drawn.items()} == model.shapes
    assert all(value.dtype == np.float32 for value in drawn.values())
    bound = np.sqrt(6 / (1433 + 128))
    assert 0.99 * bound < np.abs(drawn["conv1.weight"]).max() <= bound
    assert not drawn["conv1.bias"].any()
    assert 0.9 / np.sqrt(128) < np.abs(drawn["head.weight"]).max() <= 1 / np.sqrt(128)


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
    one, many = (CommonGraph(client, count, torch.device("cpu")) for count in (1, 7))
    assert one.dense is not None
    assert many.dense is not None
    assert many.dense.shape == (7, *one.dense.shape[1:])
    assert many.dense.untyped_storage().nbytes() == one.dense.untyped_storage().nbytes()
