"""A second view of a graph: candidate edges, a learned sample of them, and the loss of their logits.

Functions that compare all pairs of nodes compute a few rows of the ``nodes x nodes`` matrix at a time.
Memory therefore grows with nodes and candidate edges, not with pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn import functional

from bench.federation.types import Client
from bench.nn.gcn import GraphInputs, normalised_adjacency
from bench.nn.sparse import Propagate, csr_tensor, product

PAIRS = 2**20
"""The most numbers in one piece of a matrix over pairs: 4 MiB, about the size of a cache."""


def row_slices(rows: int, width: int) -> Iterator[slice]:
    """Cut ``rows`` rows of ``width`` numbers each into pieces of at most ``PAIRS`` numbers."""
    step = max(PAIRS // max(width, 1), 1)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def cosine_neighbours(features: Tensor, count: int) -> Tensor:
    """The ``count`` other rows closest to each by cosine, ``[n, width]`` -> ``[n, min(count, n - 1)]``."""
    directions = functional.normalize(features, dim=1)
    nodes = len(features)
    nearest = []
    for rows in row_slices(nodes, nodes):
        similarity = directions[rows] @ directions.T
        similarity[torch.arange(rows.stop - rows.start), torch.arange(rows.start, rows.stop)] = -torch.inf
        nearest.append(similarity.topk(min(count, nodes - 1), dim=1).indices)
    return torch.cat(nearest)


def undirected_pairs(arcs: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """Turn arcs ``[2, m]``, maybe repeated or in both directions, into sorted pairs i < j ``[2, p]``."""
    low, high = arcs.min(axis=0), arcs.max(axis=0)
    keys = np.unique(low[low < high] * nodes + high[low < high])
    return np.stack([keys // nodes, keys % nodes])


def global_view(client: Client, features: Tensor, neighbours: int) -> NDArray[np.int64]:
    """Pairs ``[2, p]`` in the union of a client's edges with the k-NN graph (cosine) of its features.

    ``features`` ``[nodes, width]``.
    """
    assert client.edges is not None
    nodes = len(client.ids)
    targets = cosine_neighbours(features, neighbours).cpu().numpy()
    arcs = np.stack([np.repeat(np.arange(nodes), targets.shape[1]), targets.ravel()])
    return undirected_pairs(np.concatenate([client.edges, arcs], axis=1), nodes)


class PairSoftplus(torch.autograd.Function):
    """``sum_ij softplus(h_i . h_j)`` over all ordered pairs of a client's nodes, i = j included.

    The gradient, ``2 sum_j sigmoid(h_i . h_j) h_j``, is computed in the same pass over the rows. The
    value comes from the same sigmoids, since softplus(x) = x - log sigmoid(x), and the sum of all
    products is ``||sum_i h_i||^2``. No product may be far below 0 (at -80 the sigmoid is 0). If ``h`` is the
    output of a ReLU, no product is negative.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, mask: Tensor) -> Tensor:
        """``hidden`` ``[clients, nodes, width]``, ``mask`` ``[clients, nodes]`` -> ``[clients]``."""
        clients, nodes, _ = hidden.shape
        columns = mask.to(hidden.dtype)[:, :, None]
        hidden = hidden * columns
        padding = nodes**2 - mask.sum(dim=1).square()  # pairs with the product 0
        total = hidden.sum(dim=1).square().sum(dim=1) - padding * math.log(2)
        gradient = torch.empty_like(hidden)
        for rows in row_slices(nodes, clients * nodes):
            share = torch.bmm(hidden[:, rows], hidden.transpose(1, 2)).sigmoid_()
            gradient[:, rows] = 2 * torch.bmm(share, hidden) * columns[:, rows]
            total -= share.log_().sum(dim=(1, 2))
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Gradient with respect to ``hidden``."""
        return gradients[0][:, None, None] * ctx.saved_tensors[0], None


class WeightedPropagate(torch.autograd.Function):
    """``a h`` for a sparse symmetric ``a`` whose entries are learned."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, values: Tensor, graph: CandidateGraph) -> Tensor:
        """``hidden`` ``[rows, width]``; ``values`` ``[entries]`` in the order of the graph's matrix."""
        ctx.graph = graph
        ctx.save_for_backward(hidden, values)
        return product(graph.matrix(values), hidden)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        """``a g`` for ``h``, and ``g_i . h_j`` for the entry (i, j)."""
        (hidden, values), graph = ctx.saved_tensors, ctx.graph
        gradient = gradients[0].contiguous()
        entries = torch.empty_like(values)
        for part in row_slices(len(values), hidden.shape[1]):
            ends = gradient.index_select(0, graph.rows[part])
            entries[part] = ends.mul_(hidden.index_select(0, graph.columns[part])).sum(dim=1)
        return product(graph.matrix(values), gradient), entries, None


