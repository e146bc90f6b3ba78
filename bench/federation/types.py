"""A federation: the clients' data in a fixed order, with a hash of everything that decides numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bench.data import Family, Ragged

SPLITS: Final = ("train", "val", "test")
TRAIN: Final = 0
VALIDATION: Final = 1
TEST: Final = 2
UNUSED: Final = 3  # an item without a role: seen as features only
ROLE_NAMES: Final = (*SPLITS, "unused")


@dataclass(frozen=True, eq=False)
class ClientHyperedges:
    """One client's knowledge of the hyperedges that touch it.

    Attributes:
        ids: global hyperedge ids ``[m]``, ascending.
        members: the client's own nodes in each hyperedge, as positions in the client. If a hyperedge
            names a node several times, so does this list.
        sizes: the number of nodes of each hyperedge over all clients ``[m]``, with repetitions. It is
            public.
    """

    ids: NDArray[np.int64]
    members: Ragged
    sizes: NDArray[np.int64]

    @property
    def border(self) -> NDArray[np.bool_]:
        """Mask of the hyperedges that have members at other clients."""
        return self.sizes > self.members.sizes


def dense_rows(
    features: sparse.csr_matrix | NDArray[Any], positions: NDArray[np.int64] | None = None
) -> NDArray[np.float32]:
    """Rows of a feature matrix, CSR or dense, as a dense float32 array.

    By default all rows ``[n, width]``. This may be ``features`` itself: do not write to it. With
    ``positions`` of any shape, the rows there, ``[*positions.shape, width]``.
    """
    rows = features if positions is None else features[positions.ravel()]
    dense: NDArray[Any] = rows if isinstance(rows, np.ndarray) else rows.toarray()
    dense = dense.astype(np.float32, copy=False)
    return dense if positions is None else dense.reshape(*positions.shape, *dense.shape[1:])


@dataclass(frozen=True, eq=False)
class Client:
    """One client's items (nodes or images).

    Attributes:
        ids: their ids in the prepared data set ``[n]``.
        labels: ``[n]``.
        roles: ``TRAIN``, ``VALIDATION``, ``TEST`` or ``UNUSED``, int8 ``[n]``.
        features: float32 ``[n, width]`` (CSR or dense), or uint8 pixels ``[n, channels, height, width]``.
        edges: positions ``[2, m]``, both directions, sorted; graphs only.
        hyperedges: for hypergraphs, and for graphs with hyperedges.
        cross_edges: the position of an own node and the id of its neighbour at another client, ``[2,
            m]``, sorted; for graphs with hyperedges.
    """

    ids: NDArray[np.int64]
    labels: NDArray[np.int64]
    roles: NDArray[np.int8]
    features: sparse.csr_matrix | NDArray[Any]
    edges: NDArray[np.int64] | None = None
    hyperedges: ClientHyperedges | None = None
    cross_edges: NDArray[np.int64] | None = None

    def count(self, role: int) -> int:
        """Number of items with this role."""
        return int((self.roles == role).sum())

    def dense(self, positions: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
        """The features of all items, or of those at ``positions``, as dense float32; see ``dense_rows``."""
        return dense_rows(self.features, positions)


@dataclass(frozen=True, eq=False)
class Federation:
    """The clients of one run, in a fixed order.

    ``hash`` covers every client's ids, roles, labels, edges or hyperedges, and the features' checksum.
    ``provenance`` says how the partition was made (options, library versions). It is not part of the
    hash.
    """

    dataset: str
    scenario: str
    family: Family
    classes: int
    clients: tuple[Client, ...]
    hash: str
    provenance: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.clients)


def hide_held_out(federation: Federation, roles: Sequence[int] = (VALIDATION, TEST, UNUSED)) -> Federation:
    """The federation with the labels of items in these roles (default: all but training) replaced by -1."""
    clients = tuple(
        replace(client, labels=np.where(np.isin(client.roles, roles), -1, client.labels))
        for client in federation.clients
    )
    return replace(federation, clients=clients)
