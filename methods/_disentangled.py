"""Routing of neighbours over latent factors, and divergences of Gaussians (FedIIH)."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bench.engine.batch import Batch
from bench.nn.gcn import graphs
from bench.nn.sparse import product

Edges = tuple[Tensor, Tensor]
"""Sources and targets of a block's edges, both directions, as places among all its items."""

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


class Neighbours(NamedTuple):
    """The neighbours of a block's items, as the rows of a sparse matrix without values.

    Both directions of an edge are in it, so the transposed matrix has the same places: ``transposed`` says
    where its values stand here.
    """

    starts: Tensor
    sources: Tensor
    targets: Tensor
    transposed: Tensor

    @classmethod
    def of(cls, batch: Batch) -> Neighbours:
        """The neighbours in a block of clients, without loops."""
        source, target = edges_of(batch)
        items = batch.labels.numel()
        starts = torch.cat([target.new_zeros(1), torch.bincount(target, minlength=items).cumsum(0)])
        transposed = (source * items + target).argsort()
        return cls(starts.int(), source.int(), target, transposed)

    def matrix(self, values: Tensor) -> Tensor:
        """The sparse matrix with these ``values`` ``[edges]``."""
        size = (len(self.starts) - 1,) * 2
        return torch.sparse_csr_tensor(self.starts, self.sources, values, size)

    def sum(self, values: Tensor, x: Tensor) -> Tensor:
        """``sum_s values_ts x_s`` for every item t, ``[items, width]``."""
        return product(self.matrix(values), x)

    def sum_back(self, values: Tensor, x: Tensor) -> Tensor:
        """``sum_t values_ts x_t`` for every item s, ``[items, width]``."""
        return self.sum(values[self.transposed], x)

    def products(self, u: Tensor, x: Tensor) -> Tensor:
        """``<u_t, x_s>`` for every edge, ``[edges]``."""
        places = self.matrix(u.new_zeros(len(self.sources)))
        sampled: Tensor = torch.sparse.sampled_addmm(places, u, x.T, beta=0.0)
        return sampled.values()


class Products(torch.autograd.Function):
    """``Neighbours.products`` with gradients."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, x: Tensor, neighbours: Neighbours) -> Tensor:
        """``u`` and ``x`` are ``[items, width]``."""
        ctx.neighbours = neighbours
        ctx.save_for_backward(u, x)
        return neighbours.products(u, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        """Gradients with respect to ``u`` and ``x``."""
        (gradient,), (u, x) = gradients, ctx.saved_tensors
        return ctx.neighbours.sum(gradient, x), ctx.neighbours.sum_back(gradient, u), None


class Sum(torch.autograd.Function):
    """``Neighbours.sum`` with gradients."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, x: Tensor, neighbours: Neighbours) -> Tensor:
        """``values`` ``[edges]`` and ``x`` ``[items, width]``."""
        ctx.neighbours = neighbours
        ctx.save_for_backward(values, x)
        return neighbours.sum(values, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        """Gradients with respect to ``values`` and ``x``."""
        (gradient,), (values, x) = gradients, ctx.saved_tensors
        gradient = gradient.contiguous()
        return ctx.neighbours.products(gradient, x), ctx.neighbours.sum_back(values, gradient), None


def route(x: Tensor, neighbours: Neighbours, steps: int) -> Tensor:
    """A layer without parameters. ``x`` and the result are ``[factors, items, width]``, with factors of norm
    1.

    Every step shares each neighbour out among the factors by its similarity to the node so far, p_k =
    softmax_k <x_s^k, u_t^k>. Then u_t^k = x_t^k + sum_s p_k x_s^k, normalised.
    """
    x = u = normalised(x).contiguous()
    for _ in range(steps):
        products = torch.stack([Products.apply(*pair, neighbours) for pair in zip(u, x, strict=True)])
        scale = 1 / torch.linalg.vector_norm(u, dim=2).clamp_min(
            SMALLEST
        )  # u itself is normalised at the end
        p = (products * scale[:, neighbours.targets]).softmax(dim=0)
        u = x + torch.stack([Sum.apply(*pair, neighbours) for pair in zip(p, x, strict=True)])
    return normalised(u)


def normalised(x: Tensor) -> Tensor:
    """Scale the factors of ``x`` ``[..., width]`` to norm 1. A factor at zero stays there, without gradient.

    Dropout takes whole factors to zero, where the gradient of a norm is unbounded.
    """
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return torch.where(norm > SMALLEST, x / norm.clamp_min(SMALLEST), 0.0)


def divergences(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Jensen-Shannon divergences of diagonal Gaussians ``[clients, width]``, float64 ``[clients, clients]``.

    The middle M of two Gaussians is the Gaussian with their mean moments, so ln 2 is no bound. A
    divergence is half the sum of KL(N_i || M) and KL(N_j || M), summed over dimensions.
    """
    mean, variance = mean.double(), log_variance.double().exp()
    midpoint = (mean[:, None] + mean[None]) / 2
    spread = (variance[:, None] + variance[None]) / 2
    ratio = variance[:, None] / spread
    forward = (ratio - 1 - ratio.log() + (mean[:, None] - midpoint) ** 2 / spread).sum(dim=2) / 2
    return (forward + forward.T) / 2
