"""Sheaf diffusion over a graph of clients (Bodnar et al., NeurIPS 2022; Diag-NSD).

A cellular sheaf gives every node a stalk of dimension d and every edge end a restriction map, here
diagonal: F[u, v] (d values) is the map of node u on the edge {u, v}. Graphs of clients are small,
so everything is dense.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.nn.randomness import dropout


def apply_laplacian(maps: Tensor, adjacency: Tensor, x: Tensor) -> Tensor:
    """The normalised sheaf Laplacian (D + 1)^-1/2 (D - F^T F) (D + 1)^-1/2, applied to ``x``.

    The added one keeps isolated nodes finite, as in the released code; the paper normalises by D
    alone (Section 3.2).

    Args:
        maps: restriction maps ``[nodes, nodes, d]``; ``maps[u, v]`` is u's map on {u, v}.
        adjacency: symmetric 0/1 matrix ``[nodes, nodes]`` without self-loops.
        x: node states ``[nodes, d, channels]``.
    """
    maps = maps * adjacency[:, :, None]
    degree = maps.square().sum(dim=1)  # [nodes, d]
    scale = (degree + 1).rsqrt()
    coupling = maps * maps.transpose(0, 1) * scale[:, None, :] * scale[None, :, :]
    diagonal = (degree * scale.square())[:, :, None] * x
    return diagonal - torch.einsum("uvd,vdf->udf", coupling, x)


class SheafDiffusion(nn.Module):
    """Sheaf diffusion network: ``[nodes, width]`` -> ``[nodes, width]`` (FedSheafHN, Section 3.2).

    X <- (1 + tanh eps) X - ELU(L (I x W1) X W2), with restriction maps tanh(W_s [x_u; x_v]) from a
    learned layer. The paper learns one Laplacian per diffusion layer (Eq. 8); the released code
    has one for all layers (``shared_laplacian``).
    """

    def __init__(
        self,
        width: int,
        channels: int,
        layers: int,
        stalk: int,
        dropout_rate: float,
        shared_laplacian: bool,
    ) -> None:
        super().__init__()
        self.stalk, self.channels, self.rate = stalk, channels, dropout_rate
        self.enter = nn.Linear(width, stalk * channels)
        self.leave = nn.Linear(stalk * channels, width)
        learners = 1 if shared_laplacian else layers
        self.learners = nn.ModuleList(nn.Linear(2 * channels, stalk, bias=False) for _ in range(learners))
        self.left = nn.ParameterList(torch.eye(stalk) for _ in range(layers))
        self.right = nn.ParameterList(
            nn.init.orthogonal_(torch.empty(channels, channels)) for _ in range(layers)
        )
        self.epsilon = nn.ParameterList(torch.zeros(stalk, 1) for _ in range(layers))

    def restriction_maps(self, x: Tensor, layer: int) -> Tensor:
        """Maps ``[nodes, nodes, stalk]`` for every ordered pair, from states ``[nodes, stalk, channels]``."""
        learner = cast(nn.Linear, self.learners[layer])
        weight = learner.weight  # [stalk, 2 channels]
        sums = x.sum(dim=1)
        source_part = sums @ weight[:, : self.channels].t()
        target_part = sums @ weight[:, self.channels :].t()
        return torch.tanh(source_part[:, None, :] + target_part[None, :, :])

    def forward(self, x: Tensor, adjacency: Tensor, generator: torch.Generator | None) -> Tensor:
        """Diffuse; ``generator`` None switches dropout off."""
        x = dropout(functional.elu(self.enter(x)), self.rate, generator)
        x = x.view(-1, self.stalk, self.channels)
        maps = self.restriction_maps(x, 0)
        for layer, (left, right, epsilon) in enumerate(zip(self.left, self.right, self.epsilon, strict=True)):
            if layer and len(self.learners) > 1:
                maps = self.restriction_maps(x, layer)
            y = dropout(x, self.rate, generator)
            y = torch.einsum("de,nef,fg->ndg", left, y, right)
            x = (1 + torch.tanh(epsilon)) * x - functional.elu(apply_laplacian(maps, adjacency, y))
        output: Tensor = self.leave(x.flatten(1))
        return output


def complete_graph(nodes: int) -> Tensor:
    """Adjacency ``[nodes, nodes]`` of the complete graph without self-loops."""
    return 1 - torch.eye(nodes)


def nearest_neighbours(x: Tensor, neighbours: int) -> Tensor:
    """Adjacency of the k-nearest-neighbour graph by cosine similarity, made symmetric by union."""
    nodes = len(x)
    unit = functional.normalize(x, dim=1)
    similarity = (unit @ unit.t()).fill_diagonal_(-torch.inf)
    order = similarity.argsort(dim=1, descending=True, stable=True)  # ties: the lower number
    columns = order[:, : min(neighbours, nodes - 1)]
    adjacency = x.new_zeros(nodes, nodes).scatter_(1, columns, 1.0)
    return torch.maximum(adjacency, adjacency.t())
