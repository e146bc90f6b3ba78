"""Federations whose clients know their cross edges, and what methods make of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from toy_federations import both_ways, furthest, make_spec

from bench.data import Graph, Ragged
from bench.engine.run import Run
from bench.federation.clients import assigned_clients
from bench.federation.scenario import Assignment
from bench.federation.traffic import TrafficMeter
from bench.federation.types import TEST, TRAIN, VALIDATION, Client, Federation


def split_graph(features: Any, pairs: Sequence[tuple[int, int]], owner: Sequence[int]) -> Federation:
    """Node v with row v of ``features`` belongs to client ``owner[v]``; roles alternate."""
    rows = sparse.csr_matrix(np.asarray(features, np.float32))
    nodes = np.arange(rows.shape[0])
    graph = Graph(rows, nodes % 2, both_ways(pairs), 2, hyperedges=Ragged.of([]))
    parts = [np.flatnonzero(np.asarray(owner) == client) for client in range(max(owner) + 1)]
    roles = np.array([TRAIN, TEST, VALIDATION], np.int8)[nodes % 3]
    clients = assigned_clients(graph, Assignment(tuple(parts), tuple(roles[part] for part in parts)))
    return Federation("toy", "split", "graph", 2, clients, "split")


Pairs = list[tuple[int, int]]


def random_split(seed: int, clients: int = 4, nodes: int = 40) -> tuple[Federation, NDArray[Any], Pairs]:
    """A random graph over clients, node 7 without edges; with its features and edges."""
    rng = np.random.default_rng(seed)
    features = (rng.random((nodes, 6)) < 0.4) * rng.integers(1, 4, (nodes, 6))
    drawn = rng.integers(0, nodes, (nodes * 3 // 2, 2))
    pairs = [(int(u), int(v)) for u, v in drawn if u != v and 7 not in (u, v)]
    owner = [*range(clients), *(int(client) for client in rng.integers(0, clients, nodes - clients))]
    return split_graph(features, pairs, owner), features, pairs


def fed(
    method: str, federation: Federation, traffic: TrafficMeter | None = None, **hyper: Any
) -> tuple[Client, ...]:
    """The clients that a method trains on."""
    it = Run(make_spec(method, federation, hyper=hyper), federation)
    return it.method.prepare_data(federation, traffic or TrafficMeter()).clients


def edges_of(client: Client) -> set[frozenset[int]]:
    """Undirected edges by node ids; both directions must be there once, sorted."""
    assert client.edges is not None
    arcs = client.edges.T.tolist()
    assert arcs == sorted(map(list, {tuple(arc) for arc in arcs}))
    assert all([v, u] in arcs for u, v in arcs)
    return {frozenset(pair) for pair in client.ids[client.edges].T.tolist()}


def edges(*pairs: tuple[int, int]) -> set[frozenset[int]]:
    return {frozenset(pair) for pair in pairs}


def without_cross_edges(seed: int, alone: bool) -> Federation:
    """One client with everything, or two clients without an edge between them."""
    federation, _, pairs = random_split(seed, clients=1)
    if alone:
        return federation
    owner = [v % 2 for v in range(40)]
    return split_graph(np.eye(40), [(u, v) for u, v in pairs if owner[u] == owner[v]], owner)


def same_run(one: Run, other: Run) -> bool:
    counts = all(np.array_equal(value, other.correct()[key]) for key, value in one.correct().items())
    return furthest(one.own, other.own) == 0 and counts