class CandidateGraph:
    """The candidate edges of a block of clients. Node numbers run through the block, with padding.

    Args:
        pairs: candidate edges of every client as positions i < j, ``[2, p]``.
        lengths: number of nodes of every client.
        items: number of nodes of a client after padding.
        device: where to compute.
    """

    def __init__(
        self,
        pairs: Sequence[NDArray[np.int64]],
        lengths: Sequence[int],
        items: int,
        device: torch.device,
    ) -> None:
        self.clients, self.items = len(lengths), items
        self.counts = [arcs.shape[1] for arcs in pairs]
        offset = np.concatenate([arcs + row * items for row, arcs in enumerate(pairs)], axis=1)
        low, high = offset
        nodes, count = self.clients * items, offset.shape[1]
        loops = np.arange(nodes)
        rows, columns = np.concatenate([low, high, loops]), np.concatenate([high, low, loops])
        weight = np.concatenate([np.arange(count), np.arange(count), np.full(nodes, count)])
        order = np.lexsort((columns, rows))
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=nodes))])
        self._starts = torch.from_numpy(starts.astype(np.int32)).to(device)
        self._columns = torch.from_numpy(columns[order].astype(np.int32)).to(device)
        self.rows = torch.from_numpy(rows[order]).to(device)
        self.columns = torch.from_numpy(columns[order]).to(device)
        self._weight = torch.from_numpy(weight[order]).to(device)
        self.low, self.high = torch.from_numpy(low).to(device), torch.from_numpy(high).to(device)
        self.owner = torch.from_numpy(np.repeat(np.arange(self.clients), self.counts)).to(device)
        sizes = torch.tensor(lengths, dtype=torch.float32, device=device)
        self.inside = torch.arange(items, device=device)[None, :] < sizes[:, None]
        self.present = sizes + 2 * torch.tensor(self.counts, dtype=torch.float32, device=device)
        self.absent = sizes.square() - self.present
        matrices = []
        for arcs, size in zip(pairs, lengths, strict=True):
            matrix = normalised_adjacency(np.concatenate([arcs, arcs[::-1]], axis=1), size)
            matrix.resize(items, items)
            matrices.append(matrix)
        self._union = csr_tensor(sparse.block_diag(matrices, format="csr"), device)

    def matrix(self, values: Tensor) -> Tensor:
        """The block's adjacency with the entries ``values``, as CSR."""
        size = (self.clients * self.items,) * 2
        return torch.sparse_csr_tensor(self._starts, self._columns, values, size=size)

    def propagate(self, hidden: Tensor) -> Tensor:
        """Multiply by the normalised adjacency of all candidates."""
        result: Tensor = Propagate.apply(hidden, self._union)
        return result

    def augmented(self, inputs: GraphInputs, weight1: Tensor, weight2: Tensor) -> Tensor:
        """h = ReLU(A' A' X V1 V2) with A' the normalised candidates, ``[clients, items, hidden]``."""
        hidden = self.propagate(inputs.first_layer(weight1))
        hidden = torch.bmm(hidden.view(self.clients, self.items, -1), weight2)
        return torch.relu(self.propagate(hidden.flatten(0, 1)).view_as(hidden))

    def logits(self, hidden: Tensor) -> Tensor:
        """``h_i . h_j`` for every candidate; ``hidden`` ``[clients, items, width]`` -> ``[pairs]``."""
        rows = hidden.flatten(0, 1)
        return (rows.index_select(0, self.low) * rows.index_select(0, self.high)).sum(dim=1)

    def by_client(self, values: Tensor) -> Tensor:
        """Sum over every client's pairs, ``[pairs]`` -> ``[clients]``."""
        return values.new_zeros(self.clients).index_add(0, self.owner, values)

    def keep_probabilities(self, hidden: Tensor, logits: Tensor) -> Tensor:
        """``logit / (2 max) + 1/2`` for every candidate.

        The maximum is over all pairs of the client's nodes, i = j included. By the Cauchy-Schwarz
        inequality it is the largest squared norm, which needs no pairs.
        """
        largest = hidden.square().sum(dim=2).amax(dim=1).clamp_min(1e-12)
        return 0.5 * logits / largest.index_select(0, self.owner) + 0.5

    def uniform(self, noise: Sequence[np.random.Generator]) -> Tensor:
        """A number in (0, 1) for every candidate, ``[pairs]``. Every client has its own stream."""
        draws = [rng.random(count) for rng, count in zip(noise, self.counts, strict=True)]
        return torch.from_numpy(np.concatenate(draws)).to(self.present).clamp(1e-6, 1 - 1e-6)

    def sampled(self, probabilities: Tensor, noise: Tensor) -> Tensor:
        """A straight-through relaxed Bernoulli sample (temperature 1) of the candidates, normalised.

        ``noise`` ``[pairs]`` uniform in (0, 1). Self-loops are added before the symmetric
        normalisation. Returns the entries of the block's matrix.
        """
        probabilities = probabilities.clamp(1e-6, 1 - 1e-6)
        relaxation = torch.sigmoid(torch.logit(probabilities) + torch.logit(noise))
        sample = (relaxation > 0.5).to(relaxation.dtype) + (relaxation - relaxation.detach())
        degree = sample.new_ones(self.clients * self.items)
        degree = degree.index_add(0, self.low, sample).index_add(0, self.high, sample)
        scale = degree.rsqrt()
        weight = torch.cat([sample, sample.new_ones(1)]).index_select(0, self._weight)
        return weight * scale.index_select(0, self.rows) * scale.index_select(0, self.columns)

    def reconstruction(self, hidden: Tensor, logits: Tensor) -> Tensor:
        """Cross-entropy of ``h_i . h_j`` against the candidates over all pairs, ``[clients]``.

        With weight (absent / present) on present pairs and norm n^2 / (2 absent), as released, it
        is the mean of two means: over absent pairs and over present ones (self-loops are present).
        A complete graph has no absent pairs, and so no first mean.
        """
        norms = hidden.square().sum(dim=2)
        total: Tensor = PairSoftplus.apply(hidden, self.inside)
        positive = 2 * self.by_client(functional.softplus(logits))
        positive = positive + (functional.softplus(norms) * self.inside).sum(dim=1)
        negative = 2 * self.by_client(functional.softplus(-logits))
        negative = negative + (functional.softplus(-norms) * self.inside).sum(dim=1)
        absent_loss = torch.where(self.absent > 0, (total - positive) / self.absent.clamp_min(1), 0.0)
        return 0.5 * (absent_loss + negative / self.present)
