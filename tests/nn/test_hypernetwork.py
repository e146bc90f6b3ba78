"""The hypernetwork, by hand and by autograd."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bench.nn.hypernetwork import Hypernetwork, clip_gradients
from bench.nn.randomness import seeded

SHAPES = {"conv1.weight": (3, 4), "conv1.bias": (4,), "head": (4, 2)}


def small_network(dropout_rate: float = 0.0, linear_end: bool = False) -> Hypernetwork:
    with seeded(1):
        return Hypernetwork([5, 6, 7], SHAPES, dropout_rate, linear_end).double()


def differentiable(network: Hypernetwork, features: Tensor) -> dict[str, Tensor]:
    """What ``emit`` computes, with a graph."""
    layers: dict[str, Any] = dict(zip(SHAPES, network.out.values(), strict=True))
    return {name: layers[name](features).view(len(features), *shape) for name, shape in SHAPES.items()}


@pytest.mark.parametrize("linear_end", [False, True])
def test_emitted_parameters(linear_end: bool) -> None:
    network = small_network(0.4, linear_end)
    first, last = network.body
    x = torch.randn(3, 5, dtype=torch.float64)
    hidden = last(torch.relu(first(x)))
    features = network.features(x, None)
    assert torch.allclose(features, hidden if linear_end else torch.relu(hidden))
    is_dropped = (network.features(x, torch.Generator().manual_seed(1)) == 0).any()
    assert is_dropped != linear_end
    emitted = network.emit(features)
    for name, value in differentiable(network, features).items():
        assert torch.allclose(emitted[name], value.detach())
        assert not emitted[name].requires_grad


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
