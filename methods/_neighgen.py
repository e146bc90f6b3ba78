"""NeighGen, the missing-neighbour generator of FedSage+ (Zhang et al., NeurIPS 2021), for one client.

Each generated neighbour is attached to one node of the client's graph. The mended graph needs no matrix of
its own: a generated node is added to the sum of the node that it is attached to.

Clients are processed one by one: for CiteSeer's features the fGen of one client has 38 million weights.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn
from torch.nn import functional

from bench import streams
from bench.federation.foreign import extended
from bench.federation.types import TEST, TRAIN, Client
from bench.nn.randomness import dropout
from bench.nn.sparse import Propagate, csr_tensor

HIDDEN, LATENT, WIDE = 32, 128, (256, 2048)
"""Widths of the released networks: graph networks, codes, and the feature generator."""

FIRST_COUNT = 0.1
"""Initial bias of dGen. With a negative bias its ReLU is 0 for all nodes and never learns: with torch's
random bias this happened to four of Cora's ten clients."""


class OwnGraph:
    """One client's features ``[n, width]`` and edges ``[2, m]`` (both directions)."""

    def __init__(
        self,
        features: sparse.csr_matrix | NDArray[np.float32],
        edges: NDArray[np.int64],
        device: torch.device,
    ) -> None:
        self.nodes = features.shape[0]
        source, target = np.concatenate([edges, np.tile(np.arange(self.nodes), (2, 1))], axis=1)
        values = np.ones(len(source), np.float32)
        adjacency = sparse.csr_matrix((values, (target, source)), shape=(self.nodes, self.nodes))
        rows = sparse.csr_matrix(features, dtype=np.float32)
        self.adjacency = csr_tensor(adjacency, device)
        self.sizes = torch.from_numpy(np.asarray(adjacency.sum(axis=1), np.float32).ravel()).to(device)
        self.features = csr_tensor(rows, device)
        self.transposed = csr_tensor(rows.T.tocsr(), device)

    def first_layer(self, weight: Tensor) -> Tensor:
        """``x w``, ``[n, hidden]``."""
        result: Tensor = Propagate.apply(weight, self.features, self.transposed)
        return result

    def means(self, rows: Tensor, generated: Tensor, owners: Tensor) -> Tensor:
        """Mean over every own node, its neighbours and the generated nodes attached to it.

        ``rows`` ``[n, width]``; ``generated`` ``[g, width]`` are attached to the nodes ``owners`` ``[g]``.
        """
        total: Tensor = Propagate.apply(rows, self.adjacency)
        sizes = self.sizes
        if len(owners):
            total = total.index_add(0, owners, generated)
            sizes = sizes + torch.bincount(owners, minlength=self.nodes)
        return total / sizes[:, None]


