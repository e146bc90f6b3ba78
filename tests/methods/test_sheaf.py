"""Sheaf diffusion and the graphs of clients, by hand and against slow ones."""

from __future__ import annotations

import math

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


def test_the_laplacian_in_numbers() -> None:
    """Path 0 - 1 - 2, stalk 1: maps 1 and 2 on the first edge, 3 and -1 on the second."""
    maps = torch.zeros(3, 3, 1)
    maps[0, 1, 0], maps[1, 0, 0], maps[1, 2, 0], maps[2, 1, 0] = 1, 2, 3, -1
    adjacency = torch.tensor([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])
    # D = 1, 4 + 9, 1; off the diagonal -1 * 2 and -3 * -1; all over sqrt((D_u + 1)(D_v + 1))
    expected = torch.tensor(
        [
            [1 / 2, -2 / math.sqrt(2 * 14), 0],
            [-2 / math.sqrt(2 * 14), 13 / 14, 3 / math.sqrt(14 * 2)],
            [0, 3 / math.sqrt(14 * 2), 1 / 2],
        ]
    )
    got = apply_laplacian(maps, adjacency, torch.eye(3)[:, None, :])[:, 0]
    assert torch.allclose(got, expected, atol=1e-6)


def test_an_isolated_client_is_sent_to_zero() -> None:
    x = torch.randn(3, 2, 4)
    assert torch.equal(apply_laplacian(torch.rand(3, 3, 2), torch.zeros(3, 3), x), torch.zeros_like(x))


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


def test_one_laplacian_a_layer_differs_from_one_for_all() -> None:
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
    outs, sizes = [], []
    for shared in (True, False):
        with seeded(0):
            net = SheafDiffusion(6, 4, 3, 1, 0.0, shared)
        outs.append(net(x, complete_graph(4), None))
        sizes.append(len(net.learners))
    assert sizes == [1, 3]
    assert not torch.allclose(outs[0], outs[1], atol=1e-4)


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


def test_nearest_neighbours_by_hand() -> None:
    # directions of 0, 10, 80 and 180 degrees; lengths must not matter
    angles = torch.tensor([0.0, 10.0, 80.0, 180.0]) * math.pi / 180
    x = torch.stack([angles.cos(), angles.sin()], dim=1) * torch.tensor([[5.0], [0.1], [1.0], [2.0]])
    # nearest: 0 -> 1, 1 -> 0, 2 -> 1, 3 -> 2
    expected = [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]]
    assert nearest_neighbours(x, 1).tolist() == expected


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
