"""Sheaf diffusion, attention, hypernetwork and the collaboration graph, by hand and by autograd."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bench.methods._attention import ClientAttention, FreeMatrix
from bench.methods._sheaf import SheafDiffusion, apply_laplacian, complete_graph, nearest_neighbours
from bench.nn.hypernetwork import Hypernetwork, clip_gradients
from bench.nn.randomness import seeded


@pytest.fixture(autouse=True)
def same_numbers_every_time() -> None:
    torch.manual_seed(0)


# sheaf Laplacian


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


# collaboration graph


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


# attention


def test_attention_is_equation_10_with_scaling_and_residual() -> None:
    with seeded(0):
        attention = ClientAttention(4, residual=True)
        plain = ClientAttention(4, residual=False)
        x = torch.randn(3, 4)
        for parameter in attention.parameters():
            parameter.data = torch.randn(4, 4)
    plain.load_state_dict(attention.state_dict())
    q, k, v = (x @ matrix for matrix in (attention.query, attention.key, attention.value))
    expected = torch.zeros(3, 4)
    for i in range(3):
        weights = [math.exp(float(q[i] @ k[j]) / 2) for j in range(3)]  # sqrt(4) = 2
        for j in range(3):
            expected[i] += weights[j] / sum(weights) * v[j].detach()
    assert torch.allclose(plain(x), expected, atol=1e-5)
    assert torch.allclose(attention(x), x + expected, atol=1e-5)


def test_attention_starts_near_a_plain_mean_beside_the_client_itself() -> None:
    with seeded(0):
        attention = ClientAttention(16, residual=True)
        x = torch.randn(5, 16)
    assert torch.allclose(attention(x), x + x.mean(dim=0), atol=0.1)


def test_attention_follows_its_clients_and_the_free_matrix_does_not() -> None:
    order = [2, 0, 3, 1]
    with seeded(0):
        attention, free = ClientAttention(6, residual=True), FreeMatrix(4)
        x = torch.randn(4, 6)
        noise = torch.randn(4, 4)
    assert torch.equal(free(x), x)
    assert torch.allclose(attention(x)[order], attention(x[order]), atol=1e-6)
    free.matrix.data += noise
    assert torch.allclose(free(x), (torch.eye(4) + noise) @ x)
    assert not torch.allclose(free(x)[order], free(x[order]), atol=1e-2)


# hypernetwork

SHAPES = {"conv1.weight": (3, 4), "conv1.bias": (4,), "head": (4, 2)}


def small_network(dropout_rate: float = 0.0, linear_end: bool = False) -> Hypernetwork:
    with seeded(1):
        return Hypernetwork([5, 6, 7], SHAPES, dropout_rate, linear_end).double()


def differentiable(network: Hypernetwork, features: Tensor) -> dict[str, Tensor]:
    """What ``emit`` computes, with a graph."""
    layers: dict[str, Any] = dict(zip(SHAPES, network.out.values(), strict=True))
    return {name: layers[name](features).view(len(features), *shape) for name, shape in SHAPES.items()}


def test_emitted_parameters() -> None:
    network = small_network()
    x = torch.randn(3, 5, dtype=torch.float64)
    hidden = x
    for layer in network.body:
        assert isinstance(layer, torch.nn.Linear)
        hidden = torch.relu(hidden @ layer.weight.t() + layer.bias)
    features = network.features(x, None)
    assert torch.allclose(features, hidden)
    emitted = network.emit(features)
    for name, value in differentiable(network, hidden).items():
        assert torch.allclose(emitted[name], value.detach())
        assert not emitted[name].requires_grad


def test_a_linear_end_lets_negative_values_through() -> None:
    network = small_network(0.4, linear_end=True)
    first, last = network.body
    x = torch.randn(3, 5, dtype=torch.float64)
    features = network.features(x, None)
    assert torch.allclose(features, last(torch.relu(first(x))))
    assert (features < 0).any()
    assert not (network.features(x, torch.Generator().manual_seed(1)) == 0).any(), "nor is any dropped"


@pytest.mark.parametrize("linear_end", [False, True])
@pytest.mark.parametrize("dropout_rate", [0.0, 0.4])
def test_pull_back_is_autograd(dropout_rate: float, linear_end: bool) -> None:
    """Twice in a row: kept gradient memory must be overwritten, not added to."""
    network = small_network(dropout_rate, linear_end)
    for seed in (1, 2):
        x = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
        gradient = {name: torch.randn(3, *shape, dtype=torch.float64) for name, shape in SHAPES.items()}
        features = network.features(x, torch.Generator().manual_seed(seed))
        surrogate = sum((differentiable(network, features)[name] * gradient[name]).sum() for name in SHAPES)
        parameters = list(network.parameters())
        expected = torch.autograd.grad(surrogate, [x, *parameters], retain_graph=True)  # type: ignore[arg-type]
        for parameter in network.body.parameters():
            parameter.grad = None
        features.backward(network.pull_back(features.detach(), gradient))
        for got, wanted in zip([x, *parameters], expected, strict=True):
            assert got.grad is not None
            assert torch.allclose(got.grad, wanted, atol=1e-12)


def test_start_from_a_model_plus_a_scaled_part() -> None:
    model = {name: torch.randn(shape, dtype=torch.float64) for name, shape in SHAPES.items()}
    x = torch.randn(3, 5, dtype=torch.float64)
    network, untouched = small_network(), small_network()
    nothing = torch.zeros(1, 7, dtype=torch.float64)
    biases = {name: value[0] for name, value in untouched.emit(nothing).items()}
    network.start_from(model, scale=0.1)
    features = network.features(x, None)
    for name, value in network.emit(features).items():
        part = untouched.emit(features)[name] - biases[name]
        assert torch.allclose(value, model[name] + 0.1 * part)


@given(st.floats(0.1, 20), st.floats(0.01, 20))
def test_clipping_is_of_the_joint_norm(scale: float, limit: float) -> None:
    parameters = [torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(1))]
    without = torch.nn.Parameter(torch.zeros(1))
    parameters[0].grad = scale * torch.tensor([2.0, -3.0])
    parameters[1].grad = scale * torch.tensor([6.0])  # joint norm 7
    clip_gradients([*parameters, without], limit)
    factor = min(1.0, limit / (7 * scale))
    assert torch.allclose(parameters[0].grad, factor * scale * torch.tensor([2.0, -3.0]), rtol=1e-4)
    assert torch.allclose(parameters[1].grad, factor * scale * torch.tensor([6.0]), rtol=1e-4)
    assert without.grad is None


def test_seeded_networks_leave_the_global_stream_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with seeded(1):
        one = torch.nn.Linear(2, 2).weight
    with seeded(1):
        again = torch.nn.Linear(2, 2).weight
    assert torch.equal(one, again)
    assert torch.equal(torch.rand(3), expected)
