"""Networks on a graph of clients: sheaf diffusion, or common layers in its place (FedSheafHN, Table 5).

The paper compares its sheaf with GCN and GAT and says nothing of their sizes. Both have the sheaf's
projections here (width to channels and back) and two residual layers, so that the operator alone
differs. Graphs of clients are small: everything is dense.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from bench.hyper import HyperParameters
from bench.nn.randomness import dropout

from ._sheaf import SheafDiffusion, complete_graph, nearest_neighbours


class CollaborationSettings(HyperParameters):
    """The graph of clients and the network on it; the layers of the ablation take the sheaf's sizes."""

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
    """One head of graph attention over neighbours and oneself (Velickovic et al., ICLR 2018)."""

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
        """Pass messages; ``generator`` None switches dropout off."""
        x = dropout(functional.elu(self.enter(x)), self.rate, generator)
        for layer in self.layers:
            x = x + functional.elu(layer(dropout(x, self.rate, generator), adjacency))
        output: Tensor = self.leave(x)
        return output


class Separate(nn.Module):
    """No collaboration graph: every client's vector goes on as it is."""

    def forward(self, x: Tensor, adjacency: Tensor, generator: torch.Generator | None) -> Tensor:
        """``x``."""
        return x


def collaboration_graph(x: Tensor, settings: CollaborationSettings) -> Tensor:
    """Adjacency of the collaboration graph of the clients with the vectors ``x`` ``[clients, width]``."""
    if settings.graph == "complete":
        return complete_graph(len(x)).to(x.device)
    return nearest_neighbours(x, settings.neighbours)


def collaboration_network(width: int, settings: CollaborationSettings) -> nn.Module:
    """S, the network on the collaboration graph, for clients' vectors of that width."""
    channels, rate = settings.channels, settings.sheaf_dropout
    if settings.collaboration == "none":
        return Separate()
    if settings.collaboration == "sheaf":
        layers, stalk = settings.sheaf_layers, settings.stalk
        return SheafDiffusion(width, channels, layers, stalk, rate, settings.shared_laplacian)
    layer = GraphConvolution if settings.collaboration == "gcn" else GraphAttention
    return ResidualGraphNetwork(layer, width, channels, rate)
