"""FedCog: Federated Learning Over Coupled Graphs (Lei et al., IEEE TPDS 2023).

A simple graph convolution (SGC) propagates features linearly, so that a client's part can be
decoupled: in every step its internal edges give one part of a node's sum, and its border edges the
other, for which the holders of the border neighbours send their embeddings. Nothing is lost: the
clients' rows are those of propagation over the whole graph. Then a linear classifier is averaged.

No code by the authors is public. FedHGN's (arXiv 2408.05160, Table 3) propagates over the whole graph
in one process, without messages; its classifier is FedHGN's own, ``hgnn_relu``. It also links nodes
that have no edge inside their client to the one nearest in features (kNN with k = 2, the node itself
among them), with two defects that are not repeated here: those links are in client-local numbers but
join the list of edges in global ones, and the list is changed in place, so that links pile up over
the 20 runs.

Here the rows come by the exchange, counted; the classifier is linear (client model ``hgnn``), and
the nearest-neighbour links are an option, in the right numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bench.engine.method import Method
from bench.federation.foreign import Holders, Indices, fetch, known_cross_edges
from bench.federation.traffic import TrafficMeter
from bench.federation.types import Client, Federation

from .fedavg import FedAvg, SampleWeights

LAYERS = 2
"""How often features are propagated."""

Parts = list[NDArray[np.float32]]
"""Rows of features, one array a client."""


class FedCog(FedAvg):
    """Averaged linear models on losslessly propagated features, ``A A X Theta1 Theta2``.

    ``A`` is the adjacency of the whole graph with self-loops, symmetrically normalised by true
    degrees.
    """

    name = "fedcog"
    title = "FedCog"
    reference = "Lei et al., TPDS 2023"
    families = ("graph",)
    client: ClassVar[dict[str, str]] = {"model": "hgnn"}
    onboard = Method.onboard  # the clients that newcomers have neighbours at are not among them

    class Hyper(SampleWeights):
        """``knn``: link nodes without an edge inside their client as ``nearest_links`` does."""

        knn: bool = False

    hyper: Hyper

    def prepare_data(self, federation: Federation, traffic: TrafficMeter) -> Federation:
        """Every client's features are replaced by its rows of ``A A X``."""
        clients = federation.clients
        crossing = known_cross_edges(federation, self.name)
        holders = Holders.of(clients, self.name)
        parts = []
        for client, cross in zip(clients, crossing, strict=True):
            assert client.edges is not None
            new = nearest_links(client) if self.hyper.knn else np.zeros((2, 0), np.int64)
            parts.append(Decoupled(np.concatenate([client.edges, new], axis=1), cross, len(client.ids)))
        rows = [client.dense() for client in clients]
        for layer in range(LAYERS):
            rows = propagated(parts, holders, rows, traffic, layer)
        replaced = [replace(client, features=z) for client, z in zip(clients, rows, strict=True)]
        return replace(federation, clients=tuple(replaced))


class Decoupled:
    """A client's part of the graph: internal edges with self-loops, and border edges.

    ``border`` ``[nodes, len(foreign)]`` links own nodes to the nodes of other clients with ids
    ``foreign``; ``scale`` ``[nodes]`` is d^-1/2 with true degrees, self-loop included.
    """

    def __init__(self, edges: Indices, cross: Indices, nodes: int) -> None:
        self.foreign, place = np.unique(cross[1], return_inverse=True)
        self.internal = _incidence(edges[1], edges[0], (nodes, nodes)) + sparse.eye_array(nodes, format="csr")
        self.border = _incidence(cross[0], place, (nodes, len(self.foreign)))
        degrees = np.asarray(self.internal.sum(axis=1) + self.border.sum(axis=1)).ravel()
        self.scale = degrees[:, None] ** -0.5


def _incidence(rows: Indices, columns: Indices, shape: tuple[int, int]) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def propagated(
    parts: Sequence[Decoupled], holders: Holders, rows: Parts, traffic: TrafficMeter, layer: int
) -> Parts:
    """One step of propagation: every client's rows of ``A x``, ``[nodes, width]``.

    1. The holder of u sends ``d(u)^-1/2 x_u`` once; the server passes it on to every client that has
       a neighbour of u.
    2. ``x_v' = d(v)^-1/2 (sum over v and its internal neighbours + sum over its border neighbours)``
       of those scaled rows.

    Messages are int64 ids and float32 rows.
    """
    scaled = [(part.scale * x).astype(np.float32) for part, x in zip(parts, rows, strict=True)]
    fetched = fetch(holders, [part.foreign for part in parts], scaled, traffic, exchange=layer)
    result = []
    for part, own, foreign in zip(parts, scaled, fetched, strict=True):
        total = part.internal @ own + part.border @ foreign
        result.append((part.scale * total).astype(np.float32))
    return result


def nearest_links(client: Client) -> Indices:
    """Edges ``[2, m]``, both directions, from every node without one to the nearest other node.

    Nearest by Euclidean distance of features (the sources name no measure), of equally near ones the
    first. A client of one node gets none.
    """
    assert client.edges is not None
    lone = np.setdiff1d(np.arange(len(client.ids)), client.edges[0])
    if len(client.ids) < 2:
        return np.zeros((2, 0), np.int64)
    rows = client.dense().astype(np.float64)
    squares = (rows**2).sum(axis=1)
    distances = squares - 2 * rows[lone] @ rows.T  # less the node's own square, the same for all
    distances[np.arange(len(lone)), lone] = np.inf
    links = np.stack([lone, distances.argmin(axis=1)])
    return np.unique(np.concatenate([links, links[::-1]], axis=1), axis=1)
