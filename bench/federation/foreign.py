"""Nodes of other clients: where they are held, how their rows are sent, and graphs extended by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bench.errors import NotApplicableError
from bench.federation.traffic import TrafficMeter
from bench.federation.types import UNUSED, Client, Federation, dense_rows

Indices: TypeAlias = NDArray[np.int64]
Features: TypeAlias = sparse.csr_matrix | NDArray[Any]


def known_cross_edges(federation: Federation, method: str) -> list[Indices]:
    """Every client's ``cross_edges``. ``method`` is named in the error.

    Raises:
        NotApplicableError: a client does not know its neighbours at other clients.
    """
    edges = [client.cross_edges for client in federation.clients if client.cross_edges is not None]
    if len(edges) < len(federation):
        raise NotApplicableError(
            f"{method} needs clients that know their neighbours at other clients: a data set with "
            f"hyperedges such as cora-whole, not {federation.dataset}"
        )
    return edges


@dataclass(frozen=True, eq=False)
class Holders:
    """The holder of every node: all ``ids``, ascending, each with its ``client`` and ``position`` there."""

    ids: Indices
    client: Indices
    position: Indices

    @classmethod
    def of(cls, clients: Sequence[Client], method: str) -> Holders:
        """The holders of all nodes. ``method`` is named in the error.

        Raises:
            NotApplicableError: two clients have the same node.
        """
        sizes = [len(client.ids) for client in clients]
        ids = np.concatenate([client.ids for client in clients])
        number = np.repeat(np.arange(len(clients)), sizes)
        position = np.concatenate([np.arange(size) for size in sizes])
        order = np.argsort(ids, kind="stable")
        ids = ids[order]
        repeats = ids[1:][ids[1:] == ids[:-1]]
        if repeats.size:
            raise NotApplicableError(
                f"{method} needs clients that share no node, but {len(np.unique(repeats))} nodes are at "
                f"several clients (node {repeats[0]}, for one): choose a scenario without overlap"
            )
        return cls(ids, number[order], position[order])

    def find(self, ids: Indices) -> tuple[Indices, Indices]:
        """The client and the position of every one of ``ids``, as two arrays of their shape.

        Raises:
            NotApplicableError: no client holds such a node.
        """
        place = np.searchsorted(self.ids, ids).clip(max=len(self.ids) - 1)
        missing_ids = ids[self.ids[place] != ids]
        if missing_ids.size:
            raise NotApplicableError(f"node {missing_ids[0]} is a neighbour, but no client holds it")
        return self.client[place], self.position[place]


def fetch(
    holders: Holders,
    id_lists: Sequence[Indices],
    rows: Sequence[Features],
    traffic: TrafficMeter,
    exchange: int,
) -> Iterator[NDArray[np.float32]]:
    """Yield for every client the rows ``[ids, width]`` that other clients hold, sent through the server.

    ``id_lists`` has the ids that each client wants, ``rows`` each client's features, one row per node. A
    holder sends ids (int64) and dense rows (float32) once, however many clients want them. The server sends
    them to each client that wants them. The rows are made client by client, because all rows together can be
    larger than the features.

    Raises:
        NotApplicableError: no client holds a wanted node.
    """

    def held(ids: Indices) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.float32]]]:
        """Yield for every holder a mask of the nodes that it has, and their rows."""
        client, position = holders.find(ids)
        for holder in np.unique(client):
            mask = client == holder
            yield mask, dense_rows(rows[holder], position[mask])

    distinct_ids = np.unique(np.concatenate(id_lists))
    for mask, part in held(distinct_ids):
        traffic.upload(distinct_ids[mask], part, exchange=exchange)
    for ids in id_lists:
        result = np.empty((len(ids), rows[0].shape[1]), np.float32)
        for mask, part in held(ids):
            result[mask] = part
        if len(ids):
            traffic.download(ids, result, exchange=exchange)
        yield result


def extended(client: Client, ids: Indices, features: NDArray[np.float32], links: Indices) -> Client:
    """The client's graph with further nodes behind its own: other clients', or made-up ones.

    The further nodes have the given ``ids`` and ``features``, label -1 and no role. ``links`` ``[2, m]`` are
    the further edges as positions in the extended graph, in one direction or both.
    """
    if len(ids) == 0:
        return client
    assert client.edges is not None
    rows = client.features
    return replace(
        client,
        ids=np.concatenate([client.ids, ids]),
        labels=np.concatenate([client.labels, np.full(len(ids), -1, np.int64)]),
        roles=np.concatenate([client.roles, np.full(len(ids), UNUSED, client.roles.dtype)]),
        features=(
            np.concatenate([rows, features])
            if isinstance(rows, np.ndarray)
            else sparse.vstack([rows, sparse.csr_matrix(features)], format="csr")
        ),
        edges=np.unique(np.concatenate([client.edges, links, links[::-1]], axis=1), axis=1),
    )
