"""FedGCN as FedHGN's Table 3 has it: FedAvg on subgraphs that know 0 or 2 hops (arXiv 2408.05160).

FedGCN is by Yao et al. (NeurIPS 2023). In the paper no client sees another's features: before
training it sends, for every node v, the sum over its own neighbours of v of normalised features,
homomorphically encrypted; the server adds the sums of all clients and returns the aggregate for the
client's nodes (1 hop) and for their neighbours (2 hops). The released code of that paper, and that
of FedHGN, hands over raw features and edges instead, in one process, without a message. That is what
is done here, with the messages counted. Optimiser and rounds are the study's (Adam), not FedGCN's
(SGD at 0.5), so that numbers cannot be set beside those of the FedGCN paper.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from bench.engine.method import Method
from bench.federation.foreign import Holders, Indices, extended, fetch, known_cross_edges
from bench.federation.traffic import TrafficMeter
from bench.federation.types import Client, Federation

from .fedavg import FedAvg, SampleWeights


class FedGCN0Hop(FedAvg):
    """Averaged two-layer GCNs on induced subgraphs: FedAvg with another client model.

    Released: plain mean of the models (``weights = uniform``), hidden width 16.
    """

    name = "fedgcn_0hop"
    title = "FedGCN (0-hop)"
    reference = "Yao et al., NeurIPS 2023"
    families = ("graph",)
    client: ClassVar[dict[str, str]] = {"model": "gcn2"}

    Hyper = SampleWeights
    hyper: SampleWeights


class FedGCN2Hop(FedGCN0Hop):
    """The same on graphs extended by the raw features of true neighbours within two hops.

    As released by FedHGN. The first hop from a client's nodes takes all edges and finds its border
    neighbours; the second takes edges inside one client only, and so finds those that the border
    neighbours have at their own client. The extended graph has every edge among these nodes that
    touches an own node or a border neighbour, edges between two other clients included. Degrees are
    those of the extended graph: true for own nodes, cut short for border neighbours that have
    neighbours at third clients, and for nodes of the second hop.

    Counted for every client: ids and rows of its foreign nodes, and as two ids each the edges among
    foreign nodes, which it cannot know by itself. What several clients get goes down to each of them,
    and up from a holder once.
    """

    name = "fedgcn_2hop"
    title = "FedGCN (2-hop)"
    onboard = Method.onboard  # the clients that newcomers have neighbours at are not among them

    def prepare_data(self, federation: Federation, traffic: TrafficMeter) -> Federation:
        """Every client's extended graph."""
        clients = federation.clients
        crossing = known_cross_edges(federation, self.name)
        holders = Holders.of(clients, self.name)
        inside, across = edges_by_id(clients, crossing)
        rows = [client.features for client in clients]
        foreign, linked = [], []
        for _, neighbours in crossing:
            border = np.unique(neighbours)
            second = inside[:, np.isin(inside[0], border)]
            foreign.append(np.union1d(border, second[1]))
            beyond = across[:, np.isin(across[0], border) & np.isin(across[1], foreign[-1])]
            arcs = np.sort(np.concatenate([second, beyond], axis=1), axis=0)
            linked.append(np.unique(arcs, axis=1))  # once for both directions
        if any(map(len, foreign)):
            traffic.upload(*np.unique(np.concatenate(linked, axis=1), axis=1), exchange=0)
        fetched = fetch(holders, foreign, rows, traffic, exchange=0)
        result = []
        for client, (own, neighbours), ids, edges, features in zip(
            clients, crossing, foreign, linked, fetched, strict=True
        ):
            if len(ids):
                traffic.download(*edges, exchange=0)
            own_to_border = np.stack([own, np.searchsorted(ids, neighbours)])
            links = np.concatenate([own_to_border, np.searchsorted(ids, edges)], axis=1)
            links[1] += len(client.ids)
            links[0, len(own) :] += len(client.ids)
            result.append(extended(client, ids, features, links))
        return replace(federation, clients=tuple(result))


def edges_by_id(clients: tuple[Client, ...], crossing: list[Indices]) -> tuple[Indices, Indices]:
    """All edges inside a client and all edges between clients, ``[2, m]`` node ids, both directions."""
    inside, across = [], []
    for client, (own, neighbours) in zip(clients, crossing, strict=True):
        assert client.edges is not None
        inside.append(client.ids[client.edges])
        across.append(np.stack([client.ids[own], neighbours]))
    return np.concatenate(inside, axis=1), np.concatenate(across, axis=1)
