"""FedSheafHN's graphs of clients: sheaf diffusion, attention, GCN and GAT by hand, and its ablation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from toy_federations import begun

from bench.engine.execute import run
from bench.federation.types import Federation
from bench.methods._collaboration import (
    ClientAttention,
    FreeMatrix,
    GraphAttention,
    GraphConvolution,
    SheafDiffusion,
    apply_laplacian,
    nearest_neighbours,
)
from bench.nn.randomness import seeded


def block_laplacian(maps: Tensor, edges: list[tuple[int, int]]) -> np.ndarray:
    """(D + 1)^-1/2 L (D + 1)^-1/2 with L = B^T B, B the coboundary of the sheaf, as one matrix.

    Row block e = {u, v} of B sends x to F[v, u] x_v - F[u, v] x_u.
    """
    nodes, _, d = maps.shape
    coboundary = np.zeros((len(edges) * d, nodes * d))
    for e, (u, v) in enumerate(edges):
        for s in range(d):
            coboundary[e * d + s, u * d + s] = -float(maps[u, v, s])
            coboundary[e * d + s, v * d + s] = float(maps[v, u, s])
    laplacian = coboundary.T @ coboundary
    scale = np.diag(1 / np.sqrt(np.diag(laplacian) + 1))
    return np.asarray(scale @ laplacian @ scale)


@pytest.mark.parametrize("stalk", [1, 2])
@pytest.mark.parametrize("edges", [[(0, 1), (1, 2)], [(0, 1), (1, 2), (0, 2)], [(0, 2)]])
def test_the_laplacian_against_a_dense_block_matrix(stalk: int, edges: list[tuple[int, int]]) -> None:
    generator = torch.Generator().manual_seed(stalk)
    maps = torch.rand(3, 3, stalk, generator=generator, dtype=torch.float64) * 2 - 1
    adjacency = torch.zeros(3, 3, dtype=torch.float64)
    for u, v in edges:
        adjacency[u, v] = adjacency[v, u] = 1
    x = torch.randn(3, stalk, 4, generator=generator, dtype=torch.float64)
    expected = block_laplacian(maps, edges) @ x.reshape(3 * stalk, 4).numpy()
    got = apply_laplacian(maps, adjacency, x)
    np.testing.assert_allclose(got.reshape(3 * stalk, 4).numpy(), expected, atol=1e-12)


def slow_diffusion(net: SheafDiffusion, x: Tensor, edges: set[tuple[int, int]]) -> Tensor:
    """Diag-NSD edge by edge and node by node, without dropout (facts 8.4)."""
    d, f, n = net.stalk, net.channels, len(x)
    h = torch.nn.functional.elu(net.enter(x)).view(n, d, f)
    maps: dict[tuple[int, int], Tensor] = {}
    for layer in range(len(net.left)):
        if layer == 0 or len(net.learners) > 1:
            for u, v in edges:
                pair = torch.cat([h[u].sum(dim=0), h[v].sum(dim=0)])
                maps[u, v] = torch.tanh(net.learners[min(layer, len(net.learners) - 1)](pair))
        degree = [
            sum((maps[u, v] ** 2 for v in range(n) if (u, v) in edges), torch.zeros(d)) for u in range(n)
        ]
        y = torch.stack([net.left[layer] @ h[u] @ net.right[layer] for u in range(n)])
        rows = []
        for u in range(n):
            row = (degree[u] / (degree[u] + 1))[:, None] * y[u]
            for v in range(n):
                if (u, v) in edges:
                    weight = maps[u, v] * maps[v, u] / torch.sqrt((degree[u] + 1) * (degree[v] + 1))
                    row = row - weight[:, None] * y[v]
            rows.append(row)
        h = (1 + torch.tanh(net.epsilon[layer])) * h - torch.nn.functional.elu(torch.stack(rows))
    return net.leave(h.reshape(n, d * f))  # type: ignore[no-any-return]


@pytest.mark.parametrize("stalk", [1, 3])
@pytest.mark.parametrize("shared", [True, False])
def test_sheaf_diffusion_against_a_slow_one(stalk: int, shared: bool) -> None:
    with seeded(stalk):
        net = SheafDiffusion(6, 4, 3, stalk, dropout_rate=0.5, shared_laplacian=shared)
        with torch.no_grad():  # away from the identity, where a transposed factor would not show
            for parameter in [*net.left, *net.epsilon]:
                parameter.add_(0.3 * torch.randn_like(parameter))
        x = torch.randn(5, 6)
    edges = {(0, 1), (1, 2), (2, 3), (0, 3)}
    edges |= {(v, u) for u, v in edges}  # client 4 is isolated
    adjacency = torch.zeros(5, 5)
    for u, v in edges:
        adjacency[u, v] = 1
    assert torch.allclose(net(x, adjacency, None), slow_diffusion(net, x, edges), atol=1e-5)


def test_the_sheaf_network_has_the_released_size() -> None:
    """6,916 parameters with the released settings (facts 3.7.2, C8)."""
    net = SheafDiffusion(128, 20, 4, 1, 0.3, shared_laplacian=True)
    assert sum(parameter.numel() for parameter in net.parameters()) == 6916


def test_sheaf_dropout_is_drawn_from_its_generator_only() -> None:
    with seeded(0):
        net = SheafDiffusion(6, 4, 3, 1, dropout_rate=0.5, shared_laplacian=True)
        x = torch.randn(5, 6)
    graph = 1 - torch.eye(5)
    one, again, other = (net(x, graph, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.allclose(one, other)
    assert torch.equal(net(x, graph, None), net(x, graph, None))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(1, 12), st.integers(0, 10**6))
def test_nearest_neighbours_against_sorting(nodes: int, neighbours: int, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(nodes, 5))
    expected = np.zeros((nodes, nodes))
    for u in range(nodes):
        others = [v for v in range(nodes) if v != u]
        others.sort(key=lambda v: -float(x[u] @ x[v] / np.linalg.norm(x[u]) / np.linalg.norm(x[v])))
        for v in others[:neighbours]:
            expected[u, v] = expected[v, u] = 1
    got = nearest_neighbours(torch.from_numpy(x), neighbours)
    assert np.array_equal(got.numpy(), expected)


@pytest.mark.parametrize("scaled", [True, False])
def test_attention_is_equation_10_with_scaling_and_residual(scaled: bool) -> None:
    """As printed it has neither."""
    with seeded(0):
        attention = ClientAttention(4, residual=True, scaled=scaled)
        plain = ClientAttention(4, residual=False, scaled=scaled)
        x = torch.randn(3, 4)
        for parameter in attention.parameters():
            parameter.data = torch.randn(4, 4)
    plain.load_state_dict(attention.state_dict())
    q, k, v = (x @ matrix for matrix in (attention.query, attention.key, attention.value))
    expected = torch.zeros(3, 4)
    for i in range(3):
        weights = [math.exp(float(q[i] @ k[j]) / (2 if scaled else 1)) for j in range(3)]  # sqrt(4) = 2
        for j in range(3):
            expected[i] += weights[j] / sum(weights) * v[j].detach()
    assert torch.allclose(plain(x), expected, atol=1e-5)
    assert torch.allclose(attention(x), x + expected, atol=1e-5)


def test_the_free_matrix_starts_as_the_identity() -> None:
    free, x, noise = FreeMatrix(4), torch.randn(4, 6), torch.randn(4, 4)
    assert torch.equal(free(x), x)
    free.matrix.data += noise
    assert torch.allclose(free(x), (torch.eye(4) + noise) @ x)


PATH = torch.tensor([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])


def test_convolution_weighs_neighbours_by_degrees() -> None:
    """A path of three nodes: degrees with loops 2, 3, 2."""
    layer = GraphConvolution(2)
    x = torch.randn(3, 2)
    degrees = [2, 3, 2]
    rows = []
    for u, near in enumerate(([0, 1], [0, 1, 2], [1, 2])):
        mixed = sum(x[v] / math.sqrt(degrees[u] * degrees[v]) for v in near)
        rows.append(layer.linear.weight @ mixed + layer.linear.bias)
    assert torch.allclose(layer(x, PATH), torch.stack(rows), atol=1e-6)


def test_attention_is_a_softmax_over_neighbours_and_oneself() -> None:
    layer = GraphAttention(2)
    x = torch.randn(3, 2)
    h = [layer.linear.weight @ x[v] + layer.linear.bias for v in range(3)]
    rows = []
    for u, near in enumerate(([0, 1], [0, 1, 2], [1, 2])):
        scores = []
        for v in near:
            raw = (layer.mine.weight[0] @ h[u] + layer.other.weight[0] @ h[v]).item()
            scores.append(math.exp(raw if raw > 0 else 0.2 * raw))
        rows.append(sum(s / sum(scores) * h[v] for s, v in zip(scores, near, strict=True)))
    assert torch.allclose(layer(x, PATH), torch.stack(rows), atol=1e-6)


@pytest.mark.parametrize(
    "hyper",
    [
        {"inputs": "one-hot", "collaboration": "none", "attention": "none"},
        {"collaboration": "none", "attention": "none", "refresh": 0},
        {"attention": "none", "refresh": 0},
        {"refresh": 0},
        {"collaboration": "gcn"},
        {"collaboration": "gat"},
        {"collaboration": "none"},
    ],
)
def test_every_row_of_the_ablation_learns(federation: Federation, hyper: dict[str, object]) -> None:
    it = begun("fedsheafhn", federation, client={"hidden": 8}, rounds=4, hyper=hyper)
    before = [parameter.clone() for parameter in (*it.method.theta, *it.method.phi)]
    first = it.method.x0.clone()
    if hyper.get("inputs") == "one-hot":  # a number and nothing of the data
        assert torch.equal(first, torch.eye(len(federation)))
    for round in range(4):
        it.step(round)
    learnt = [*it.method.theta, *it.method.phi]
    assert all(not torch.equal(a, b) for a, b in zip(before, learnt, strict=True) if b.grad is not None)
    assert any(parameter.grad is not None for parameter in it.method.phi)
    assert torch.equal(first, it.method.x0)  # refresh is 5 or never
    assert run(it.spec, federation).state == "done"
