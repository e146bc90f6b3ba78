"""Hyperedge completion: clients and server exchange sums so that border hyperedges are whole (FedHGN).

``completed`` is the paper's protocol. ``completed_as_released`` is the computation of its code. Features are
propagated over hyperedges by ``L = D^-1/2 H S^-1 H^T D^-1/2`` (Feng et al., HGNN, AAAI 2019).

The incidence matrix ``H`` ``[nodes, hyperedges]`` counts how often a hyperedge names a node. ``D`` has the
nodes' degrees (row sums of ``H``), ``S`` the hyperedges' sizes (column sums over all rows). A node of degree
0 has a zero row: it loses even its own features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bench.data import Ragged
from bench.federation.traffic import TrafficMeter
from bench.federation.types import Client, ClientHyperedges

LAYERS = 2
"""Number of propagations of the features; N in the paper."""

Parts = list[NDArray[np.float32]]
"""Rows of features, one array for each client."""

Rows = NDArray[np.float64]
"""One row of features for each node, or one sum of features for each hyperedge."""


@dataclass(frozen=True, eq=False)
class Propagation:
    """The two halves of ``L``: from nodes to hyperedges and back.

    ``incidence`` is ``[nodes, hyperedges]``. ``degrees`` ``[nodes]`` and ``sizes`` ``[hyperedges]`` are given
    separately, because a client that sees part of a hyperedge may know the true size.
    """

    incidence: sparse.csr_matrix
    degrees: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, members: Ragged, nodes: int, sizes: NDArray[np.int64]) -> Propagation:
        """Make it from hyperedges, given by their ``members`` among ``nodes`` nodes. Degrees are counted."""
        hyperedge = np.repeat(np.arange(len(members)), members.sizes)
        values = np.ones(len(members.values))
        shape = (nodes, len(members))
        incidence = sparse.csr_matrix((values, (members.values, hyperedge)), shape=shape)
        return cls(incidence, degrees(incidence), sizes)

    def gather(self, features: Rows) -> Rows:
        """``H^T D^-1/2 x``: the sum over the members of every hyperedge, ``[hyperedges, width]``."""
        return np.asarray(self.incidence.T @ self._scaled_rows(features))

    def spread(self, sums: Rows) -> Rows:
        """``D^-1/2 H S^-1 u``: add up the means of every node's hyperedges, ``[nodes, width]``."""
        return self._scaled_rows(np.asarray(self.incidence @ (sums / self.sizes[:, None])))

    def propagate(self, features: Rows, layers: int) -> Rows:
        """``L^layers x``."""
        for _ in range(layers):
            features = self.spread(self.gather(features))
        return features

    def _scaled_rows(self, rows: Rows) -> Rows:
        scale = np.zeros(len(self.degrees))
        scale[self.degrees > 0] = self.degrees[self.degrees > 0] ** -0.5
        return rows * scale[:, None]


def degrees(incidence: sparse.csr_matrix) -> NDArray[np.int64]:
    """How often hyperedges name each node, ``[nodes]``."""
    return np.asarray(incidence.sum(axis=1)).ravel().astype(np.int64)


def hyperedges(client: Client) -> ClientHyperedges:
    """The hyperedges of a client; they must not be None."""
    assert client.hyperedges is not None
    return client.hyperedges


def completed(clients: Sequence[Client], traffic: TrafficMeter, least_upload: int = 1) -> Parts:
    """Compute every client's rows of ``L^N X`` of the whole hypergraph in ``LAYERS`` exchanges."""
    parts = [hyperedges(client) for client in clients]
    rows = [client.dense() for client in clients]
    # True degrees: a client knows every hyperedge that touches one of its nodes.
    operators = [
        Propagation.of(part.members, len(x), part.sizes) for part, x in zip(parts, rows, strict=True)
    ]
    for layer in range(LAYERS):
        rows = complete(parts, operators, rows, traffic, layer, least_upload)
    return rows


