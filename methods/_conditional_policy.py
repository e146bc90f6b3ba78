"""FedCP's parts: the conditional policy network, the masks it samples, and how far features are apart.

Parameters are stacks: a leading dimension of clients, matrices ``[inputs, outputs]``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from bench.engine.batch import Stack

POLICY = ("policy.weight", "policy.bias", "policy.norm.weight", "policy.norm.bias")
"""A linear layer from width to 2 x width and its layer normalisation."""

BANDWIDTHS = (10.0, 15.0, 20.0, 50.0)


def initial_policy(width: int, generator: torch.Generator) -> dict[str, Tensor]:
    """One client's network: torch's default linear layer, the identity as normalisation."""
    bound = 1 / math.sqrt(width)
    weight, bias = (
        (2 * torch.rand(*shape, generator=generator) - 1) * bound
        for shape in ((width, 2 * width), (2 * width,))
    )
    return dict(zip(POLICY, (weight, bias, torch.ones(2 * width), torch.zeros(2 * width)), strict=True))


def personal_mask(models: Stack, gate: Tensor, noise: Tensor) -> Tensor:
    """m_p, the personal share of every feature, in (0, 1); that of the global part is 1 - m_p.

    The network gives two values for every feature. A softmax of temperature 1 over both, with Gumbel
    noise on each, is a sigmoid of their difference with logistic noise, which is the difference of two
    Gumbel variables.

    Args:
        models: the policies.
        gate: what they read, ``[clients, items, width]``.
        noise: uniform in [0, 1), of the same shape.
    """
    weight, bias, scale, shift = (models[name] for name in POLICY)
    hidden = torch.baddbmm(bias[:, None, :], gate, weight)
    normal = functional.layer_norm(hidden, hidden.shape[-1:])
    personal, common = torch.relu(normal * scale[:, None, :] + shift[:, None, :]).chunk(2, dim=2)
    return torch.sigmoid(personal - common + torch.logit(noise, eps=1e-7))


def context(head: Tensor) -> Tensor:
    """v ``[clients, width]``: weights ``[clients, width, classes]`` summed over classes, of length 1."""
    return functional.normalize(head.sum(dim=2), dim=1)


def mmd(x: Tensor, y: Tensor, weights: Tensor) -> Tensor:
    """Squared maximum mean discrepancy of two sets of features, ``[clients]``.

    The kernel is sum_a exp(-||.||^2 / 2a) over ``BANDWIDTHS``.

    Args:
        x: features ``[clients, items, width]``.
        y: others of the same items.
        weights: of the items in the means, ``[clients, items]``.
    """
    pairs = weights[:, :, None] * weights[:, None, :]
    return ((kernel(x, x) + kernel(y, y) - 2 * kernel(x, y)) * pairs).sum(dim=(1, 2))


def kernel(x: Tensor, y: Tensor) -> Tensor:
    """Kernel values of any two items, ``[clients, items, items]``."""
    squares = x.square().sum(dim=2)[:, :, None] + y.square().sum(dim=2)[:, None, :]
    distances = torch.baddbmm(squares, x, y.transpose(1, 2), alpha=-2).clamp_min(0)
    return torch.stack([torch.exp(-0.5 / width * distances) for width in BANDWIDTHS]).sum(dim=0)


def padded(draws: Sequence[Tensor], items: int, device: torch.device) -> Tensor:
    """Draws ``[own items, width]`` of every client as ``[clients, items, width]``, 1/2 in the padding."""
    rows = [functional.pad(draw, (0, 0, 0, items - len(draw)), value=0.5) for draw in draws]
    return torch.stack(rows).to(device)
