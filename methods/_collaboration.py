"""Networks on a graph of clients and attention between clients, in front of a hypernetwork (FedSheafHN).

Sheaf diffusion (Bodnar et al., NeurIPS 2022; Diag-NSD): a cellular sheaf gives every node a stalk of
dimension d and every edge end a restriction map, here diagonal: F[u, v] (d values) is the map of node u on
the edge {u, v}.

The paper compares its sheaf with GCN and GAT (Table 5) but does not state their sizes. Here both have the
sheaf's projections and two residual layers, so that only the operator differs.
"""

from __future__ import annotations

from typing import Literal, cast

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from bench.hyper import HyperParameters
from bench.nn.randomness import dropout


class CollaborationSettings(HyperParameters):
    """Settings of the graph of clients and its network. The ablation's layers have the sheaf's sizes."""

    collaboration: Literal["sheaf", "gcn", "gat", "none"] = Field(
        "sheaf", description="network on the graph of clients: sheaf diffusion, or those of the ablation"
    )
    graph: Literal["complete", "knn"] = Field(
        "complete", description="graph of clients: complete, or nearest neighbours by embedding"
    )
    neighbours: int = Field(5, ge=1, description="number of neighbours of a client where the graph is knn")
    sheaf_layers: int = Field(4, ge=1, description="diffusion layers")
    channels: int = Field(20, ge=1, description="channels of the diffusion")
    stalk: int = Field(1, ge=1, description="dimension of a client's stalk")
    sheaf_dropout: float = Field(0.3, ge=0, lt=1, description="dropout of the diffusion")
    shared_laplacian: bool = Field(
        True, description="whether all layers share one sheaf Laplacian, else each learns its own"
    )


class GraphConvolution(nn.Module):
    """D^-1/2 (A + I) D^-1/2 X W (Kipf and Welling, ICLR 2017)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(channels, channels)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        """``[nodes, channels]`` -> ``[nodes, channels]``."""
        looped = adjacency + torch.eye(len(x), device=x.device)
        scale = looped.sum(dim=1).rsqrt()
        output: Tensor = self.linear((scale[:, None] * looped * scale[None, :]) @ x)
        return output


class GraphAttention(nn.Module):
    """One head of graph attention over neighbours and the node itself (Velickovic et al., ICLR 2018)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(channels, channels)
        self.mine = nn.Linear(channels, 1, bias=False)
        self.other = nn.Linear(channels, 1, bias=False)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        """``[nodes, channels]`` -> ``[nodes, channels]``."""
        h = self.linear(x)
        scores = functional.leaky_relu(self.mine(h) + self.other(h).t(), 0.2)
        mask = adjacency + torch.eye(len(x), device=x.device) > 0
        output: Tensor = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=1) @ h
        return output


class ResidualGraphNetwork(nn.Module):
    """``[nodes, width]`` -> ``[nodes, width]``: X <- X + ELU(layer(X)) in a narrow space, twice."""

    def __init__(
        self, layer: type[GraphConvolution] | type[GraphAttention], width: int, channels: int, rate: float
    ) -> None:
        super().__init__()
        self.rate = rate
        self.enter = nn.Linear(width, channels)
        self.layers = nn.ModuleList(layer(channels) for _ in range(2))
        self.leave = nn.Linear(channels, width)

    def forward(self, x: Tensor, adjacency: Tensor, generator: torch.Generator | None) -> Tensor:
        """Pass messages. Without a ``generator`` there is no dropout."""
        x = dropout(functional.elu(self.enter(x)), self.rate, generator)
        for layer in self.layers:
            x = x + functional.elu(layer(dropout(x, self.rate, generator), adjacency))
        output: Tensor = self.leave(x)
        return output


class Separate(nn.Module):
    """No collaboration graph: every client's vector stays as it is."""

    def forward(self, x: Tensor, adjacency: Tensor, generator: torch.Generator | None) -> Tensor:
        """Return ``x``."""
        return x


