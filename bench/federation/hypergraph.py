"""Hypergraph clients: nodes by label-Dirichlet, hyperedges as far as a client knows them (FedHGN)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bench import streams
from bench.data import Family, Graph, Hypergraph, Ragged
from bench.federation.dirichlet import label_dirichlet
from bench.federation.scenario import Assignment, Scenario, Split
from bench.federation.splits import floored_roles
from bench.federation.types import Client, ClientHyperedges

CONCENTRATION = 10000.0
"""FedHGN's: sizes equal within a few percent."""

LEAST = 10
"""A draw that leaves a client with fewer nodes is drawn again."""


class LabelDirichlet(Scenario[Graph | Hypergraph]):
    """Nodes by label-Dirichlet, ids ascending; a split inside every client (facts 1.2, 1.4)."""

    families: ClassVar[tuple[Family, ...]] = ("graph", "hypergraph")

    def __init__(self, concentration: float = CONCENTRATION) -> None:
        self.concentration = concentration

    def draw(self, data: Graph | Hypergraph, clients: int, partition_seed: int, split: Split) -> Assignment:
        """One client holds everything; more share the nodes."""
        stream = streams.generator(partition_seed, "partition", "label-dirichlet")
        least = LEAST if clients > 1 else 1
        ids = label_dirichlet(data.labels, clients, self.concentration, least, stream)
        roles = [
            floored_roles(len(part), split, streams.generator(partition_seed, "split", client))
            for client, part in enumerate(ids)
        ]
        return Assignment(tuple(ids), tuple(roles))


def known_hyperedges(lists: Ragged, nodes: int, ids: NDArray[np.int64]) -> ClientHyperedges:
    """What the client that holds ``ids``, among ``nodes`` in all, knows of the hyperedges that touch it."""
    position = np.full(nodes, -1, np.int64)
    position[ids] = np.arange(len(ids))
    own = position[lists.values]
    hyperedge = np.repeat(np.arange(len(lists)), lists.sizes)[own >= 0]
    own = own[own >= 0]
    order = np.lexsort((own, hyperedge))
    touched, counts = np.unique(hyperedge, return_counts=True)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return ClientHyperedges(touched, Ragged(offsets, own[order]), lists.sizes[touched])


def hypergraph_clients(hypergraph: Hypergraph, assignment: Assignment) -> tuple[Client, ...]:
    """Every client's nodes and the hyperedges that touch them."""
    return tuple(
        Client(
            ids,
            hypergraph.labels[ids],
            roles,
            hypergraph.features[ids],
            hyperedges=known_hyperedges(hypergraph.hyperedges, len(hypergraph.labels), ids),
        )
        for ids, roles in zip(assignment.ids, assignment.roles, strict=True)
    )
