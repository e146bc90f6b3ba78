"""The arrays of a data set after reading: the same form for every source.

Other forms of arrays are converted if their meaning is clear.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from bench.errors import RequestError

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

    ``ids[c]`` ``[n_c]`` int64 are the nodes of client ``c``. ``roles`` ``[nodes]`` int8 are the roles of the
    graph's nodes (``bench.federation.types``). If ``roles`` is None, the ``permutation``-th permutation
    from the partition's seed assigns the roles.
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
    compare hypergraph methods with graph methods. If a graph has hyperedges, its clients know them, and
    also the edges to nodes of other clients. ``published`` are clients that papers have published.
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

    With ``multisets`` a hyperedge may contain a node several times; degrees, sizes and sums count the node
    as many times.
    """

    features: sparse.csr_matrix | NDArray[np.float32]
    labels: NDArray[np.int64]
    hyperedges: Ragged
    classes: int
    multisets: bool = False


@dataclass(frozen=True, eq=False)
class Images:
    """Images ``[items, channels, height, width]`` uint8 with one class each.

    If the images are a sample of a larger set, ``population`` ``[all]`` int64 holds the classes of all images
    of the larger set, and ``positions`` ``[items]`` int64, ascending, the positions of the sample in it.
    Clients are drawn on the population and keep only images of the sample. Their mix of classes is thus the
    same as with the complete set. Both are None if no image is missing.
    """

    pixels: NDArray[np.uint8]
    labels: NDArray[np.int64]
    classes: int
    population: NDArray[np.int64] | None = None
    positions: NDArray[np.int64] | None = None


Data = Graph | Hypergraph | Images


# One's own data ------------------------------------------------------------------------------------

CHANNELS = (1, 3)
"""Numbers of channels that images may have."""

SORTS: dict[Family, type[Data]] = {"graph": Graph, "hypergraph": Hypergraph, "images": Images}
"""The class of the data of each family."""


def made_right(data: Data, family: Family) -> tuple[Data, list[str]]:
    """Convert the arrays of a data set to the form that its class documents; also list the changes in words.

    Arrays may be NumPy's, SciPy's or torch's. Features may be of any number type, dense or sparse. Labels may
    be any whole numbers or words. Edges may be ``[2, m]``, ``[m, 2]`` or a sparse matrix, in one direction or
    both, in any order, repeated and with loops. Pixels may have their channels first or last.

    Raises:
        RequestError: the meaning of the arrays is not clear. The message names the first such item.
    """
    if not isinstance(data, SORTS[family]):
        raise RequestError(f"expected {SORTS[family].__name__}, got {type(data).__name__}")
    done: list[str] = []
    arrays: dict[str, Any] = {}
    if isinstance(data, Images):
        arrays["pixels"] = items = _pixels(data.pixels, done)
    else:
        arrays["features"] = items = _features(data.features, done)
    arrays["labels"], arrays["classes"] = _labels(data.labels, data.classes, items.shape[0], done)
    if not isinstance(data, Images) and data.hyperedges is not None:
        _check_members(data.hyperedges, items.shape[0])
    if isinstance(data, Graph):
        arrays["edges"] = _edges(data.edges, items.shape[0], done)
    return replace(data, **arrays), done


def of_torch_geometric(data: Any, is_whole: bool = False) -> tuple[Graph, list[str]]:
    """The graph of a ``torch_geometric.data.Data`` with ``x``, ``y`` and ``edge_index``, without its masks.

    Only the largest component is kept, unless ``is_whole``. The list gives the changes in words.

    Raises:
        RequestError: nodes are of several kinds or have several labels, or ``made_right`` raises it.
    """
    if hasattr(data, "node_types"):
        raise RequestError("it has several kinds of nodes or edges: expected one of each")
    graph, done = made_right(Graph(data.x, data.y, data.edge_index, 0), "graph")
    assert isinstance(graph, Graph)
    part = graph if is_whole else largest_component(graph)
    if count := len(graph.labels) - len(part.labels):
        done.append(f"{count} of {len(graph.labels)} nodes are outside the largest component: left out")
    return part, done


def say(name: str, done: Sequence[str]) -> None:
    """Print the changes to a data set on standard error."""
    if done:
        print(f"bench: {name}: {'; '.join(done)}", file=sys.stderr)


def _array(values: Any) -> Any:
    """Convert to a NumPy array, or to a SciPy CSR matrix if the values are sparse."""
    if sparse.issparse(values):
        return sparse.csr_matrix(values)
    if hasattr(values, "detach"):  # a tensor; a test of its type would import torch
        values = values.detach().cpu()
        if values.layout.__repr__() != "torch.strided":
            entries = values.to_sparse_coo().coalesce()
            shape = tuple(values.shape)
            return sparse.csr_matrix((entries.values().numpy(), entries.indices().numpy()), shape)
        return values.numpy()
    return np.asarray(values)


