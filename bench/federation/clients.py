"""Makes clients from an assignment: each client gets its part of a data set."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bench.data import Data, Graph, Images, Ragged
from bench.federation.scenario import Assignment
from bench.federation.types import Client, ClientHyperedges


def adjacency(graph: Graph) -> sparse.csr_array:
    """The edges as ones in a matrix ``[nodes, nodes]``, sorted by row and column."""
    values, nodes = np.ones(graph.edges.shape[1], np.int8), len(graph.labels)
    return sparse.csr_array((values, tuple(graph.edges)), shape=(nodes, nodes))


def known_hyperedges(lists: Ragged, nodes: int, ids: NDArray[np.int64]) -> ClientHyperedges:
    """Return what the client with the nodes ``ids`` (of ``nodes`` in all) knows of its hyperedges."""
    position = np.full(nodes, -1, np.int64)
    position[ids] = np.arange(len(ids))
    members = position[lists.values]
    hyperedge = np.repeat(np.arange(len(lists)), lists.sizes)[members >= 0]
    members = members[members >= 0]
    order = np.lexsort((members, hyperedge))
    numbers, counts = np.unique(hyperedge, return_counts=True)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return ClientHyperedges(numbers, Ragged(offsets, members[order]), lists.sizes[numbers])


def assigned_clients(data: Data, assignment: Assignment) -> tuple[Client, ...]:
    """Return every client's items, with its induced subgraph and the hyperedges that touch it, if any."""
    features = data.pixels if isinstance(data, Images) else data.features
    hyperedges = None if isinstance(data, Images) else data.hyperedges
    neighbours = adjacency(data) if isinstance(data, Graph) else None
    clients = []
    for ids, roles in zip(assignment.ids, assignment.roles, strict=True):
        known = edges = cross_edges = None
        if hyperedges is not None:
            known = known_hyperedges(hyperedges, len(data.labels), ids)
        if neighbours is not None:
            rows = neighbours[ids]
            edges = np.stack(rows[:, ids].sorted_indices().nonzero()).astype(np.int64)
            if known is not None:
                ends = np.stack(rows.nonzero()).astype(np.int64)
                cross_edges = ends[:, ~np.isin(ends[1], ids)]
        clients.append(Client(ids, data.labels[ids], roles, features[ids], edges, known, cross_edges))
    return tuple(clients)
