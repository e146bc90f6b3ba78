"""Hypergraph clients: nodes by label-Dirichlet, hyperedges as far as a client knows them (FedHGN)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bench import streams
from bench.data import Family, Graph, Hypergraph, Ragged
from bench.errors import RequestError
from bench.federation.dirichlet import label_dirichlet
from bench.federation.scenario import Assignment, Scenario, Split, positive_number
from bench.federation.splits import floored_roles
from bench.federation.types import TRAIN, Client, ClientHyperedges

CONCENTRATION = 10000.0
"""The value of FedHGN, which makes sizes equal within a few percent."""

LEAST = 10
"""A draw is repeated if it leaves a client with fewer nodes."""


def check_clients(data: Graph | Hypergraph, assignment: Assignment) -> None:
    """Refuse clients that the study's methods cannot serve.

    Raises:
        RequestError: no hyperedge touches a client, or no client has a node of some class to train on.
    """
    clients = len(assignment.ids)
    if data.hyperedges is not None:
        is_member = np.zeros(len(data.labels), bool)
        is_member[data.hyperedges.values] = True
        for client, ids in enumerate(assignment.ids):
            if not is_member[ids].any():
                raise RequestError(
                    f"client {client} of {clients} is isolated: none of its {len(ids)} nodes lies in a "
                    f"hyperedge; ask for fewer clients or another protocol.partition_seed"
                )
    training = [ids[roles == TRAIN] for ids, roles in zip(assignment.ids, assignment.roles, strict=True)]
    counts = np.bincount(data.labels[np.concatenate(training)], minlength=data.classes)
    if not counts.all():
        raise RequestError(
            f"class {counts.argmin()} of {data.classes} has no training node at any of {clients} clients, so "
            f"that none can learn it; ask for a larger training share or another protocol.partition_seed"
        )


class LabelDirichlet(Scenario[Graph | Hypergraph]):
    """Nodes by label-Dirichlet, ids ascending; a split inside every client (facts 1.2, 1.4)."""

    name = "label-dirichlet"
    parameters: ClassVar[tuple[str, ...]] = ("", "0.1")
    families: ClassVar[tuple[Family, ...]] = ("graph", "hypergraph")

    def __init__(self, concentration: float = CONCENTRATION) -> None:
        self.concentration = concentration

    @classmethod
    def parse(cls, parameter: str) -> Self:
        """The concentration; that of the paper behind the bare name."""
        return cls(positive_number(parameter)) if parameter else cls()

    def draw(self, data: Graph | Hypergraph, clients: int, partition_seed: int, split: Split) -> Assignment:
        """One client holds everything; more share the nodes."""
        stream = streams.generator(partition_seed, "partition", "label-dirichlet")
        least = LEAST if clients > 1 else 1
        shares = label_dirichlet(data.labels, clients, self.concentration, least, stream)
        ids = [np.sort(share) for share in shares]
        roles = [
            floored_roles(len(part), split, streams.generator(partition_seed, "split", client))
            for client, part in enumerate(ids)
        ]
        return Assignment(tuple(ids), tuple(roles))

    def check(self, data: Graph | Hypergraph, assignment: Assignment) -> None:
        """See ``check_clients``."""
        check_clients(data, assignment)


def known_hyperedges(lists: Ragged, nodes: int, ids: NDArray[np.int64]) -> ClientHyperedges:
    """What the client that holds ``ids`` knows of the hyperedges that touch it. There are
    ``nodes`` in all.
    """
    position = np.full(nodes, -1, np.int64)
    position[ids] = np.arange(len(ids))
    members = position[lists.values]
    hyperedge = np.repeat(np.arange(len(lists)), lists.sizes)[members >= 0]
    members = members[members >= 0]
    order = np.lexsort((members, hyperedge))
    numbers, counts = np.unique(hyperedge, return_counts=True)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return ClientHyperedges(numbers, Ragged(offsets, members[order]), lists.sizes[numbers])


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
