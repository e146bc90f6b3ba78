"""Label-Dirichlet assignment with a cap, as FedHGN and FedAGHN (from FedGCN and PFLlib) draw it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench.errors import RequestError
from bench.streams import Stream

ATTEMPTS = 1000


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
