"""What FedAux's nodes read of all nodes of their client: means under a kernel between scores."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

PAIRS = 2**25
"""Kernel values held at once: beyond that rows of the kernel are computed in pieces, in training twice."""


def mean(h: Tensor, node: Tensor) -> Tensor:
    """The mean of h ``[c, items, d]`` over the nodes, the same at every item."""
    weights = (node / node.sum(dim=1, keepdim=True))[:, None, :]
    return torch.bmm(weights, h).expand_as(h)


def kernel_means(h: Tensor, scores: Tensor, node: Tensor, sigma: float, pairs: int = PAIRS) -> Tensor:
    """z_v = sum_u k_vu h_u / sum_u k_vu with k_uv = exp(-(s_u - s_v)^2 / sigma^2), over the nodes u.

    Args:
        h: ``[c, items, d]``.
        scores: s ``[c, items]``.
        node: 1 for nodes and 0 for padding, ``[c, items]``.
        sigma: width of the kernel.
        pairs: most kernel values to hold at once.
    """

    def rows(part: Tensor) -> Tensor:
        k = torch.exp(-((part[:, :, None] - scores[:, None, :]) ** 2) / sigma**2) * node[:, None, :]
        total = k.sum(dim=2, keepdim=True).clamp_min(
            1e-30
        )  # 1 or more at a node; padding may be far from all
        return torch.bmm(k, h) / total

    pieces = -(-scores.numel() * scores.shape[1] // pairs)
    if pieces == 1:
        return rows(scores)
    parts = [checkpoint(rows, part, use_reentrant=False) for part in scores.chunk(pieces, dim=1)]
    return torch.cat(parts, dim=1)
