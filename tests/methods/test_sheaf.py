"""Sheaf diffusion and the graphs of clients, by hand and against slow ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bench.methods._collaboration import SheafDiffusion, apply_laplacian, complete_graph, nearest_neighbours
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
    graph = complete_graph(5)
    one, again, other = (net(x, graph, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.allclose(one, other)
    assert torch.equal(net(x, graph, None), net(x, graph, None))


def test_complete_graph() -> None:
    assert complete_graph(3).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert complete_graph(1).tolist() == [[0]]


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
