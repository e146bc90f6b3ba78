"""What hyperedge completion reveals: features that can be read from the sums that are sent (FedHGN).

Everybody is honest but curious and knows which nodes are in which hyperedge. A client's message for
a border hyperedge is the sum of its own nodes' scaled features, a linear equation whose coefficients
are how often the hyperedge names each (0 or 1 unless hyperedges are multisets), so that a node's
features are known once its unit vector lies in the span of the equations. Scales do not matter: a
node has the same in all its hyperedges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components

from bench.data import Ragged
from bench.federation.types import Client

Nodes = NDArray[np.int64]


@dataclass(frozen=True)
class Exposure:
    """Numbers of nodes, but for ``pairs``.

    ``border`` lie in a border hyperedge; ``alone`` are uploaded alone at least once;
    ``recoverable`` by the server from every client's uploads; ``recoverable_from_sums`` from the
    sums over clients, which are all that secure aggregation shows it; ``peer`` are known to another
    client, from one returned sum less its own part, and ``pairs`` counts those (client, hyperedge).
    """

    border: int
    alone: int
    recoverable: int
    recoverable_from_sums: int
    peer: int
    pairs: int


def exposure(clients: Sequence[Client], least: int = 1) -> Exposure:
    """What one layer of completion reveals, where parts of fewer than ``least`` nodes stay at home."""
    border: list[Nodes] = []
    uploads: list[list[Nodes]] = []
    uploaded: dict[int, list[tuple[int, Nodes]]] = {}
    touching: list[Nodes] = []
    for number, client in enumerate(clients):
        known = client.hyperedges
        assert known is not None
        places = np.flatnonzero(known.border)
        parts = [client.ids[known.members[place]] for place in places.tolist()]
        border.extend(parts)
        sent = [
            (edge, part)
            for edge, part in zip(known.ids[places], parts, strict=True)
            if _distinct([part]) >= least
        ]
        uploads.append([part for _, part in sent])
        touching.append(known.ids[places])
        for edge, part in sent:
            uploaded.setdefault(int(edge), []).append((number, part))
    peers = [
        others[0]
        for number, edges in enumerate(touching)
        for edge in edges.tolist()
        for others in [_others(uploaded.get(edge, []), number)]
        if len(others) == 1
    ]
    sums = [np.concatenate([part for _, part in parts]) for parts in uploaded.values()]
    return Exposure(
        border=_distinct(border),
        alone=_distinct([part for parts in uploads for part in parts if _distinct([part]) == 1]),
        recoverable=sum(len(determined(parts)) for parts in uploads),
        recoverable_from_sums=len(determined(sums)),
        peer=len(set(peers)),
        pairs=len(peers),
    )


def _others(parts: list[tuple[int, Nodes]], number: int) -> list[int]:
    return [node for owner, part in parts if owner != number for node in set(part.tolist())]


def _distinct(parts: list[Nodes]) -> int:
    return len(np.unique(np.concatenate([*parts, np.zeros(0, np.int64)])))


def determined(sums: Sequence[Nodes]) -> Nodes:
    """The nodes whose value follows from the sums over these multisets of nodes, ascending.

    Nodes that are alone in a sum are taken out of all others until none is; the rest falls into
    connected systems, in each of which node j is determined exactly if the projection on the span
    of the equations keeps its unit vector.
    """
    lists = Ragged.of(list(sums))
    nodes, columns = np.unique(lists.values, return_inverse=True)
    shape = (len(lists), len(nodes))
    equations = sparse.csr_matrix((np.ones(len(columns)), columns, lists.offsets), shape=shape)
    known = np.zeros(len(nodes), np.bool_)
    while True:
        single = equations @ ~known == 1
        if not single.any():
            break
        known[np.unique(equations[single].indices)] = True
    rest = np.flatnonzero(~known)
    system = equations[:, rest]
    count, part = connected_components(system.T @ system, directed=False)
    for index in range(count):
        own = np.flatnonzero(part == index)
        rows = system[:, own]
        known[rest[own]] = _kept_units(rows[np.diff(rows.indptr) > 0].toarray())
    return nodes[known]


def _kept_units(equations: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which unit vectors lie in the span of the rows of a matrix of whole numbers."""
    equations = np.unique(equations, axis=0)
    rows, columns = equations.shape
    if rows < columns:
        values, vectors = eigh(equations @ equations.T)
        kept = values > TOLERANCE * values[-1]
        projected = (vectors[:, kept].T @ equations) ** 2 / values[kept, None]
    else:
        values, vectors = eigh(equations.T @ equations)
        projected = vectors[:, values > TOLERANCE * values[-1]].T ** 2
    inside: NDArray[np.bool_] = projected.sum(axis=0) > 1 - 1e-6
    return inside


TOLERANCE = 1e-10
"""Eigenvalues of a matrix of whole numbers below this share of the largest count as zero."""
