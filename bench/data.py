"""What a data set is once it is read: plain arrays, the same whatever the source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Family = Literal["graph", "hypergraph", "images"]
FAMILIES: tuple[Family, ...] = ("graph", "hypergraph", "images")


@dataclass(frozen=True, eq=False)
class Ragged:
    """Lists of unequal length: list ``i`` is ``values[offsets[i]:offsets[i + 1]]``."""

    offsets: NDArray[np.int64]
    values: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[np.int64]:
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Length of each list."""
        return np.diff(self.offsets)

    @classmethod
    def of(cls, lists: list[NDArray[np.int64]]) -> Ragged:
        """Pack a list of integer arrays."""
        offsets = np.zeros(len(lists) + 1, np.int64)
        np.cumsum([len(part) for part in lists], out=offsets[1:])
        values = np.concatenate([*lists, np.zeros(0, np.int64)]).astype(np.int64)
        return cls(offsets, values)


PublishedKey = tuple[str, int, tuple[float, float, float]]
"""Scenario, number of clients, and split in percent of training, validation and test nodes."""


@dataclass(frozen=True, eq=False)
class PublishedClients:
    """Clients of a graph that papers have published.

    ``ids[c]`` ``[n_c]`` int64 are the nodes of client ``c``, ``roles`` ``[nodes]`` int8
    (``bench.federation.types``) those of the graph's nodes. Without roles, the ``permutation``-th
    permutation of the partition's seed deals them.
    """

    ids: tuple[NDArray[np.int64], ...]
    roles: NDArray[np.int8] | None = None
    permutation: int = 1


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected simple graph with one class per node.

    ``features`` ``[nodes, width]`` float32 (CSR where mostly zero), ``labels`` ``[nodes]`` int64,
    ``edges`` ``[2, m]`` int64 holding both directions of every edge, without self-loops or
    repeats, sorted by (source, target). ``hyperedges`` are derived from the edges, for studies that
    set hypergraph methods beside graph methods; clients of such a graph know them, and their edges
    to nodes of other clients. ``published`` are clients that papers have published.
    """

    features: sparse.csr_matrix | NDArray[np.float32]
    labels: NDArray[np.int64]
    edges: NDArray[np.int64]
    classes: int
    hyperedges: Ragged | None = None
    published: Mapping[PublishedKey, PublishedClients] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Hypergraph:
    """A hypergraph with one class per node; ``hyperedges`` are cleaned (at least two members, distinct).

    With ``multisets`` a hyperedge may name a node more than once; the node then counts as often, in
    degrees, sizes and sums.
    """

    features: sparse.csr_matrix | NDArray[np.float32]
    labels: NDArray[np.int64]
    hyperedges: Ragged
    classes: int
    multisets: bool = False


@dataclass(frozen=True, eq=False)
class Images:
    """Images ``[items, channels, height, width]`` uint8 with one class each.

    A sample of a larger set knows all of that set's classes: ``population`` ``[all]`` int64, and
    ``positions`` ``[items]`` int64, ascending, says which of them each image is. Clients are drawn on the
    population and keep what the sample holds of it, so that they have the mix of classes that the
    clients of the complete set have. Both are None where all images are here.
    """

    pixels: NDArray[np.uint8]
    labels: NDArray[np.int64]
    classes: int
    population: NDArray[np.int64] | None = None
    positions: NDArray[np.int64] | None = None


Data = Graph | Hypergraph | Images
