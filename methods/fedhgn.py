"""FedHGN: Federated Hypergraph Learning with Hyperedge Completion (arXiv 2408.05160, 2024).

The client model is linear in propagated features, ``Z Theta1 Theta2`` with ``Z = L L X``, so that
propagation happens once, before training. A *border* hyperedge has members at several clients; the
methods differ in what a client makes of its part of one, and in whether models are averaged.

Paper against released code:

- The code trims a border hyperedge away where one own node is left (``trim2``); the paper's Eq. 5
  keeps it (``trim1``). A node that is left in no hyperedge has a row of zeros.
- The code's completion hands every client the raw features of foreign neighbours, whose degrees it
  truncates (up to 28 % off ``L L X``, on IMDB4k; nothing on 20News), and sends no message:
  ``completion = released``. The default is the paper's protocol, ``complete``.
- The paper weights the average by training nodes, the code does not (``weights = uniform``).
- A hyperedge's true size, ``n(e)`` in Eq. 8, is needed by all: public metadata here.
- The sigma of Eq. 6 is a ReLU on the logits in the code: client model ``hgnn_relu``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import astuple, replace
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field

from bench.data import Family, Ragged
from bench.engine.method import Method
from bench.errors import NotApplicableError
from bench.federation.traffic import TrafficMeter
from bench.federation.types import Client, ClientHyperedges, Federation
from bench.hyper import HyperParameters

from ._completion import LAYERS, Parts, Propagation, completed, completed_as_released, hyperedges
from ._exposure import exposure
from .fedavg import FedAvg, SampleWeights
from .local import Local

Trimming = Literal["trim2", "trim1", "trimG", "drop"]
"""What a client makes of a border hyperedge without completion.