def collaboration_graph(x: Tensor, settings: CollaborationSettings) -> Tensor:
    """Adjacency ``[clients, clients]`` of the collaboration graph for vectors ``x`` ``[clients, width]``."""
    if settings.graph == "complete":
        return 1 - torch.eye(len(x), device=x.device)
    return nearest_neighbours(x, settings.neighbours)


def collaboration_network(width: int, settings: CollaborationSettings) -> nn.Module:
    """S, the network on the collaboration graph, for vectors of that ``width``."""
    channels, rate = settings.channels, settings.sheaf_dropout
    if settings.collaboration == "none":
        return Separate()
    if settings.collaboration == "sheaf":
        layers, stalk = settings.sheaf_layers, settings.stalk
        return SheafDiffusion(width, channels, layers, stalk, rate, settings.shared_laplacian)
    layer = GraphConvolution if settings.collaboration == "gcn" else GraphAttention
    return ResidualGraphNetwork(layer, width, channels, rate)


class ClientAttention(nn.Module):
    """softmax(Q K^T / sqrt(width)) V over the clients' vectors ``[clients, width]`` (Eq. 10).

    The paper has no residual and no scaling (``scaled`` False); with torch's default weights its softmax
    is nearly uniform, every client gets nearly the same vector and the models cannot differ. V therefore
    starts at the identity, Q and K start small, and ``residual`` adds the input.
    """

    def __init__(self, width: int, residual: bool, scaled: bool = True) -> None:
        super().__init__()
        self.residual = residual
        self.scale = width**0.5 if scaled else 1.0
        self.query = nn.Parameter(0.01 * torch.randn(width, width))
        self.key = nn.Parameter(0.01 * torch.randn(width, width))
        self.value = nn.Parameter(torch.eye(width))

    def forward(self, x: Tensor) -> Tensor:
        """``[clients, width]`` -> ``[clients, width]``."""
        scores = (x @ self.query) @ (x @ self.key).t() / self.scale
        mixture = torch.softmax(scores, dim=1) @ (x @ self.value)
        return x + mixture if self.residual else mixture


class FreeMatrix(nn.Module):
    """The released code's attention: one free ``[clients, clients]`` matrix that starts at the identity.

    It has a row for each known client, so it cannot serve new clients.
    """

    def __init__(self, clients: int) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.eye(clients))

    def forward(self, x: Tensor) -> Tensor:
        """``[clients, width]`` -> ``[clients, width]``."""
        return self.matrix @ x


def client_attention(
    kind: Literal["qkv", "matrix", "none"], width: int, clients: int, residual: bool, scaled: bool
) -> nn.Module:
    """The attention of a ``kind`` between the clients' vectors ``[clients, width]``."""
    if kind == "none":
        return nn.Identity()
    return FreeMatrix(clients) if kind == "matrix" else ClientAttention(width, residual, scaled)


def apply_laplacian(maps: Tensor, adjacency: Tensor, x: Tensor) -> Tensor:
    """The normalised sheaf Laplacian (D + 1)^-1/2 (D - F^T F) (D + 1)^-1/2, applied to ``x``.

    As in the released code, the added 1 keeps isolated nodes finite. The paper normalises by D alone
    (Section 3.2).

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
    learned layer. The paper learns one Laplacian for each diffusion layer (Eq. 8). The released code shares
    one among all layers (``shared_laplacian``).
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
        """Diffuse. Without a ``generator`` there is no dropout."""
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


def nearest_neighbours(x: Tensor, neighbours: int) -> Tensor:
    """Adjacency of the graph of k nearest neighbours by cosine similarity. It joins both directions."""
    nodes = len(x)
    unit = functional.normalize(x, dim=1)
    similarity = (unit @ unit.t()).fill_diagonal_(-torch.inf)
    order = similarity.argsort(dim=1, descending=True, stable=True)  # ties: the lower number first
    columns = order[:, : min(neighbours, nodes - 1)]
    adjacency = x.new_zeros(nodes, nodes).scatter_(1, columns, 1.0)
    return torch.maximum(adjacency, adjacency.t())