def _features(values: Any, done: list[str]) -> Any:
    matrix = _array(values)
    if len(matrix.shape) != 2:
        raise RequestError(f"expected features [nodes, width], got the shape {tuple(matrix.shape)}")
    if matrix.dtype != np.float32:
        done.append(f"features were {matrix.dtype} and are float32")
        matrix = matrix.astype(np.float32)
    numbers = matrix.data if sparse.issparse(matrix) else matrix
    if not np.isfinite(numbers).all():
        dense = matrix.toarray() if sparse.issparse(matrix) else matrix
        row, column = np.argwhere(~np.isfinite(dense))[0]
        raise RequestError(f"feature {column} of node {row} is {dense[row, column]}")
    return matrix


def _pixels(values: Any, done: list[str]) -> NDArray[np.uint8]:
    pixels: NDArray[np.uint8] = _array(values)
    if pixels.ndim != 4 or pixels.dtype != np.uint8:
        raise RequestError(
            f"expected pixels [items, channels, height, width] of 0 to 255 as uint8, got {pixels.dtype} in "
            f"the shape {tuple(pixels.shape)}"
        )
    if pixels.shape[3] in CHANNELS and pixels.shape[1] not in CHANNELS:
        done.append("pixels have their channels first now")
        return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
    return pixels


def _check_members(hyperedges: Ragged, nodes: int) -> None:
    strays = np.flatnonzero((hyperedges.values < 0) | (hyperedges.values >= nodes))
    if len(strays):
        number = np.searchsorted(hyperedges.offsets, strays[0], side="right") - 1
        raise RequestError(f"hyperedge {number} has a member outside 0 to {nodes - 1}")


def _labels(values: Any, classes: int, count: int, done: list[str]) -> tuple[NDArray[np.int64], int]:
    """Convert labels to 0 to ``classes`` - 1. Such labels stay as they are, also if a class has no item."""
    labels = _array(values)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise RequestError(f"expected one label an item, got labels of the shape {tuple(labels.shape)}")
    if len(labels) != count:
        raise RequestError(f"expected a label for every item, got {len(labels):,} for {count:,}")
    if labels.dtype.kind == "f":
        strays = np.flatnonzero(~(labels == np.floor(labels)))
        if len(strays):
            raise RequestError(f"the label of item {strays[0]} is {labels[strays[0]]}: expected a class")
        labels = labels.astype(np.int64)
    if labels.dtype.kind in "iu" and len(labels) and labels.min() >= 0 and labels.max() < classes:
        return labels.astype(np.int64), classes
    names, numbers = np.unique(labels, return_inverse=True)
    if 0 < classes < len(names):
        raise RequestError(f"expected labels of 0 to {classes - 1}, got {names[0]} to {names[-1]}")
    if len(names) < 2:
        raise RequestError(f"all {len(labels)} items have one label: there is nothing to learn")
    if labels.dtype.kind not in "iu" or not np.array_equal(names, np.arange(len(names))):
        done.append(f"labels {names[0]} to {names[-1]} are classes 0 to {len(names) - 1}")
    return numbers.astype(np.int64), len(names)


def _edges(values: Any, nodes: int, done: list[str]) -> NDArray[np.int64]:
    """Both directions of every edge once, without loops, sorted by source and target."""
    pairs = _array(values)
    if sparse.issparse(pairs):
        pairs = np.stack(pairs.nonzero())
    if pairs.ndim != 2 or 2 not in pairs.shape:
        raise RequestError(f"expected edges [2, m] or [m, 2], got the shape {tuple(pairs.shape)}")
    pairs = pairs if pairs.shape[0] == 2 else pairs.T
    strays = np.flatnonzero(((pairs < 0) | (pairs >= nodes) | (pairs != np.floor(pairs))).any(axis=0))
    if len(strays):
        source, target = pairs[:, strays[0]].tolist()
        raise RequestError(f"edge {strays[0]} joins {source} and {target}, but nodes are 0 to {nodes - 1}")
    edges = undirected(pairs, nodes)
    if edges.shape != pairs.shape:
        counts = f"{pairs.shape[1]} edges became {edges.shape[1]}"
        done.append(f"{counts}: both directions of each, without loops and repeats")
    return edges


def undirected(pairs: NDArray[Any], nodes: int) -> NDArray[np.int64]:
    """Both directions of every pair ``[2, m]``, without self-loops or repeats, sorted by (source, target)."""
    source, target = pairs.astype(np.int64)
    mask = source != target
    source, target = source[mask], target[mask]
    keys = np.unique(np.concatenate([source * nodes + target, target * nodes + source]))
    return np.stack(np.divmod(keys, nodes))


def largest_component(graph: Graph) -> Graph:
    """The subgraph of the connected component with most nodes; the order of nodes is kept.

    If several are equally large, the component with the lowest node is chosen. ``classes`` stays the number
    of classes of the whole graph.
    """
    nodes = len(graph.labels)
    links = sparse.coo_matrix((np.ones(graph.edges.shape[1], np.int8), graph.edges), shape=(nodes, nodes))
    _, component = connected_components(links, directed=False)
    mask = component == np.bincount(component).argmax()
    position = np.cumsum(mask) - 1
    return Graph(
        features=graph.features[mask],
        labels=graph.labels[mask],
        edges=position[graph.edges[:, mask[graph.edges[0]]]],
        classes=graph.classes,
    )