``trim2``: cut to its own nodes, dropped where only one is left (released code).
``trim1``: cut to its own nodes (the paper's words, Eq. 5).
``trimG``: cut to its own nodes, with true sizes and degrees (a block of L).
``drop``: not used.

A node that a hyperedge names more than once counts as often, as in the released code.
"""


class HypergraphLearning(Method, ABC):
    """What the methods of this file have in common: clients train on their rows of Z."""

    reference = "arXiv 2408.05160"
    families: ClassVar[tuple[Family, ...]] = ("hypergraph", "graph")
    settings: ClassVar[dict[str, str]] = {"client.model": "hgnn"}

    def prepare_data(self, federation: Federation, traffic: TrafficMeter) -> Federation:
        """Replace every client's features by its rows of Z."""
        clients = federation.clients
        if any(client.hyperedges is None for client in clients):
            raise NotApplicableError(f"{self.name} needs hyperedges, and {federation.dataset} has none")
        if len(np.unique(np.concatenate([client.ids for client in clients]))) < sum(
            len(client.ids) for client in clients
        ):
            raise NotApplicableError(f"{self.name} needs clients that share no node")
        rows = self.propagated(clients, traffic)
        new_clients = [replace(client, features=z) for client, z in zip(clients, rows, strict=True)]
        return replace(federation, clients=tuple(new_clients))

    @abstractmethod
    def propagated(self, clients: Sequence[Client], traffic: TrafficMeter) -> Parts:
        """Every client's rows of Z."""


class Trimmed(HypergraphLearning):
    """Border hyperedges are trimmed."""

    class Hyper(HyperParameters):
        trimming: Trimming = Field(
            "trim2",
            description="what a client makes of a border hyperedge without completion: cut to its own "
            "nodes and dropped where one is left (trim2), cut (trim1), "
            "cut with true sizes and degrees (trimG), or not used (drop)",
        )

    hyper: Hyper

    def propagated(self, clients: Sequence[Client], traffic: TrafficMeter) -> Parts:
        """``L_i L_i X_i`` with every client's own ``L_i``."""
        parts = []
        for client in clients:
            operator = trimmed(hyperedges(client), len(client.ids), self.hyper.trimming)
            parts.append(operator.propagate(client.dense().astype(np.float64), LAYERS).astype(np.float32))
        return parts


class Completed(HypergraphLearning):
    """Border hyperedges are completed."""

    class Hyper(HyperParameters):
        completion: Literal["exact", "released"] = Field(
            "exact", description="how border hyperedges are completed: as the paper has it, or as released"
        )
        least_upload: int = Field(
            1, ge=1, description="parts of a border hyperedge with fewer different own nodes are not sent"
        )
        audit: bool = Field(
            False,
            description="whether the run also measures what the messages reveal, which takes long on "
            "large data",
        )

    hyper: Hyper

    def propagated(self, clients: Sequence[Client], traffic: TrafficMeter) -> Parts:
        """Every client's rows of ``L L X``, or what the released code computes instead."""
        self._refuse_lost_members(clients)
        if self.hyper.completion == "released":
            if self.hyper.least_upload > 1 or self.hyper.audit:
                raise NotApplicableError(
                    f"{self.name}: the released completion hands over raw features; least_upload and audit "
                    f"are for the exact one"
                )
            return completed_as_released(clients, traffic)
        if self.hyper.audit:
            self.record(exposure=torch.tensor(astuple(exposure(clients, self.hyper.least_upload))))
        return completed(clients, traffic, self.hyper.least_upload)

    def _refuse_lost_members(self, clients: Sequence[Client]) -> None:
        """Refuse hyperedges with nodes that no client holds: sums over them would lack summands."""
        edge_lists = [hyperedges(client) for client in clients]
        ids = np.concatenate([edges.ids for edges in edge_lists])
        counts = np.bincount(ids, weights=np.concatenate([edges.members.sizes for edges in edge_lists]))
        for edges in edge_lists:
            strays = edges.ids[counts[edges.ids] != edges.sizes]
            if strays.size:
                raise NotApplicableError(
                    f"{self.name}: hyperedge {strays[0]} has nodes that no client holds; completion needs all"
                )


class LocalHGNN(Trimmed, Local):
    """Every client on its own nodes and trimmed hyperedges."""

    name = "local_hgnn"
    title = "Local HGNN"


class LocalHGNNCompleted(Completed, Local):
    """Completed hyperedges without averaging: what completion alone gives."""

    name = "local_hgnn_hc"
    title = "Local HGNN with HC"


class FedHGN(Trimmed, FedAvg):
    """Averaged models on trimmed hyperedges."""

    name = "fedhgn"
    title = "FedHGN w/o HC"

    class Hyper(Trimmed.Hyper, SampleWeights):
        """``weights`` of the average: ``samples`` as the paper, ``uniform`` as the code."""

    hyper: Hyper


class FedHGNTrim1(FedHGN):
    """Averaged models on hyperedges trimmed as the paper words it: the fair baseline of completion."""

    name = "fedhgn_trim1"
    title = "FedHGN w/o HC, single nodes kept"

    class Hyper(FedHGN.Hyper):
        trimming: Trimming = "trim1"


class FedHGNCompleted(Completed, FedAvg):
    """Averaged models on completed hyperedges: the paper's method."""

    name = "fedhgn_hc"
    title = "FedHGN with HC"

    class Hyper(Completed.Hyper, SampleWeights):
        """``weights`` of the average: ``samples`` as the paper, ``uniform`` as the code."""

    hyper: Hyper


class GlobalHGNN(Completed, Local):
    """One client that holds all nodes."""

    name = "global_hgnn"
    title = "Global HGNN"

    def setup_server(self) -> None:
        """Refuse a federation of several clients."""
        if self.task.clients > 1:
            raise NotApplicableError(
                f"global_hgnn is one client that holds all nodes, not {self.task.clients}"
            )


def trimmed(edges: ClientHyperedges, nodes: int, trimming: Trimming) -> Propagation:
    """A client's own ``L_i`` for its ``nodes`` nodes.

    Hyperedges of which the same nodes are left become one, as in the library that the code uses,
    except in ``trimG``.
    """
    if trimming == "trimG":
        return Propagation.of(edges.members, nodes, edges.sizes)
    minimum = {"trim2": 2, "trim1": 1, "drop": np.inf}[trimming]
    indices = np.flatnonzero(~edges.border | (edges.members.sizes >= minimum))
    member_sets = dict.fromkeys(tuple(sorted(edges.members[index].tolist())) for index in indices.tolist())
    members = Ragged.of([np.array(nodes_left, np.int64) for nodes_left in member_sets])
    return Propagation.of(members, nodes, members.sizes)