def complete(
    parts: Sequence[ClientHyperedges],
    operators: Sequence[Propagation],
    rows: Parts,
    traffic: TrafficMeter,
    layer: int,
    least_upload: int = 1,
) -> Parts:
    """One layer of propagation with hyperedge completion: every client's rows of ``L x``.

    1. Client k sends ``u_k(e) = sum of d(v)^-1/2 x_v over its own v in e`` for its border hyperedges
       (of at least ``least_upload`` own nodes).
    2. The server returns ``delta(e) = sum of u_k(e) over k`` to every client that touches e.
    3. ``x_v' = d(v)^-1/2 sum of s(e)^-1 delta(e) over e that contain v``. The client computes the sums of
       its inner hyperedges itself, and adds its part to a sum if it did not send the part.

    ``operators`` must have true degrees d and sizes s. A message has one int64 id and one float32 sum for
    each hyperedge, however often the hyperedge names a node.
    """
    masks = [
        part.border & (operator.incidence.getnnz(axis=0) >= least_upload)
        for part, operator in zip(parts, operators, strict=True)
    ]
    ids = np.unique(np.concatenate([part.ids[mask] for part, mask in zip(parts, masks, strict=True)]))
    delta = np.zeros((len(ids), rows[0].shape[1]))
    for part, mask, operator, x in zip(parts, masks, operators, rows, strict=True):
        message = operator.gather(x.astype(np.float64))[mask].astype(np.float32)
        traffic.upload(part.ids[mask], message, exchange=layer)
        delta[np.searchsorted(ids, part.ids[mask])] += message

    result = []
    for part, mask, operator, x in zip(parts, masks, operators, rows, strict=True):
        # Sums are computed again: the sums of all clients together take more memory than the features.
        sums = operator.gather(x.astype(np.float64))
        replies = np.isin(part.ids, ids)
        answer = delta[np.searchsorted(ids, part.ids[replies])].astype(np.float32)
        traffic.download(part.ids[replies], answer, exchange=layer)
        sums[mask] = 0
        sums[replies] += answer
        result.append(operator.spread(sums).astype(np.float32))
    return result


def completed_as_released(clients: Sequence[Client], traffic: TrafficMeter) -> Parts:
    """Completion as in the released code, which holds everything in one process.

    A client propagates over all members of the hyperedges that touch it. A foreign node's degree counts only
    these hyperedges. Foreign nodes have raw features in the first layer, and their exact rows of ``L X`` in
    later layers. The traffic of a real exchange is counted: the owner sends a foreign node's row to the
    server once, and the server sends it to every client that needs it.
    """
    ids = np.concatenate([client.ids for client in clients])
    nodes = int(ids.max()) + 1
    edges = 1 + max(int(hyperedges(client).ids.max(initial=-1)) for client in clients)
    sizes = np.ones(edges, np.int64)
    pairs = []
    for client in clients:
        part = hyperedges(client)
        sizes[part.ids] = part.sizes
        pairs.append((client.ids[part.members.values], np.repeat(part.ids, part.members.sizes)))
    places = tuple(np.concatenate(part) for part in zip(*pairs, strict=True))
    incidence = sparse.csr_matrix((np.ones(len(places[0])), places), (nodes, edges))
    propagation = Propagation(incidence, degrees(incidence), sizes)

    raw = np.zeros((nodes, clients[0].features.shape[1]), np.float32)
    for client in clients:
        raw[client.ids] = client.dense()
    exact_rows = propagation.spread(propagation.gather(raw.astype(np.float64))).astype(np.float32)

    result = []
    columns = incidence.tocsc()
    id_lists = []
    for client in clients:
        part = hyperedges(client)
        local_incidence = columns[:, part.ids].tocsr()
        near_ids = np.union1d(client.ids, np.flatnonzero(np.diff(local_incidence.indptr)))
        is_foreign = ~np.isin(near_ids, client.ids)
        id_lists.append(near_ids[is_foreign])
        local_incidence = local_incidence[near_ids]
        operator = Propagation(local_incidence, degrees(local_incidence), part.sizes)
        rows = raw[near_ids].astype(np.float64)
        for layer in range(LAYERS):
            if layer:
                rows[is_foreign] = exact_rows[near_ids[is_foreign]]
            traffic.download(near_ids[is_foreign], rows[is_foreign].astype(np.float32), exchange=layer)
            rows = operator.spread(operator.gather(rows))
        client_rows = np.empty((len(client.ids), rows.shape[1]), np.float32)
        client_rows[:] = rows[np.searchsorted(near_ids, client.ids)]
        result.append(client_rows)
    wanted_ids = np.unique(np.concatenate(id_lists))
    for client in clients:
        upload_ids = client.ids[np.isin(client.ids, wanted_ids)]
        for layer in range(LAYERS):
            traffic.upload(upload_ids, (exact_rows if layer else raw)[upload_ids], exchange=layer)
    return result
