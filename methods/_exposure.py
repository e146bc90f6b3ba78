"""Exposure by hyperedge completion: the features that can be read from the exchanged sums (FedHGN).

Server and clients are honest but curious, and know which nodes are in which hyperedge. A client's message
for a border hyperedge is the sum of its own nodes' scaled features. This is a linear equation: a node's
coefficient is how often the hyperedge names the node. A node's features are known if its unit vector lies in
the span of the equations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from bench.data import Ragged
from bench.federation.types import Client

Nodes = NDArray[np.int64]


@dataclass(frozen=True)
class Exposure:
    """Counts of nodes, except ``pairs``. Runs store them in this order; append new fields at the end.

    ``border``: in a border hyperedge. ``alone``: uploaded alone at least once. ``recoverable``: the server
    can compute them from every client's uploads. ``recoverable_from_sums``: the server can from the sums over
    clients, all that secure aggregation shows. ``peer``: another client knows them from one returned sum
    minus its own part. ``pairs``: the number of pairs (client, hyperedge) where this happens.
    ``recoverable_by_peers``: another client knows them from all sums that it receives.
    """

    border: int
    alone: int
    recoverable: int
    recoverable_from_sums: int
    peer: int
    pairs: int
    recoverable_by_peers: int


def exposure(clients: Sequence[Client], least: int = 1) -> Exposure:
    """Exposure by one layer of completion. Clients do not send parts of fewer than ``least`` nodes."""
    border: list[Nodes] = []
    uploads: list[list[Nodes]] = []
    uploaded: dict[int, list[tuple[int, Nodes]]] = {}
    edge_lists: list[Nodes] = []
    for number, client in enumerate(clients):
        hyperedges = client.hyperedges
        assert hyperedges is not None
        places = np.flatnonzero(hyperedges.border)
        parts = [client.ids[hyperedges.members[place]] for place in places.tolist()]
        border.extend(parts)
        uploaded_parts = [
            (edge, part)
            for edge, part in zip(hyperedges.ids[places], parts, strict=True)
            if _distinct_count([part]) >= least
        ]
        uploads.append([part for _, part in uploaded_parts])
        edge_lists.append(hyperedges.ids[places])
        for edge, part in uploaded_parts:
            uploaded.setdefault(int(edge), []).append((number, part))
    sums = [
        [np.concatenate(peers) for edge in edges.tolist() if (peers := _other_parts(uploaded, edge, number))]
        for number, edges in enumerate(edge_lists)
    ]
    lone_ids = [part[0] for parts in sums for part in parts if _distinct_count([part]) == 1]
    return Exposure(
        border=_distinct_count(border),
        alone=_distinct_count([part for parts in uploads for part in parts if _distinct_count([part]) == 1]),
        recoverable=sum(len(determined(parts)) for parts in uploads),
        recoverable_from_sums=len(
            determined([np.concatenate([part for _, part in parts]) for parts in uploaded.values()])
        ),
        peer=len(set(lone_ids)),
        pairs=len(lone_ids),
        recoverable_by_peers=_distinct_count([determined(parts) for parts in sums]),
    )


def _other_parts(uploaded: Mapping[int, list[tuple[int, Nodes]]], edge: int, number: int) -> list[Nodes]:
    """The parts in the sum of a hyperedge, without the part of client ``number``."""
    return [part for owner, part in uploaded.get(edge, []) if owner != number]


def _distinct_count(parts: list[Nodes]) -> int:
    return len(np.unique(np.concatenate([*parts, np.zeros(0, np.int64)])))


def determined(sums: Sequence[Nodes]) -> Nodes:
    """The nodes whose values follow from the sums over these multisets of nodes, ascending.

    Node j is determined if and only if its unit vector lies in the span of the equations. Then every vector
    that is orthogonal to all equations is zero at j. Eight random vectors stand for all.
    """
    lists = Ragged.of(list(sums))
    nodes, columns = np.unique(lists.values, return_inverse=True)
    if not len(nodes):
        return nodes
    shape = (len(lists), len(nodes))
    equations = sparse.csc_array(
        sparse.csr_array((np.ones(len(columns)), columns, lists.offsets), shape=shape)
    )
    vectors = np.random.default_rng(0).standard_normal((len(nodes), 8))
    residual = np.abs(_orthogonal(equations, vectors)).max(axis=1)
    result: Nodes = nodes[residual < 1e-6]  # sums of Cora, CiteSeer, DBLP4k, IMDB4k: < 1e-12 or > 1e-3
    return result


def _orthogonal(equations: sparse.csc_array, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Subtract from ``vectors`` ``[nodes, any]`` their projections on the rows of ``equations``.

    Let A be the equations. The solution of ``[[I, A'], [A, -d I]] [x, y] = [v, 0]`` is
    ``x = d (d I + A' A)^-1 v``. Along a singular vector, v shrinks by ``d / (d + s²)``; it stays if the
    singular value s is 0. The matrix is as sparse as A, unlike ``A' A``. Its diagonal may be eliminated in
    any order for any rank of A.
    """
    rows, columns = equations.shape
    system = sparse.block_array(
        [
            [sparse.eye_array(columns), equations.T],
            [equations, -DAMPING * sparse.eye_array(rows)],
        ],
        format="csc",
    )
    solver = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    for _ in range(8):  # a factor of 1e-2 becomes 1e-16
        right_side = np.concatenate([vectors, np.zeros((rows, vectors.shape[1]))])
        vectors = solver.solve(right_side)[:columns]
    return vectors


DAMPING = 1e-9
"""d: singular values (of a matrix of whole numbers) far below the root of d count as zero."""
