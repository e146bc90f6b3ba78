"""Synthetic graphs with sizes of real ones, for measuring speed and memory. Nothing to learn from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bench import streams
from bench.data import Graph
from bench.dataset import Dataset
from bench.sources import Sources
from bench.spec import ClientSettings, Protocol

REACH = 500.0
"""Typical distance along the ring of nodes that an edge joins: few edges leave a METIS part."""


class RingGraph(Dataset, ABC):
    """A seeded random connected graph with the given numbers of nodes, undirected edges and classes.

    Nodes lie on a ring; edges join nodes that are near on it; a node's class is drawn from a few
    classes that are common in its part of the ring.
    """

    family = "graph"
    licence = "Apache License 2.0: drawn by the suite itself"
    scenarios = ("non-overlapping", "overlapping")
    client = ClientSettings()
    embedded = True

    nodes: ClassVar[int]
    edges: ClassVar[int]
    classes: ClassVar[int]

    @abstractmethod
    def features(self, rng: np.random.Generator) -> NDArray[np.float32] | sparse.csr_matrix:
        """A row of features for every node."""

    def load(self, sources: Sources) -> Graph:
        """The graph; no file is read."""
        nodes, count = self.nodes, self.edges
        rng = streams.generator(0, "synthetic", self.name)
        ring = self._codes(np.arange(nodes), (np.arange(nodes) + 1) % nodes)
        arcs = np.unique(ring)  # the ring itself keeps the graph connected
        while len(arcs) < count:
            source = rng.integers(0, nodes, count)
            target = (source + np.rint(REACH * rng.standard_normal(count)).astype(np.int64)) % nodes
            arcs = np.unique(np.concatenate([arcs, self._codes(source, target)[source != target]]))
        free_arcs = np.setdiff1d(arcs, ring, assume_unique=True)
        chosen_arcs = rng.choice(free_arcs, count - nodes, replace=False)
        pairs = np.stack(np.divmod(np.concatenate([ring, chosen_arcs]), nodes))
        arcs_both_ways = np.concatenate([pairs, pairs[::-1]], axis=1)
        edges = arcs_both_ways[:, np.lexsort((arcs_both_ways[1], arcs_both_ways[0]))]
        place = np.arange(nodes) * self.classes // nodes
        labels = (place + rng.geometric(0.3, nodes) - 1) % self.classes
        return Graph(self.features(rng), labels, edges, self.classes)

    def _codes(self, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> NDArray[np.int64]:
        """One number for every undirected pair."""
        return np.minimum(sources, targets) * self.nodes + np.maximum(sources, targets)


class ArxivSize(RingGraph):
    """ogbn-arxiv's numbers of nodes, edges (without repeats), classes and Gaussian features."""

    name = "arxiv-size"
    title = "synthetic, ogbn-arxiv's size"
    homepage = "https://ogb.stanford.edu/docs/nodeprop/#ogbn-arxiv"
    protocol = Protocol(rounds=150, local_epochs=10)
    nodes, edges, classes = 169_343, 1_157_799, 40

    def features(self, rng: np.random.Generator) -> NDArray[np.float32]:
        """128 numbers a node."""
        return rng.standard_normal((self.nodes, 128), np.float32)


class CoraTenfold(RingGraph):
    """Ten times as many nodes and edges as Cora, with its classes, words and words a node."""

    name = "cora-tenfold"
    title = "synthetic, ten times Cora's size"
    homepage = "https://linqs.org/datasets/#cora"
    protocol = Protocol(rounds=100, local_epochs=3)
    nodes, edges, classes = 24_850, 50_690, 7

    def features(self, rng: np.random.Generator) -> sparse.csr_matrix:
        """18 of 1,433 words a node."""
        words = rng.integers(0, 1433, (self.nodes, 18))
        rows = np.repeat(np.arange(self.nodes), words.shape[1])
        counts = sparse.csr_matrix(
            (np.ones(words.size, np.float32), (rows, words.ravel())), shape=(self.nodes, 1433)
        )
        counts.data[:] = 1  # a word that was drawn twice is there once
        return counts
