"""Routing of neighbours over latent factors, and divergences of Gaussians (FedIIH)."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.engine.batch import Batch
from bench.nn.gcn import graphs
from bench.nn.sparse import Neighbours

Edges = tuple[Tensor, Tensor]
"""Sources and targets of a block's edges in both directions, as positions among all its items."""

SMALLEST = 1e-12
"""Norms up to this count as zero."""


def edges_of(batch: Batch) -> Edges:
    """The edges of a block of clients, without loops."""
    adjacency = graphs(batch.inputs).adjacency
    columns = adjacency.col_indices().long()
    counts = adjacency.crow_indices().diff().long()
    targets = torch.repeat_interleave(torch.arange(len(counts), device=columns.device), counts)
    mask = columns != targets
    return columns[mask], targets[mask]


def neighbours_of(batch: Batch) -> Neighbours:
    """The neighbours of all items of a block of clients."""
    return Neighbours(*edges_of(batch), batch.labels.numel())


def route(x: Tensor, edges: Neighbours, steps: int) -> Tensor:
    """A layer without parameters, ``[factors, items, width]`` -> the same, with factors of norm 1.

    Every step divides each neighbour s among the factors by its similarity to the node t so far: p_k =
    softmax_k <x_s^k, u_t^k>. Then u_t^k = x_t^k + sum_s p_k x_s^k, normalised.
    """
    x = u = normalised(x).contiguous()
    for _ in range(steps):
        products = torch.stack([edges.products(*pair) for pair in zip(u, x, strict=True)])
        scale = 1 / torch.linalg.vector_norm(u, dim=2).clamp_min(SMALLEST)  # u is normalised at the end
        p = (products * scale[:, edges.targets]).softmax(dim=0)
        u = x + torch.stack([edges.sums(*pair) for pair in zip(p, x, strict=True)])
    return normalised(u)


def normalised(x: Tensor) -> Tensor:
    """Scale every factor of ``x`` ``[..., width]`` to norm 1.

    Factors that dropout set to zero stay zero without a gradient: the gradient of a norm is unbounded there.
    """
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return torch.where(norm > SMALLEST, x / norm.clamp_min(SMALLEST), 0.0)


def divergences(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Jensen-Shannon divergences of diagonal Gaussians ``[clients, width]``, float64 ``[clients, clients]``.

    A divergence is half the sum of KL(N_i || M) and KL(N_j || M), summed over dimensions. M is the Gaussian
    with the mean moments of both, not their mixture, so ln 2 is no bound.
    """
    mean, variance = mean.double(), log_variance.double().exp()
    midpoint = (mean[:, None] + mean[None]) / 2
    spread = (variance[:, None] + variance[None]) / 2
    ratio = variance[:, None] / spread
    forward = (ratio - 1 - ratio.log() + (mean[:, None] - midpoint) ** 2 / spread).sum(dim=2) / 2
    return (forward + forward.T) / 2
