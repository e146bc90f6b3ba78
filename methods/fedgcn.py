"""FedGCN as FedHGN's Table 3 has it: FedAvg on subgraphs that know 0 or 2 hops (arXiv 2408.05160).

FedGCN is by Yao et al. (NeurIPS 2023). In the paper no client sees another's features: before
training it sends, for every node v, the sum over its own neighbours of v of normalised features,
homomorphically encrypted; the server adds the sums of all clients and returns the aggregate for the
client's nodes (1 hop) and for their neighbours (2 hops). The released code of that paper, and that
of FedHGN, hands over raw features and edges instead, in one process, without a message. That is what
is done here, with the messages counted. Optimiser and rounds are the study's: Adam, not SGD at 0.5.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

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
    settings: ClassVar[dict[str, str]] = {"client.model": "gcn2"}
    onboard = FedAvg.onboard

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

    def prepare_data(self, federation: Federation, traffic: TrafficMeter) -> Federation:
        """Every client's extended graph."""
        clients = federation.clients
        cross_lists = known_cross_edges(federation, self.name)
        holders = Holders.of(clients, self.name)
        inner_edges, cut_edges = edges_by_id(clients, cross_lists)
        rows = [client.features for client in clients]
        id_lists, arc_lists = [], []
        for _, neighbours in cross_lists:
            border = np.unique(neighbours)
            inner_arcs = inner_edges[:, np.isin(inner_edges[0], border)]
            id_lists.append(np.union1d(border, inner_arcs[1]))
            outer_arcs = cut_edges[:, np.isin(cut_edges[0], border) & np.isin(cut_edges[1], id_lists[-1])]
            arcs = np.sort(np.concatenate([inner_arcs, outer_arcs], axis=1), axis=0)
            arc_lists.append(np.unique(arcs, axis=1))  # once for both directions
        if any(map(len, id_lists)):
            traffic.upload(*np.unique(np.concatenate(arc_lists, axis=1), axis=1), exchange=0)
        feature_lists = fetch(holders, id_lists, rows, traffic, exchange=0)
        result = []
        for client, (positions, neighbours), ids, edges, features in zip(
            clients, cross_lists, id_lists, arc_lists, feature_lists, strict=True
        ):
            if len(ids):
                traffic.download(*edges, exchange=0)
            own_to_border = np.stack([positions, np.searchsorted(ids, neighbours)])
            links = np.concatenate([own_to_border, np.searchsorted(ids, edges)], axis=1)
            links[1] += len(client.ids)
            links[0, len(positions) :] += len(client.ids)
            result.append(extended(client, ids, features, links))
        return replace(federation, clients=tuple(result))


def edges_by_id(clients: tuple[Client, ...], cross_lists: list[Indices]) -> tuple[Indices, Indices]:
    """All edges inside a client and all edges between clients, ``[2, m]`` node ids, both directions."""
    inner_edges, cut_edges = [], []
    for client, (positions, neighbours) in zip(clients, cross_lists, strict=True):
        assert client.edges is not None
        inner_edges.append(client.ids[client.edges])
        cut_edges.append(np.stack([client.ids[positions], neighbours]))
    return np.concatenate(inner_edges, axis=1), np.concatenate(cut_edges, axis=1)
