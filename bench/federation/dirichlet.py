"""Clients by label-Dirichlet with a cap, as FedHGN and FedAGHN (from FedGCN and PFLlib) draw them."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bench import streams
from bench.data import Family, Graph, Hypergraph
from bench.errors import RequestError
from bench.federation.scenario import Assignment, Scenario, Split, positive_number
from bench.federation.splits import floored_roles
from bench.federation.types import TRAIN
from bench.streams import Stream

ATTEMPTS = 1000

CONCENTRATION = 10000.0
"""The value of FedHGN, which makes sizes equal within a few percent."""

LEAST = 10
"""A draw of nodes is repeated if it leaves a client with fewer."""


def _draw(
    labels: NDArray[np.int64], clients: int, concentration: float, stream: Stream
) -> list[NDArray[np.int64]]:
    """One draw, class by class. See ``label_dirichlet``."""
    pieces: list[list[NDArray[np.int64]]] = [[] for _ in range(clients)]
    counts = np.zeros(clients, np.int64)
    for label in np.unique(labels):
        items = stream.permutation(np.flatnonzero(labels == label))
        weights = stream.dirichlet(np.full(clients, concentration))
        open_ = counts < len(labels) / clients
        weights = np.where(open_, weights, 0.0)
        if weights.sum() == 0.0:  # every open client's weight was rounded to zero
            weights = open_.astype(float)
        cuts = (np.cumsum(weights / weights.sum()) * len(items)).astype(np.int64)[:-1]
        for client, piece in enumerate(np.split(items, cuts)):
            pieces[client].append(piece)
            counts[client] += len(piece)
    return [np.concatenate(parts) for parts in pieces]


def label_dirichlet(
    labels: NDArray[np.int64], clients: int, concentration: float, least: int, stream: Stream
) -> list[NDArray[np.int64]]:
    """Item ids of every client, in the order of the deal (hypergraph facts 1.2, image facts 1.5).

    For each class: shuffle its items, draw ``p ~ Dirichlet(concentration, ...)`` over the clients,
    set ``p`` to 0 for clients that hold ``items / clients`` or more already, renormalise, and cut
    the list at ``floor(cumsum(p) * size)``. All is drawn again until every client has ``least`` items.

    Raises:
        RequestError: no draw was accepted.
    """
    for _ in range(ATTEMPTS):
        parts = _draw(labels, clients, concentration, stream)
        if min(len(part) for part in parts) >= least:
            return parts
    raise RequestError(
        f"no draw in {ATTEMPTS} gave each of {clients} clients {least} items at concentration "
        f"{concentration:g}; ask for fewer clients or a larger concentration"
    )


class LabelDirichlet(Scenario[Graph | Hypergraph]):
    """Nodes are dealt by label-Dirichlet, ids ascending. Every client is split by itself (facts 1.2, 1.4)."""

    name = "label-dirichlet"
    parameters: ClassVar[tuple[str, ...]] = ("", "0.1")
    families: ClassVar[tuple[Family, ...]] = ("graph", "hypergraph")

    def __init__(self, concentration: float = CONCENTRATION) -> None:
        self.concentration = concentration

    @classmethod
    def parse(cls, parameter: str) -> Self:
        """Read the concentration. A name without a parameter has the paper's concentration."""
        return cls(positive_number(parameter)) if parameter else cls()

    def draw(self, data: Graph | Hypergraph, clients: int, partition_seed: int, split: Split) -> Assignment:
        """Share the nodes out to the clients; a single client holds all nodes."""
        stream = streams.generator(partition_seed, "partition", self.name)
        least = LEAST if clients > 1 else 1
        ids = [
            np.sort(part) for part in label_dirichlet(data.labels, clients, self.concentration, least, stream)
        ]
        roles = [
            floored_roles(len(part), split, streams.generator(partition_seed, "split", client))
            for client, part in enumerate(ids)
        ]
        return Assignment(tuple(ids), tuple(roles))

    def check(self, data: Graph | Hypergraph, assignment: Assignment) -> None:
        """Refuse clients that the study's methods cannot serve.

        Raises:
            RequestError: no hyperedge touches a client, or no client has a node of some class to train on.
        """
        clients = len(assignment.ids)
        if data.hyperedges is not None:
            for client, ids in enumerate(assignment.ids):
                if not np.isin(ids, data.hyperedges.values).any():
                    raise RequestError(
                        f"client {client} of {clients} is isolated: none of its {len(ids)} nodes lies in a "
                        f"hyperedge; ask for fewer clients or another protocol.partition_seed"
                    )
        ids, roles = np.concatenate(assignment.ids), np.concatenate(assignment.roles)
        counts = np.bincount(data.labels[ids[roles == TRAIN]], minlength=data.classes)
        if not counts.all():
            raise RequestError(
                f"class {counts.argmin()} of {data.classes} has no training node at any of {clients} "
                f"clients, so that none can learn it; ask for a larger training share or another "
                f"protocol.partition_seed"
            )
