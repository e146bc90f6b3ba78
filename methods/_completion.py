"""Hyperedge completion: what clients and server exchange so that border hyperedges are whole (FedHGN).

``completed`` is the paper's protocol, ``completed_as_released`` what its code computes instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from bench.federation.traffic import TrafficMeter
from bench.federation.types import Client, ClientHyperedges

from ._hypergraph import LAYERS, Parts, Propagation, degrees, hyperedges


def completed(clients: Sequence[Client], traffic: TrafficMeter, least_upload: int = 1) -> Parts:
    """Every client's rows of ``L^N X`` of the whole hypergraph, by ``LAYERS`` exchanges."""
    known = [hyperedges(client) for client in clients]
    rows = [client.dense() for client in clients]
    # True degrees: a client knows every hyperedge that touches one of its nodes.
    operators = [Propagation.of(own.members, len(x), own.sizes) for own, x in zip(known, rows, strict=True)]
    for layer in range(LAYERS):
        rows = complete(known, operators, rows, traffic, layer, least_upload)
    return rows


def complete(
    known: Sequence[ClientHyperedges],
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
    3. ``x_v' = d(v)^-1/2 sum of s(e)^-1 delta(e) over e that contain v``; the client itself knows the
       sum over a hyperedge of its own, and its part of a sum that it did not send.

    This needs true degrees d and sizes s in ``operators``. Messages are int64 ids and float32 sums, one
    of each for a hyperedge, however often it names a node.
    """
    sent = [
        own.border & (operator.incidence.getnnz(axis=0) >= least_upload)
        for own, operator in zip(known, operators, strict=True)
    ]
    asked = np.unique(np.concatenate([own.ids[mine] for own, mine in zip(known, sent, strict=True)]))
    delta = np.zeros((len(asked), rows[0].shape[1]))
    for own, mine, operator, x in zip(known, sent, operators, rows, strict=True):
        message = operator.gather(x.astype(np.float64))[mine].astype(np.float32)
        traffic.upload(own.ids[mine], message, exchange=layer)
        delta[np.searchsorted(asked, own.ids[mine])] += message

    result = []
    for own, mine, operator, x in zip(known, sent, operators, rows, strict=True):
        # Sums are made again rather than kept: all clients' at once are larger than the features.
        sums = operator.gather(x.astype(np.float64))
        returned = np.isin(own.ids, asked)
        answer = delta[np.searchsorted(asked, own.ids[returned])].astype(np.float32)
        traffic.download(own.ids[returned], answer, exchange=layer)
        sums[mine] = 0
        sums[returned] += answer
        result.append(operator.spread(sums).astype(np.float32))
    return result


def completed_as_released(clients: Sequence[Client], traffic: TrafficMeter) -> Parts:
    """Completion as the released code has it, which holds everything in one process.

    A client propagates over the hyperedges that touch it, whole, so that a foreign node's degree
    counts these alone. In the first layer foreign nodes have their raw features, in every later one
    their exact rows of ``L X``. Counted is what would have to be sent: a foreign node's row from its
    owner to the server once, and to every client that needs it.
    """
    ids = np.concatenate([client.ids for client in clients])
    nodes = int(ids.max()) + 1
    edges = 1 + max(int(hyperedges(client).ids.max(initial=-1)) for client in clients)
    sizes = np.ones(edges, np.int64)
    pairs = []
    for client in clients:
        known = hyperedges(client)
        sizes[known.ids] = known.sizes
        pairs.append((client.ids[known.members.values], np.repeat(known.ids, known.members.sizes)))
    places = tuple(np.concatenate(part) for part in zip(*pairs, strict=True))
    incidence = sparse.csr_matrix((np.ones(len(places[0])), places), (nodes, edges))
    whole = Propagation(incidence, degrees(incidence), sizes)

    raw = np.zeros((nodes, clients[0].features.shape[1]), np.float32)
    for client in clients:
        raw[client.ids] = client.dense()
    exact = whole.spread(whole.gather(raw.astype(np.float64))).astype(np.float32)

    result = []
    columns = incidence.tocsc()
    needed = []
    for client in clients:
        known = hyperedges(client)
        near = columns[:, known.ids].tocsr()
        here = np.union1d(client.ids, np.flatnonzero(np.diff(near.indptr)))
        foreign = ~np.isin(here, client.ids)
        needed.append(here[foreign])
        near = near[here]
        operator = Propagation(near, degrees(near), known.sizes)
        rows = raw[here].astype(np.float64)
        for layer in range(LAYERS):
            if layer:
                rows[foreign] = exact[here[foreign]]
            traffic.download(here[foreign], rows[foreign].astype(np.float32), exchange=layer)
            rows = operator.spread(operator.gather(rows))
        own = np.empty((len(client.ids), rows.shape[1]), np.float32)
        own[:] = rows[np.searchsorted(here, client.ids)]
        result.append(own)
    wanted = np.unique(np.concatenate(needed))
    for client in clients:
        asked = client.ids[np.isin(client.ids, wanted)]
        for layer in range(LAYERS):
            traffic.upload(asked, (exact if layer else raw)[asked], exchange=layer)
    return result
