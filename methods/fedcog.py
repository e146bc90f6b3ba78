"""FedCog: Federated Learning Over Coupled Graphs (Lei et al., IEEE TPDS 2023).

A simple graph convolution (SGC) propagates features linearly, so that a client's part can be
decoupled: in every step its internal edges give one part of a node's sum, and its border edges the
other, for which the holders of the border neighbours send their embeddings. Nothing is lost: the
clients' rows are those of propagation over the whole graph. Then a linear classifier is averaged.

No code by the authors is public. FedHGN's (arXiv 2408.05160, Table 3) propagates over the whole graph
in one process, without messages; its classifier is FedHGN's own, ``hgnn_relu``. It also links nodes
that have no edge inside their client to the one nearest in features (kNN with k = 2, the node itself
among them), with two defects, which are in ``fedcog_released`` alone.

Here the rows come by the exchange, counted; the classifier is linear (client model ``hgnn``), and
the nearest-neighbour links are an option, in the right numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy import sparse

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
    settings: ClassVar[dict[str, str]] = {"client.model": "hgnn"}

    class Hyper(SampleWeights):
        knn: bool = Field(
            False,
            description="whether nodes without an edge inside their client are linked to the nearest ones "
            "there",
        )

    hyper: Hyper

    def prepare_data(self, federation: Federation, traffic: TrafficMeter) -> Federation:
        """Every client's features are replaced by its rows of ``A A X``."""
        clients = federation.clients
        cross_lists = known_cross_edges(federation, self.name)
        holders = Holders.of(clients, self.name)
        parts = []
        for client, cross in zip(clients, cross_lists, strict=True):
            assert client.edges is not None
            links = nearest_links(client) if self.hyper.knn else np.zeros((2, 0), np.int64)
            parts.append(Decoupled(np.concatenate([client.edges, links], axis=1), cross, len(client.ids)))
        rows = [client.dense() for client in clients]
        for layer in range(LAYERS):
            rows = propagated(parts, holders, rows, traffic, layer)
        new_clients = [replace(client, features=z) for client, z in zip(clients, rows, strict=True)]
        return replace(federation, clients=tuple(new_clients))


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
    scaled_rows = [(part.scale * x).astype(np.float32) for part, x in zip(parts, rows, strict=True)]
    fetched_rows = fetch(holders, [part.foreign for part in parts], scaled_rows, traffic, exchange=layer)
    result = []
    for part, local_rows, foreign_rows in zip(parts, scaled_rows, fetched_rows, strict=True):
        total = part.internal @ local_rows + part.border @ foreign_rows
        result.append((part.scale * total).astype(np.float32))
    return result


def nearest_links(client: Client) -> Indices:
    """Edges ``[2, m]``, both directions, from every node without one to the nearest other node.

    Nearest by Euclidean distance of features (the sources name no measure), of equally near ones the
    first. A client of one node gets none.
    """
    assert client.edges is not None
    lone_nodes = np.setdiff1d(np.arange(len(client.ids)), client.edges[0])
    links = pairs_with_nearest(client.dense(), lone_nodes)
    return np.unique(np.concatenate([links, links[::-1]], axis=1), axis=1)


def pairs_with_nearest(rows: NDArray[np.float32], places: Indices) -> Indices:
    """Each place and that of the row nearest to its own, ``[2, len(places)]``; none for a lone row."""
    if len(rows) < 2:
        return np.zeros((2, 0), np.int64)
    matrix = sparse.csr_array(rows.astype(np.float64))  # words of a text are few of all
    squares = matrix.multiply(matrix).sum(axis=1)
    # Less the row's own square, which is the same for all.
    distances = squares - 2 * (matrix[places] @ matrix.T).toarray()
    distances[np.arange(len(places)), places] = np.inf
    return np.stack([places, distances.argmin(axis=1)])


class FedCogReleased(FedAvg):
    """FedCog as FedHGN's released code has it, with its two defects and without messages.

    Every node of a client is paired with the one nearest to it there, by *positions in the client*, which
    are then taken for numbers in the whole graph (``with_misplaced_links``): few nodes without an edge
    inside their client are linked, and to others than the nearest. The list of edges is never made anew:
    run number r has the links of the r runs before it as well, whose clients are drawn here by dealing all
    nodes anew to clients of the same sizes. Propagation is over the whole graph in one place, so no message
    is counted for it.
    """

    name = "fedcog_released"
    title = "FedCog (released code)"
    reference = FedCog.reference
    families = FedCog.families
    settings = FedCog.settings
    numerics = 2

    class Hyper(SampleWeights):
        runs_before: int = Field(
            10, ge=0, description="runs of the same process that have left their links; up to 19 there"
        )

    hyper: Hyper

    def prepare_data(self, federation: Federation, traffic: TrafficMeter) -> Federation:
        """Every client's features are replaced by its rows of ``A A X``, with the links in ``A``."""
        clients = federation.clients
        holders = Holders.of(clients, self.name)
        edges = whole_graph(clients, known_cross_edges(federation, self.name), holders.ids)
        rows = np.concatenate([client.dense() for client in clients])[
            np.argsort(np.concatenate([client.ids for client in clients]), kind="stable")
        ]
        for run in range(self.hyper.runs_before):
            order = torch.randperm(len(rows), generator=self.task.generator("clients of a run before", run))
            edges = with_misplaced_links(edges, holders.client[order.numpy()], rows)
        edges = with_misplaced_links(edges, holders.client, rows)
        graph = Decoupled(edges, np.zeros((2, 0), np.int64), len(rows))
        for _ in range(LAYERS):
            rows = (graph.scale * (graph.internal @ (graph.scale * rows))).astype(np.float32)
        places = [np.searchsorted(holders.ids, client.ids) for client in clients]
        result = [
            replace(client, features=rows[place]) for client, place in zip(clients, places, strict=True)
        ]
        return replace(federation, clients=tuple(result))


def whole_graph(clients: Sequence[Client], cross_lists: Sequence[Indices], ids: Indices) -> Indices:
    """All edges ``[2, m]``, both directions, as places in ``ids``, which are ascending."""
    parts = []
    for client, cross in zip(clients, cross_lists, strict=True):
        assert client.edges is not None
        parts += [client.ids[client.edges], np.stack([client.ids[cross[0]], cross[1]])]
    return np.unique(np.searchsorted(ids, np.concatenate(parts, axis=1)), axis=1)


def with_misplaced_links(edges: Indices, owner: Indices, rows: NDArray[np.float32]) -> Indices:
    """The edges, and the links that the released loop adds to them, client by client.

    ``owner`` ``[nodes]`` is every node's client. A client's pairs are the position of each of its nodes, in
    ascending order, and that of the node nearest to it there. They are read as numbers of nodes in the
    graph: a node without an edge inside its client is linked by the first pair that has its number in it
    and whose two numbers are both nodes of the client.
    """
    for client in np.unique(owner):
        members = np.flatnonzero(owner == client)
        is_inner = (owner[edges[0]] == client) & (owner[edges[1]] == client)
        lone_nodes = np.setdiff1d(members, edges[0, is_inner])
        pairs = pairs_with_nearest(rows[members], members[members < len(members)])
        pairs = pairs[:, owner[pairs[1]] == client]
        numbers, first_ends = np.unique(pairs.T, return_index=True)  # of pair p the ends 2 p and 2 p + 1
        links = pairs[:, first_ends[np.isin(numbers, lone_nodes)] // 2]
        edges = np.unique(np.concatenate([edges, links, links[::-1]], axis=1), axis=1)
    return edges
