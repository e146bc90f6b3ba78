"""Statistics of the clients' data, as the papers define them.

Subgraph facts 1.16 to 1.18, hypergraph facts 1.3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import rel_entr

from bench.data import Ragged
from bench.federation.types import Federation


def clustering(edges: NDArray[np.int64], nodes: int) -> float:
    """Mean Watts-Strogatz local clustering coefficient over all nodes; it is 0 for a node of degree below 2.

    ``edges`` ``[2, m]`` holds both directions of every edge, no loops or repeats. Every edge is
    directed from its end of lower degree, which keeps the products small where degrees are uneven.
    """
    degree = np.bincount(edges[0], minlength=nodes)
    rank = np.empty(nodes, np.int64)
    rank[np.argsort(degree, kind="stable")] = np.arange(nodes)
    ends = edges[:, rank[edges[0]] < rank[edges[1]]]
    arcs = sparse.csr_array((np.ones(ends.shape[1], np.int64), (ends[0], ends[1])), shape=(nodes, nodes))
    # A triangle a -> b -> c, a -> c is counted once at its arc a -> c, and once at its arc b -> c. Both
    # products run over arcs that leave a node, which are few; thousands of arcs may enter a hub.
    by_long = (arcs @ arcs).multiply(arcs)
    by_last = (arcs.T @ arcs).multiply(arcs)
    triangles = by_long.sum(axis=1) + by_long.sum(axis=0) + by_last.sum(axis=1)
    pairs = degree * (degree - 1) / 2
    return float(np.divide(triangles, pairs, out=np.zeros(nodes), where=pairs > 0).mean())


def class_counts(labels: Sequence[NDArray[np.int64]], classes: int) -> NDArray[np.int64]:
    """How many items of every class each client has ``[clients, classes]``.

    ``labels[c]`` are the classes of the items of client ``c``.
    """
    return np.stack([np.bincount(part, minlength=classes) for part in labels])


def heterogeneity(labels: Sequence[NDArray[np.int64]], classes: int) -> float | None:
    """Median over pairs of clients of the Jensen-Shannon distance of their class shares.

    The distance is the square root of the divergence in natural logarithms, 0 to sqrt(ln 2).
    ``labels[c]`` are the classes of all items of client ``c``. None for a single client.
    """
    counts = class_counts(labels, classes)
    shares = counts / counts.sum(axis=1, keepdims=True)
    rows, columns = np.triu_indices(len(shares), k=1)
    if not rows.size:
        return None
    p, q = shares[rows], shares[columns]
    mean = (p + q) / 2
    divergence = (rel_entr(p, mean) + rel_entr(q, mean)).sum(axis=1) / 2
    return float(np.median(np.sqrt(np.maximum(divergence, 0.0))))


def graph_statistics(federation: Federation) -> dict[str, float | None]:
    """Means over clients of nodes, directed edges and clustering, and the heterogeneity."""
    clients = [(client.labels, client.edges) for client in federation.clients if client.edges is not None]
    return {
        "nodes": float(np.mean([len(labels) for labels, _ in clients])),
        "edges": float(np.mean([edges.shape[1] for _, edges in clients])),
        "clustering": float(np.mean([clustering(edges, len(labels)) for labels, edges in clients])),
        "heterogeneity": heterogeneity([labels for labels, _ in clients], federation.classes),
    }


def holders(ids: Sequence[NDArray[np.int64]], nodes: int) -> NDArray[np.int64]:
    """Return the client that holds each node ``[nodes]``. The clients' ``ids`` cover all nodes."""
    holder = np.empty(nodes, np.int64)
    for client, part in enumerate(ids):
        holder[part] = client
    return holder


def border_hyperedges(hyperedges: Ragged, holder: NDArray[np.int64]) -> int:
    """Number of hyperedges with members at two or more clients; none may be empty (hypergraph facts 1.3)."""
    clients, starts = holder[hyperedges.values], hyperedges.offsets[:-1]
    return int((np.minimum.reduceat(clients, starts) < np.maximum.reduceat(clients, starts)).sum())


def cross_client_edges(edges: NDArray[np.int64], holder: NDArray[np.int64]) -> int:
    """Number of undirected edges between clients; ``edges`` ``[2, m]`` has each both ways."""
    return int((holder[edges[0]] != holder[edges[1]]).sum()) // 2
