"""Checks that a data set was read as ``bench.data`` promises: numbers of all studies depend on it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bench.data import Data, Family, Graph, Hypergraph, Images, Ragged
from bench.errors import RequestError

SORTS: dict[Family, type[Data]] = {"graph": Graph, "hypergraph": Hypergraph, "images": Images}
"""What the data sets of a family are read as."""


def check_data(data: Data, name: str, family: Family) -> None:
    """Refuse data that are not as ``bench.data`` promises.

    Raises:
        RequestError: what was expected and what is there instead.
    """
    for problem in _problems(data, SORTS[family]):
        raise RequestError(f"data set {name}: expected {problem}; correct what loads it")


def _problems(data: Data, sort: type[Data]) -> Iterator[str]:
    """What was expected and what is there instead. Every check relies on those before it."""
    if not isinstance(data, sort):
        yield f"{sort.__name__}, got {type(data).__name__}"
    items = data.pixels if isinstance(data, Images) else data.features
    what, sides = ("pixels", 4) if isinstance(data, Images) else ("features", 2)
    if not (isinstance(items, np.ndarray) or sparse.issparse(items)) or len(items.shape) != sides:
        shape = getattr(items, "shape", type(items).__name__)
        yield f"{what} in an array of {sides} dimensions, got {shape}"
    if isinstance(data, Images) and items.dtype != np.uint8:
        yield f"pixels of 0 to 255 as uint8, got {items.dtype}"
    values = items if isinstance(items, np.ndarray) else items.data
    if not isinstance(data, Images) and not np.isfinite(values).all():
        yield "finite features, got some that are not (NaN or infinite)"
    labels = data.labels
    if not isinstance(labels, np.ndarray) or labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        yield f"labels in a line of whole numbers, got {getattr(labels, 'dtype', type(labels).__name__)}"
    if not len(labels) == items.shape[0] > 0:
        yield f"a label for every item, got {len(labels):,} for {items.shape[0]:,}"
    if labels.min() < 0 or labels.max() >= data.classes:
        yield f"labels of 0 to {data.classes - 1}, got {labels.min()} to {labels.max()}"
    if isinstance(data, Graph):
        yield from _problems_of_edges(data.edges, len(labels))
    if isinstance(data, Images):
        yield from _problems_of_sample(data)
    elif data.hyperedges is not None:
        is_multiset = isinstance(data, Hypergraph) and data.multisets
        least = 2 if isinstance(data, Hypergraph) else 1  # an isolated node's neighbourhood is itself
        yield from _problems_of_hyperedges(data.hyperedges, len(labels), least, is_multiset)


def _problems_of_edges(edges: NDArray[np.int64], nodes: int) -> Iterator[str]:
    """Partition and order of a graph's clients depend on the order of its edges."""
    source, target = edges
    key = source * nodes + target
    in_range = not edges.size or (edges.min() >= 0 and edges.max() < nodes)
    if not (in_range and (np.diff(key) > 0).all() and (source != target).all()):
        yield "edges sorted by (source, target), no loops or repeats"
    if not np.array_equal(np.sort(target * nodes + source), key):
        yield "both directions of every edge"


def _problems_of_sample(images: Images) -> Iterator[str]:
    """Clients of a sample are drawn from the labels of its population."""
    population, positions = images.population, images.positions
    if population is None and positions is None:
        return
    if (
        population is None
        or positions is None
        or len(positions) != len(images.labels)
        or (np.diff(positions) <= 0).any()
        or not 0 <= positions[0] <= positions[-1] < len(population)
        or not np.array_equal(population[positions], images.labels)
    ):
        yield (
            f"ascending positions of all {len(images.labels)} images in a population that has their labels "
            f"there"
        )


def _problems_of_hyperedges(lists: Ragged, nodes: int, least: int, multisets: bool) -> Iterator[str]:
    """Expected are distinct sets, or multisets, of ``least`` or more nodes."""
    sizes = lists.sizes
    if lists.offsets[0] != 0 or lists.offsets[-1] != len(lists.values) or (sizes < 0).any():
        yield (f"offsets of hyperedges that ascend from 0 to {len(lists.values)}, the number of members")
    hyperedge = np.repeat(np.arange(len(lists)), sizes)
    order = np.lexsort((lists.values, hyperedge))
    sets = Ragged(lists.offsets, lists.values[order])
    strays = hyperedge[(lists.values < 0) | (lists.values >= nodes)]
    doubles = hyperedge[1:][(np.diff(hyperedge) == 0) & (np.diff(sets.values) == 0)]
    positions: dict[bytes, int] = {}
    repeats = [j for j in range(len(sets)) if positions.setdefault(sets[j].tobytes(), j) != j]
    for numbers, problem in (
        (strays, f"has a member outside 0 to {nodes - 1}"),
        (np.flatnonzero(sizes < least), f"has fewer than {least} members"),
        ([] if multisets else doubles, "names a member twice"),
        (repeats, "has the members of an earlier one"),
    ):
        if len(numbers):
            yield (
                f"distinct hyperedges of {least} or more of {nodes} nodes, but hyperedge {numbers[0]} "
                f"{problem}"
            )
