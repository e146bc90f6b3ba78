"""FedHGN: Federated Hypergraph Learning with Hyperedge Completion (arXiv 2408.05160, 2024).

The client model is linear in propagated features, ``Z Theta1 Theta2`` with ``Z = L L X``, so that
propagation happens once, before training. A *border* hyperedge has members at several clients; the
methods differ in what a client makes of its part of one, and in whether models are averaged.

Paper against released code:

- The code trims a border hyperedge away where one own node is left; the paper's Eq. 5 keeps it.
- The code's completion hands every client the raw features of foreign neighbours, whose degrees it
  truncates (8 to 28 % off ``L L X``), and sends no message. ``complete`` is the paper's protocol.
- The paper weights the average by training nodes, the code does not (``weights = uniform``).
- A hyperedge's true size, ``n(e)`` in Eq. 8, is needed by all: public metadata here.
- The sigma of Eq. 6 is a ReLU on the logits in the code: client model ``hgnn_relu``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np

from bench.data import Family, Ragged
from bench.engine.method import Method
from bench.engine.task import Wire
from bench.errors import NotApplicableError
from bench.federation.types import Client, ClientHyperedges, Federation
from bench.nn.hypergraph import Propagation, Rows, dense_rows, propagate

from .fedavg import FedAvg
from .local import Local

LAYERS = 2
"""N of the paper: how often features are propagated."""

Border = Literal["trim2", "trim1", "completed"]
"""What becomes of a border hyperedge at a client.

``trim2``: cut to the client's own nodes, dropped where only one is left (released code).
``trim1``: cut to the client's own nodes (the paper's words, Eq. 5).
``completed``: kept whole by hyperedge completion (``complete``).
"""


class HypergraphLearning(Method):
    """What the methods of this file have in common: clients train on propagated features."""

    reference = "arXiv 2408.05160"
    families: ClassVar[tuple[Family, ...]] = ("hypergraph",)
    border: ClassVar[Border]

    def inputs(self, federation: Federation, wire: Wire) -> Federation:
        """Every client's features are replaced by its rows of Z."""
        if self.border == "completed":
            rows = completed(federation.clients, wire)
        else:
            least = 2 if self.border == "trim2" else 1
            rows = [
                propagate(trimmed(hyperedges(client), least), dense_rows(client.features), LAYERS)
                for client in federation.clients
            ]
        clients = [
            replace(client, features=z.astype(np.float32))
            for client, z in zip(federation.clients, rows, strict=True)
        ]
        return replace(federation, clients=tuple(clients))


class LocalHGNN(HypergraphLearning, Local):
    """Every client on its own nodes and hyperedges, trimmed as in the released code."""

    name = "local_hgnn"
    title = "Local HGNN"
    border: ClassVar[Border] = "trim2"


class LocalHGNNCompleted(LocalHGNN):
    """Completed hyperedges without averaging: what completion alone gives."""

    name = "local_hgnn_hc"
    title = "Local HGNN with HC"
    border: ClassVar[Border] = "completed"


class FedHGN(HypergraphLearning, FedAvg):
    """Averaged models on hyperedges trimmed as in the released code."""

    name = "fedhgn"
    title = "FedHGN w/o HC"
    border: ClassVar[Border] = "trim2"

    class Hyper(FedAvg.Hyper):
        """``weights`` of the average: ``samples`` as the paper, ``uniform`` as the code."""

        weights: Literal["uniform", "samples"] = "samples"


class FedHGNTrim1(FedHGN):
    """Averaged models on hyperedges trimmed as the paper words it: single nodes stay."""

    name = "fedhgn_trim1"
    title = "FedHGN w/o HC, single nodes kept"
    border: ClassVar[Border] = "trim1"


class FedHGNCompleted(FedHGN):
    """Averaged models on completed hyperedges: the paper's method."""

    name = "fedhgn_hc"
    title = "FedHGN with HC"
    border: ClassVar[Border] = "completed"


class GlobalHGNN(LocalHGNN):
    """One client that holds all nodes."""

    name = "global_hgnn"
    title = "Global HGNN"
    border: ClassVar[Border] = "completed"

    def start(self) -> None:
        """Refuse a federation of several clients."""
        if self.task.clients > 1:
            raise NotApplicableError(
                f"global_hgnn is one client that holds all nodes, not {self.task.clients}"
            )


def hyperedges(client: Client) -> ClientHyperedges:
    """The hyperedges of a hypergraph's client."""
    assert client.hyperedges is not None
    return client.hyperedges


def trimmed(known: ClientHyperedges, least: int) -> Ragged:
    """The client's own members of every hyperedge; border ones with fewer than ``least`` are dropped.

    Hyperedges of which the same nodes are left become one, as in the library that the code uses.
    """
    kept = np.flatnonzero(~known.border | (known.members.sizes >= least))
    distinct = dict.fromkeys(tuple(sorted(known.members[index].tolist())) for index in kept.tolist())
    return Ragged.of([np.array(nodes, np.int64) for nodes in distinct])


def completed(clients: Sequence[Client], wire: Wire) -> list[Rows]:
    """Every client's rows of ``L^N X`` of the whole hypergraph, by ``LAYERS`` exchanges."""
    rows = [dense_rows(client.features) for client in clients]
    known = [hyperedges(client) for client in clients]
    # True degrees: a client knows every hyperedge that touches one of its nodes.
    operators = [Propagation.of(own.members, len(x), own.sizes) for own, x in zip(known, rows, strict=True)]
    for _ in range(LAYERS):
        rows = complete(known, operators, rows, wire)
    return rows


def complete(
    known: Sequence[ClientHyperedges], operators: Sequence[Propagation], features: Sequence[Rows], wire: Wire
) -> list[Rows]:
    """One layer of propagation with hyperedge completion: every client's rows of ``L x``.

    1. Client k sends ``u_k(e) = sum of d(v)^-1/2 x_v over its own v in e`` for its border hyperedges.
    2. The server returns ``delta(e) = sum of u_k(e) over k`` to every client that touches e.
    3. ``x_v' = d(v)^-1/2 sum of s(e)^-1 delta(e) over e that contain v``; the client itself knows the
       sum over a hyperedge of its own.

    This needs true degrees d and sizes s in ``operators``. Messages are int64 ids and float32 sums.
    """
    border = [own.border for own in known]
    ids = [own.ids[shared] for own, shared in zip(known, border, strict=True)]
    sums = [operator.gather(x) for operator, x in zip(operators, features, strict=True)]

    asked = np.unique(np.concatenate(ids))
    delta = np.zeros((len(asked), features[0].shape[1]))
    for mine, shared, u in zip(ids, border, sums, strict=True):
        message = u[shared].astype(np.float32)
        wire.upload(mine, message)
        delta[np.searchsorted(asked, mine)] += message

    for mine, shared, u in zip(ids, border, sums, strict=True):
        answer = delta[np.searchsorted(asked, mine)].astype(np.float32)
        wire.download(mine, answer)
        u[shared] = answer
    return [operator.spread(u) for operator, u in zip(operators, sums, strict=True)]
