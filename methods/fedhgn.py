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
from numpy.typing import NDArray
from pydantic import Field
from scipy import sparse
from torch import Tensor

from bench.data import Family, Ragged
from bench.engine.method import Method
from bench.engine.task import Wire
from bench.errors import NotApplicableError
from bench.federation.exposure import exposure
from bench.federation.types import Client, ClientHyperedges, Federation
from bench.hyper import HyperParameters

from ._hypergraph import Propagation, degrees
from .fedavg import FedAvg, SampleWeights
from .local import Local

LAYERS = 2
"""N of the paper: how often features are propagated."""

Parts = list[NDArray[np.float32]]
"""Rows of features, one array a client."""

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
    client: ClassVar[dict[str, str]] = {"model": "hgnn"}
    welcome = Method.welcome  # the paper has no newcomers, and Z would change with them

    def inputs(self, federation: Federation, wire: Wire) -> Federation:
        """Every client's features are replaced by its rows of Z."""
        clients = federation.clients
        if any(client.hyperedges is None for client in clients):
            raise NotApplicableError(f"{self.name} needs hyperedges, and {federation.dataset} has none")
        if len(np.unique(np.concatenate([client.ids for client in clients]))) < sum(
            len(client.ids) for client in clients
        ):
            raise NotApplicableError(f"{self.name} needs clients that share no node")
        rows = self.propagated(clients, wire)
        replaced = [replace(client, features=z) for client, z in zip(clients, rows, strict=True)]
        return replace(federation, clients=tuple(replaced))

    @abstractmethod
    def propagated(self, clients: Sequence[Client], wire: Wire) -> Parts:
        """Every client's rows of Z."""


class Trimmed(HypergraphLearning):
    """Border hyperedges are trimmed."""

    class Hyper(HyperParameters):
        """``trimming`` as released by default: see ``Trimming``."""

        trimming: Trimming = "trim2"

    hyper: Hyper

    def propagated(self, clients: Sequence[Client], wire: Wire) -> Parts:
        """``L_i L_i X_i`` with every client's own ``L_i``."""
        parts = []
        for client in clients:
            operator = trimmed(hyperedges(client), len(client.ids), self.hyper.trimming)
            parts.append(operator.propagate(client.dense().astype(np.float64), LAYERS).astype(np.float32))
        return parts


class Completed(HypergraphLearning):
    """Border hyperedges are completed."""

    class Hyper(HyperParameters):
        """``completion`` as the paper has it or as released.

        Parts of a border hyperedge with fewer than ``least_upload`` different own nodes are not sent.
        With ``audit`` the run also measures what the messages reveal, which takes long on large data.
        """

        completion: Literal["exact", "released"] = "exact"
        least_upload: int = Field(1, ge=1)
        audit: bool = False

    hyper: Hyper
    exposure: Tensor | None = None

    def propagated(self, clients: Sequence[Client], wire: Wire) -> Parts:
        """Every client's rows of ``L L X``, or what the released code takes for them."""
        self._refuse_lost_members(clients)
        if self.hyper.completion == "released":
            if self.hyper.least_upload > 1 or self.hyper.audit:
                raise NotApplicableError(
                    f"{self.name}: the released completion hands over raw features; least_upload and audit "
                    f"are for the exact one"
                )
            return completed_as_released(clients, wire)
        if self.hyper.audit:
            self.exposure = torch.tensor(astuple(exposure(clients, self.hyper.least_upload)))
        return completed(clients, wire, self.hyper.least_upload)

    def _refuse_lost_members(self, clients: Sequence[Client]) -> None:
        """Sums over a hyperedge lack the summands of nodes that no client holds."""
        known = [hyperedges(client) for client in clients]
        ids = np.concatenate([own.ids for own in known])
        held = np.bincount(ids, weights=np.concatenate([own.members.sizes for own in known]))
        for own in known:
            lost = own.ids[held[own.ids] != own.sizes]
            if lost.size:
                raise NotApplicableError(
                    f"{self.name}: hyperedge {lost[0]} has nodes that no client holds; completion needs all"
                )

    def artefacts(self) -> dict[str, Tensor]:
        """``exposure``: the numbers of ``bench.federation.exposure.Exposure``, in its order."""
        return {} if self.exposure is None else {"exposure": self.exposure}


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
        """As FedHGN's, with the paper's trimming."""

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

    def start(self) -> None:
        """Refuse a federation of several clients."""
        if self.task.clients > 1:
            raise NotApplicableError(
                f"global_hgnn is one client that holds all nodes, not {self.task.clients}"
            )


def hyperedges(client: Client) -> ClientHyperedges:
    """The hyperedges of a client that knows some."""
    assert client.hyperedges is not None
    return client.hyperedges


def trimmed(known: ClientHyperedges, nodes: int, how: Trimming) -> Propagation:
    """A client's own ``L_i`` for its ``nodes`` nodes.

    Hyperedges of which the same nodes are left become one, as in the library that the code uses,
    except in ``trimG``.
    """
    if how == "trimG":
        return Propagation.of(known.members, nodes, known.sizes)
    least = {"trim2": 2, "trim1": 1, "drop": np.inf}[how]
    kept = np.flatnonzero(~known.border | (known.members.sizes >= least))
    distinct = dict.fromkeys(tuple(sorted(known.members[index].tolist())) for index in kept.tolist())
    members = Ragged.of([np.array(left, np.int64) for left in distinct])
    return Propagation.of(members, nodes, members.sizes)


def completed(clients: Sequence[Client], wire: Wire, least_upload: int = 1) -> Parts:
    """Every client's rows of ``L^N X`` of the whole hypergraph, by ``LAYERS`` exchanges."""
    known = [hyperedges(client) for client in clients]
    rows = [client.dense() for client in clients]
    # True degrees: a client knows every hyperedge that touches one of its nodes.
    operators = [Propagation.of(own.members, len(x), own.sizes) for own, x in zip(known, rows, strict=True)]
    for layer in range(LAYERS):
        rows = complete(known, operators, rows, wire, layer, least_upload)
    return rows


def complete(
    known: Sequence[ClientHyperedges],
    operators: Sequence[Propagation],
    rows: Parts,
    wire: Wire,
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
        wire.upload(own.ids[mine], message, exchange=layer)
        delta[np.searchsorted(asked, own.ids[mine])] += message

    result = []
    for own, mine, operator, x in zip(known, sent, operators, rows, strict=True):
        # Sums are made again rather than kept: all clients' at once are larger than the features.
        sums = operator.gather(x.astype(np.float64))
        returned = np.isin(own.ids, asked)
        answer = delta[np.searchsorted(asked, own.ids[returned])].astype(np.float32)
        wire.download(own.ids[returned], answer, exchange=layer)
        sums[mine] = 0
        sums[returned] += answer
        result.append(operator.spread(sums).astype(np.float32))
    return result


def completed_as_released(clients: Sequence[Client], wire: Wire) -> Parts:
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
            wire.download(here[foreign], rows[foreign].astype(np.float32), exchange=layer)
            rows = operator.spread(operator.gather(rows))
        own = np.empty((len(client.ids), rows.shape[1]), np.float32)
        own[:] = rows[np.searchsorted(here, client.ids)]
        result.append(own)
    wanted = np.unique(np.concatenate(needed))
    for client in clients:
        asked = client.ids[np.isin(client.ids, wanted)]
        for layer in range(LAYERS):
            wire.upload(asked, (exact if layer else raw)[asked], exchange=layer)
    return result