class MeanGNN(nn.Module):
    """Two graph convolutions that average over closed neighbourhoods, ``[n, width] -> [n, out]``."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Parameter(nn.init.xavier_uniform_(torch.empty(width, HIDDEN)))
        self.first_bias = nn.Parameter(torch.zeros(HIDDEN))
        self.second = nn.Parameter(nn.init.xavier_uniform_(torch.empty(HIDDEN, outputs)))
        self.second_bias = nn.Parameter(torch.zeros(outputs))

    def forward(
        self,
        graph: OwnGraph,
        rate: float,
        masks: torch.Generator | None,
        generated: Tensor | None = None,
        owners: Tensor | None = None,
    ) -> Tensor:
        """Outputs of own nodes. If ``generated`` ``[g, width]`` is given, the graph is mended with it."""
        products = graph.first_layer(self.first)
        if generated is None or owners is None:
            owners = torch.empty(0, dtype=torch.int64, device=products.device)
            leaf_products = products[:0]
        else:
            leaf_products = generated @ self.first
        # a generated node has one neighbour, its owner
        new_hidden = torch.relu((leaf_products + products[owners]) / 2 + self.first_bias)
        hidden = torch.relu(graph.means(products, leaf_products, owners) + self.first_bias)
        hidden = dropout(hidden, rate, masks) @ self.second
        new_hidden = dropout(new_hidden, rate, masks) @ self.second
        return graph.means(hidden, new_hidden, owners) + self.second_bias


class FeatureGenerator(nn.Module):
    """fGen: features of ``slots`` neighbours from a node's noisy code, ``[a, slots, width]``."""

    def __init__(self, slots: int, width: int) -> None:
        super().__init__()
        self.slots, self.width = slots, width
        self.layers = nn.ModuleList(
            [nn.Linear(LATENT, WIDE[0]), nn.Linear(WIDE[0], WIDE[1]), nn.Linear(WIDE[1], slots * width)]
        )

    def forward(self, codes: Tensor, used: int, rate: float, masks: torch.Generator | None) -> Tensor:
        """``tanh(W3 relu(W2 relu(W1 codes)))`` with dropout before W3, 0 in unused slots."""
        layer1, layer2, layer3 = self.layers
        weight, bias = layer3.parameters()
        hidden = dropout(torch.relu(layer2(torch.relu(layer1(codes)))), rate, masks)
        # W3 is most of NeighGen's work. Cut at a multiple of 64, its product keeps the bits of the whole one.
        cut = -(-used * self.width // 64) * 64
        output = torch.tanh(functional.linear(hidden, weight[:cut], bias[:cut]))
        return functional.pad(output, (0, len(bias) - output.shape[1])).view(-1, self.slots, self.width)


class NeighGen(nn.Module):
    """Encoder, dGen, fGen and the auxiliary classifier of one client."""

    def __init__(self, width: int, classes: int, slots: int) -> None:
        super().__init__()
        self.encoder = MeanGNN(width, LATENT)
        self.degree = nn.Linear(LATENT, 1)
        nn.init.constant_(self.degree.bias, FIRST_COUNT)
        self.features = FeatureGenerator(slots, width)
        self.classifier = MeanGNN(width, classes)

    def codes(self, graph: OwnGraph, rate: float, masks: torch.Generator | None) -> Tensor:
        """Codes of all nodes, ``[n, LATENT]``."""
        return torch.relu(self.encoder(graph, rate, masks))

    def counts(self, codes: Tensor) -> Tensor:
        """dGen: predicted numbers of missing neighbours, ``[n]``, not negative."""
        return torch.relu(self.degree(codes)).squeeze(1)

    def optimiser(self, feature_rate: float, other_rate: float | None, decay: float) -> torch.optim.Adam:
        """Adam for fGen with ``feature_rate``. Other parts use ``other_rate``; if None, they do not learn."""
        parts: list[tuple[nn.Module, float]] = [(self.features, feature_rate)]
        if other_rate is not None:
            parts += [(part, other_rate) for part in (self.encoder, self.degree, self.classifier)]
        groups = [{"params": list(part.parameters()), "lr": rate} for part, rate in parts]
        return torch.optim.Adam(groups, weight_decay=decay, fused=True)


def in_use(counts: Tensor, slots: int) -> Tensor:
    """Mark the used slots ``[a, slots]`` of nodes with ``counts`` ``[a]`` neighbours."""
    return torch.arange(slots, device=counts.device) < counts[:, None]


def greedy_feature_loss(generated: Tensor, targets: Tensor, counts: Tensor, missing: Tensor) -> Tensor:
    """Sum over nodes, used slots and sources of the distance to the nearest true neighbour.

    Args:
        generated: ``[a, slots, width]``.
        targets: ``[a, sources, slots, width]``; a source is the client itself or another client.
        counts: generated neighbours of every node, ``[a]``; later slots have no loss.
        missing: true missing neighbours, ``[a]``; later targets are ignored. A node with 0 has no loss.

    Returns:
        The sum of ``min over k < missing of mean over width of (generated_j - target_k)^2``.
    """
    nodes, sources, slots, width = targets.shape
    flat_targets = targets.flatten(1, 2)
    products = torch.bmm(generated, flat_targets.transpose(1, 2))
    squares = generated.square().sum(dim=2)[:, :, None] + flat_targets.square().sum(dim=2)[:, None, :]
    distances = ((squares - 2 * products) / width).view(nodes, slots, sources, slots)
    absent_mask = ~in_use(missing, slots)[:, None, None, :]
    nearest = distances.masked_fill(absent_mask, float("inf")).amin(dim=3)
    count_mask = in_use(counts, slots) & (missing > 0)[:, None]
    return torch.where(count_mask[:, :, None], nearest, 0.0).sum()


Indices = NDArray[np.int64]


def identity(client: Client) -> int:
    """A number that identifies the client's random streams, computed from its node ids."""
    return streams.entropy(0, client.ids.tobytes().hex())


def hide(client: Client, portion: float, stream: torch.Generator) -> NDArray[np.bool_]:
    """Mark hidden nodes, ``[n]``: int(portion x candidates). Candidates neither train nor test."""
    candidates = np.flatnonzero((client.roles != TRAIN) & (client.roles != TEST))
    order = torch.randperm(len(candidates), generator=stream).numpy()
    hidden = np.zeros(len(client.ids), np.bool_)
    hidden[candidates[order[: int(portion * len(candidates))]]] = True
    return hidden


def missing_neighbours(edges: Indices, hidden: NDArray[np.bool_], slots: int) -> tuple[Indices, Indices]:
    """Number of hidden neighbours of every node, ``[n]``, and the first ``slots`` of them, ``[n, slots]``.

    ``edges`` ``[2, m]`` are sorted. Empty slots are -1. Hidden nodes themselves have no missing neighbours.
    """
    source, target = edges[:, ~hidden[edges[0]] & hidden[edges[1]]]
    counts = np.bincount(source, minlength=len(hidden))
    rank = np.arange(len(source)) - (np.cumsum(counts) - counts)[source]
    table = np.full((len(hidden), slots), -1, np.int64)
    table[source[rank < slots], rank[rank < slots]] = target[rank < slots]
    return counts, table


def with_leaves(client: Client, owners: Indices, features: NDArray[np.float32]) -> Client:
    """Append new nodes to the client, each linked to one own node in both directions.

    ``owners`` ``[g]`` are the positions of these own nodes, ``features`` ``[g, width]`` the features of the
    new nodes. New nodes have id and label -1 and no role.
    """
    leaves = len(client.ids) + np.arange(len(owners))
    return extended(client, np.full(len(owners), -1, np.int64), features, np.stack([owners, leaves]))


class Neighbourhoods:
    """A client's answers to other clients: features of neighbours of random nodes in its graph."""

    def __init__(self, client: Client) -> None:
        assert client.edges is not None
        self.client = client
        self.identity = identity(client)
        self.sizes = np.bincount(client.edges[0], minlength=len(client.ids))
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.linked = np.flatnonzero(self.sizes)

    def sample(self, nodes: int, slots: int, draw: torch.Generator) -> NDArray[np.float32] | None:
        """Features ``[nodes, slots, width]`` of ``slots`` random neighbours of random nodes with neighbours.

        Neighbours are drawn with replacement. Return None if the client's graph has no edges.
        """
        if len(self.linked) == 0:
            return None
        assert self.client.edges is not None
        uniform = torch.rand(nodes, 1 + slots, generator=draw, dtype=torch.float64).numpy()
        picks = self.linked[(uniform[:, 0] * len(self.linked)).astype(np.int64)]
        offsets = (uniform[:, 1:] * self.sizes[picks, None]).astype(np.int64)
        neighbours = self.client.edges[1, self.starts[picks, None] + offsets]
        return self.client.dense(neighbours)
