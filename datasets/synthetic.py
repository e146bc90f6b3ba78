"""Synthetic graphs with the size of a real one, for measuring speed and memory. Nothing to learn from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench import streams
from bench.data import Graph
from bench.dataset import Dataset
from bench.sources import Sources
from bench.spec import ClientSettings, Protocol

NODES = 169_343
EDGES = 1_157_799
"""Undirected edges of ogbn-arxiv without repeats (2,315,598 directed)."""

CLASSES = 40
WIDTH = 128
REACH = 500.0
"""Typical distance along the ring of nodes that an edge joins: few edges leave a METIS part."""


class ArxivSize(Dataset):
    """A seeded random graph with ogbn-arxiv's numbers of nodes, edges, classes and features.

    Nodes lie on a ring; edges join nodes that are near on it; a node's class is drawn from a few
    classes that are common in its part of the ring. Features are Gaussian.
    """

    name = "arxiv-size"
    title = "synthetic, ogbn-arxiv's size"
    family = "graph"
    homepage = "https://ogb.stanford.edu/docs/nodeprop/#ogbn-arxiv"
    scenarios = ("non-overlapping", "overlapping")
    protocol = Protocol(rounds=150, local_epochs=10)
    client = ClientSettings()
    embedded = True

    def load(self, sources: Sources) -> Graph:
        """The graph; no file is read."""
        rng = streams.generator(0, "synthetic", self.name)
        ring = np.stack([np.arange(NODES), (np.arange(NODES) + 1) % NODES])
        arcs = np.unique(_codes(*ring))  # the ring itself keeps the graph connected
        while len(arcs) < EDGES:
            source = rng.integers(0, NODES, EDGES)
            target = (source + np.rint(REACH * rng.standard_normal(EDGES)).astype(np.int64)) % NODES
            arcs = np.unique(np.concatenate([arcs, _codes(source, target)[source != target]]))
        rest = np.setdiff1d(arcs, _codes(*ring), assume_unique=True)
        kept = rng.choice(rest, EDGES - NODES, replace=False)
        pairs = np.stack(np.divmod(np.concatenate([_codes(*ring), kept]), NODES))
        both = np.concatenate([pairs, pairs[::-1]], axis=1)
        edges = both[:, np.lexsort((both[1], both[0]))]
        place = np.arange(NODES) * CLASSES // NODES
        labels = (place + rng.geometric(0.3, NODES) - 1) % CLASSES
        features = rng.standard_normal((NODES, WIDTH), np.float32)
        return Graph(features, labels, edges, CLASSES)


def _codes(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for every undirected pair."""
    return np.minimum(one, other) * NODES + np.maximum(one, other)
