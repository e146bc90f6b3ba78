"""Neighbours of a client's nodes: hidden ones, those that others ask for, and made-up ones (FedSage+)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from bench import streams
from bench.federation.foreign import extended
from bench.federation.types import TEST, TRAIN, Client

Indices = NDArray[np.int64]


def identity(client: Client) -> int:
    """A number for the client's streams, from its node ids."""
    return streams.entropy(0, client.ids.tobytes().hex())


def hide(client: Client, portion: float, stream: torch.Generator) -> NDArray[np.bool_]:
    """Which nodes are hidden, ``[n]``: int(portion x candidates) of those that neither train nor test."""
    candidates = np.flatnonzero((client.roles != TRAIN) & (client.roles != TEST))
    order = torch.randperm(len(candidates), generator=stream).numpy()
    hidden = np.zeros(len(client.ids), np.bool_)
    hidden[candidates[order[: int(portion * len(candidates))]]] = True
    return hidden


def missing_neighbours(edges: Indices, hidden: NDArray[np.bool_], slots: int) -> tuple[Indices, Indices]:
    """How many hidden neighbours every node has, ``[n]``, and the first ``slots`` of them, ``[n, slots]``.

    ``edges`` ``[2, m]`` are sorted; absent neighbours are -1; hidden nodes themselves miss nothing.
    """
    source, target = edges[:, ~hidden[edges[0]] & hidden[edges[1]]]
    counts = np.bincount(source, minlength=len(hidden))
    rank = np.arange(len(source)) - (np.cumsum(counts) - counts)[source]
    table = np.full((len(hidden), slots), -1, np.int64)
    table[source[rank < slots], rank[rank < slots]] = target[rank < slots]
    return counts, table


def with_leaves(client: Client, owners: Indices, features: NDArray[np.float32]) -> Client:
    """The client with new nodes behind its own, each linked to one of them in both directions.

    ``owners`` ``[g]`` positions of the nodes that the new ones with ``features`` ``[g, width]`` hang
    on. New nodes have id and label -1 and no role.
    """
    leaves = len(client.ids) + np.arange(len(owners))
    return extended(client, np.full(len(owners), -1, np.int64), features, np.stack([owners, leaves]))


class Neighbourhoods:
    """What a client answers others with: features of neighbours of random nodes of its graph."""

    def __init__(self, client: Client) -> None:
        assert client.edges is not None
        self.client = client
        self.identity = identity(client)
        self.sizes = np.bincount(client.edges[0], minlength=len(client.ids))
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.linked = np.flatnonzero(self.sizes)

    def sample(self, nodes: int, slots: int, draw: torch.Generator) -> NDArray[np.float32] | None:
        """``[nodes, slots, width]``: random nodes that have neighbours, ``slots`` random ones of each.

        Neighbours are drawn with replacement. None where the client's graph has no edges.
        """
        if len(self.linked) == 0:
            return None
        assert self.client.edges is not None
        uniform = torch.rand(nodes, 1 + slots, generator=draw, dtype=torch.float64).numpy()
        picks = self.linked[(uniform[:, 0] * len(self.linked)).astype(np.int64)]
        offsets = (uniform[:, 1:] * self.sizes[picks, None]).astype(np.int64)
        neighbours = self.client.edges[1, self.starts[picks, None] + offsets]
        return self.client.dense(neighbours)
