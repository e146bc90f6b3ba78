"""Arithmetic on stacks against plain loops and by hand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from bench.engine.stacks import inner_products, squared_distances


@pytest.fixture
def stack() -> dict[str, Tensor]:
    """Three clients' models, parameters of two layers in no particular order."""
    draw = torch.Generator().manual_seed(7)
    shapes = {"b.weight": (4,), "a.weight": (2, 3), "a.bias": (3,)}
    return {name: torch.randn(3, *shape, generator=draw) for name, shape in shapes.items()}


def test_sums_over_parameters_keep_float64() -> None:
    """1 beside 2^24 would be lost in a float32 sum."""
    stack = {"large": torch.tensor([[2.0**12]]), "small": torch.tensor([[1.0]])}
    assert inner_products(stack, stack).item() == 2.0**24 + 1


def test_distances_are_exact_far_from_the_origin(stack: dict[str, Tensor]) -> None:
    """Differences of 1/64 beside a common 512: without their mean, products in float32 lose them."""
    steps = {name: torch.round(value * 4) / 64 for name, value in stack.items()}
    far = {name: value + 512 for name, value in steps.items()}
    flat = torch.cat([value.double().flatten(1) for value in steps.values()], dim=1)
    expected = (flat[:, None] - flat[None, :]).square().sum(dim=2)
    assert torch.allclose(squared_distances(far), expected, rtol=1e-4)
    assert squared_distances(far).diagonal().eq(0).all()
