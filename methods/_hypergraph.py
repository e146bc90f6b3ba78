"""Propagation over hyperedges: ``L = D^-1/2 H S^-1 H^T D^-1/2`` (Feng et al., HGNN, AAAI 2019).

``H`` ``[nodes, hyperedges]`` is the incidence matrix: how often a hyperedge names a node, 0 or 1
unless hyperedges are multisets. ``D`` are the nodes' degrees (row sums of ``H``), ``S`` the
hyperedges' sizes (column sums, of all its rows); all hyperedges weigh 1. A node of degree 0 has a
zero row: it keeps nothing, not even its own features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bench.data import Ragged
from bench.federation.types import Client, ClientHyperedges

LAYERS = 2
"""N of the paper: how often features are propagated."""

Parts = list[NDArray[np.float32]]
"""Rows of features, one array a client."""

Rows = NDArray[np.float64]
"""One row of features a node, or one sum of features a hyperedge."""


@dataclass(frozen=True, eq=False)
class Propagation:
    """The two halves of ``L``: from nodes to hyperedges and back.

    ``incidence`` ``[nodes, hyperedges]``; ``degrees`` ``[nodes]`` and ``sizes`` ``[hyperedges]``
    are given apart, since a client that sees part of a hyperedge may know its true size.
    """

    incidence: sparse.csr_matrix
    degrees: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, members: Ragged, nodes: int, sizes: NDArray[np.int64]) -> Propagation:
        """Hyperedges by their members among ``nodes`` nodes, degrees counted from them."""
        hyperedge = np.repeat(np.arange(len(members)), members.sizes)
        values = np.ones(len(members.values))
        shape = (nodes, len(members))
        incidence = sparse.csr_matrix((values, (members.values, hyperedge)), shape=shape)
        return cls(incidence, degrees(incidence), sizes)

    def gather(self, features: Rows) -> Rows:
        """``H^T D^-1/2 x``: for every hyperedge the sum over its members, ``[hyperedges, width]``."""
        return np.asarray(self.incidence.T @ self._scaled_rows(features))

    def spread(self, sums: Rows) -> Rows:
        """``D^-1/2 H S^-1 u``: for every node the mean sums of its hyperedges, ``[nodes, width]``."""
        return self._scaled_rows(np.asarray(self.incidence @ (sums / self.sizes[:, None])))

    def propagate(self, features: Rows, layers: int) -> Rows:
        """``L^layers x``."""
        for _ in range(layers):
            features = self.spread(self.gather(features))
        return features

    def _scaled_rows(self, rows: Rows) -> Rows:
        scale = np.zeros(len(self.degrees))
        scale[self.degrees > 0] = self.degrees[self.degrees > 0] ** -0.5
        return rows * scale[:, None]


def degrees(incidence: sparse.csr_matrix) -> NDArray[np.int64]:
    """How often each node is named ``[nodes]``."""
    return np.asarray(incidence.sum(axis=1)).ravel().astype(np.int64)


def hyperedges(client: Client) -> ClientHyperedges:
    """The hyperedges of a client that knows some."""
    assert client.hyperedges is not None
    return client.hyperedges
