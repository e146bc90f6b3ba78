"""Data as people have them, made into what ``bench.data`` promises where the meaning is plain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from bench.data import Data, Family, Graph, Hypergraph, Images, Ragged
from bench.errors import RequestError

CHANNELS = (1, 3)
"""Channels that pictures have."""

SORTS: dict[Family, type[Data]] = {"graph": Graph, "hypergraph": Hypergraph, "images": Images}
"""What the data sets of a family are read as."""


def made_right(data: Data, family: Family) -> Data:
    """Data whose arrays are as ``bench.data`` promises.

    Arrays may be NumPy's, SciPy's or torch's. Features may be of any number type, dense or sparse. Labels may
    be any whole numbers or words. Edges may be ``[2, m]``, ``[m, 2]`` or a sparse matrix, in one direction or
    both, in any order, repeated and with loops.

    Raises:
        RequestError: what the arrays mean is not plain, with the first item that says so.
    """
    if not isinstance(data, SORTS[family]):
        raise RequestError(f"expected {SORTS[family].__name__}, got {type(data).__name__}")
    if isinstance(data, Images):
        pixels = _pixels(data.pixels)
        labels, classes = _labels(data.labels, data.classes, len(pixels))
        return replace(data, pixels=pixels, labels=labels, classes=classes)
    features = _features(data.features)
    nodes = features.shape[0]
    labels, classes = _labels(data.labels, data.classes, nodes)
    if data.hyperedges is not None:
        _check_members(data.hyperedges, nodes)
    data = replace(data, features=features, labels=labels, classes=classes)
    return replace(data, edges=_edges(data.edges, nodes)) if isinstance(data, Graph) else data


def of_torch_geometric(data: Any, is_whole: bool = False) -> Graph:
    """The graph of a ``torch_geometric.data.Data`` with ``x``, ``y`` and ``edge_index``, without its masks.

    It is the largest component unless ``is_whole``.

    Raises:
        RequestError: it is no graph with one kind of nodes and one label a node, or as ``made_right``.
    """
    if hasattr(data, "node_types"):
        raise RequestError("it has several kinds of nodes or edges: expected one of each")
    graph = made_right(Graph(data.x, data.y, data.edge_index, 0), "graph")
    assert isinstance(graph, Graph)
    return graph if is_whole else largest_component(graph)


def _array(values: Any) -> Any:
    """A NumPy array, or a SciPy CSR matrix of what is sparse."""
    if sparse.issparse(values):
        return sparse.csr_matrix(values)
    if hasattr(values, "detach"):  # torch is not imported for this
        values = values.detach().cpu()
        if values.layout.__repr__() != "torch.strided":
            entries = values.to_sparse_coo().coalesce()
            shape = tuple(values.shape)
            return sparse.csr_matrix((entries.values().numpy(), entries.indices().numpy()), shape)
    return np.asarray(values)


def _features(values: Any) -> Any:
    matrix = _array(values)
    if len(matrix.shape) != 2:
        raise RequestError(f"expected features [nodes, width], got the shape {tuple(matrix.shape)}")
    matrix = matrix.astype(np.float32)
    if not np.isfinite(matrix.data if sparse.issparse(matrix) else matrix).all():
        dense = matrix.toarray() if sparse.issparse(matrix) else matrix
        row, column = np.argwhere(~np.isfinite(dense))[0]
        raise RequestError(f"feature {column} of node {row} is {dense[row, column]}")
    return matrix


def _pixels(values: Any) -> NDArray[np.uint8]:
    pixels: NDArray[np.uint8] = _array(values)
    if pixels.ndim != 4 or pixels.shape[1] not in CHANNELS or pixels.dtype != np.uint8:
        raise RequestError(
            f"expected pixels [items, 1 or 3 channels, height, width] of 0 to 255 as uint8, got "
            f"{pixels.dtype} in the shape {tuple(pixels.shape)}"
        )
    return pixels


def _check_members(hyperedges: Ragged, nodes: int) -> None:
    strays = np.flatnonzero((hyperedges.values < 0) | (hyperedges.values >= nodes))
    if len(strays):
        number = np.searchsorted(hyperedges.offsets, strays[0], side="right") - 1
        raise RequestError(f"hyperedge {number} has a member outside 0 to {nodes - 1}")


def _labels(values: Any, classes: int, count: int) -> tuple[NDArray[np.int64], int]:
    """Labels 0 to ``classes`` - 1. Labels that are so already stay, also where a class has no item."""
    labels = _array(values)
    if labels.shape == (count, 1):
        labels = labels[:, 0]
    if labels.shape != (count,):
        raise RequestError(f"expected one label for each of {count:,} items, got the shape {labels.shape}")
    if labels.dtype.kind == "f":
        strays = np.flatnonzero(labels != np.floor(labels))
        if len(strays):
            raise RequestError(f"the label of item {strays[0]} is {labels[strays[0]]}: expected a class")
        labels = labels.astype(np.int64)
    names, numbers = np.unique(labels, return_inverse=True)
    if labels.dtype.kind in "iu" and names.min(initial=0) >= 0 and names.max(initial=0) < classes:
        return labels.astype(np.int64), classes
    if 0 < classes < len(names):
        raise RequestError(f"expected labels of 0 to {classes - 1}, got {names[0]} to {names[-1]}")
    if len(names) < 2:
        raise RequestError(f"all {count} items have one label: there is nothing to learn")
    return numbers.astype(np.int64), len(names)


def _edges(values: Any, nodes: int) -> NDArray[np.int64]:
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
    return undirected(pairs, nodes)


def undirected(pairs: NDArray[Any], nodes: int) -> NDArray[np.int64]:
    """Both directions of every pair ``[2, m]``, without self-loops or repeats, sorted by (source, target)."""
    source, target = pairs.astype(np.int64)
    mask = source != target
    source, target = source[mask], target[mask]
    keys = np.unique(np.concatenate([source * nodes + target, target * nodes + source]))
    return np.stack(np.divmod(keys, nodes))


def largest_component(graph: Graph) -> Graph:
    """The subgraph of the connected component with most nodes; the order of nodes is kept.

    The first such component, by its lowest node, where several are equally large. ``classes``
    stays that of the whole graph.
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
