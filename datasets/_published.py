"""Five graphs as all studies of subgraphs use them, with the clients that FED-PUB and FedSheafHN made.

FED-PUB cuts the largest component with METIS 5.1.0 (default options) and draws everything else from
generators seeded with 1234; FedSheafHN runs the same code with the seed 123. ``NAME_published.npz`` holds
node numbers and roles alone (subgraph facts 11.1).
"""

from __future__ import annotations

from dataclasses import replace
from importlib import resources
from typing import IO

import numpy as np
from numpy.typing import NDArray

from bench.data import Graph, PublishedClients, PublishedKey
from bench.own_data import largest_component

from ._prepare import normalise_rows

SCENARIOS = ("non-overlapping", "overlapping", "published", "published-fresh", "published-overlapping")

FEDPUB = (20.0, 40.0, 40.0)
FEDSHEAFHN = (40.0, 30.0, 30.0)


def parts(labels: NDArray[np.int8]) -> tuple[NDArray[np.int64], ...]:
    """The nodes of every part, ascending."""
    return tuple(np.flatnonzero(labels == part) for part in range(int(labels.max()) + 1))


def samples(nodes: NDArray[np.integer], sizes: NDArray[np.integer]) -> tuple[NDArray[np.int64], ...]:
    """The nodes of every client in the order in which they were drawn."""
    return tuple(np.split(nodes.astype(np.int64), np.cumsum(sizes)[:-1]))


def unpack_published(file: IO[bytes]) -> dict[PublishedKey, PublishedClients]:
    """The clients in a file, by scenario, number of clients and split.

    FedSheafHN deals the roles of 10 and of 30 clients by the first permutation of its seed, those of 20
    and of 50 by the second.
    """
    published: dict[PublishedKey, PublishedClients] = {}
    with np.load(file, allow_pickle=False) as arrays:
        for clients in (5, 10, 20):
            nodes = parts(arrays[f"parts.{clients}"])
            for scenario in ("published", "published-fresh"):
                roles = arrays[f"roles.{scenario}.{clients}"]
                published[scenario, clients, FEDPUB] = PublishedClients(nodes, roles)
        for clients in (10, 30, 50):
            nodes = samples(arrays[f"nodes.fedpub.{clients}"], arrays[f"sizes.fedpub.{clients}"])
            roles = arrays[f"roles.published-overlapping.{clients}"]
            published["published-overlapping", clients, FEDPUB] = PublishedClients(nodes, roles)
        for permutation, (few, many) in enumerate(((10, 30), (20, 50)), start=1):
            nodes = parts(arrays[f"parts.{few}"])
            published["published", few, FEDSHEAFHN] = PublishedClients(nodes, None, permutation)
            nodes = samples(arrays[f"nodes.fedsheafhn.{many}"], arrays[f"sizes.fedsheafhn.{many}"])
            published["published-overlapping", many, FEDSHEAFHN] = PublishedClients(nodes, None, permutation)
    return published


def studied(graph: Graph, name: str) -> Graph:
    """The largest component with normalised features, and its published clients."""
    part = largest_component(graph)
    with (resources.files(__package__) / "embedded" / f"{name}_published.npz").open("rb") as file:
        return replace(part, features=normalise_rows(part.features), published=unpack_published(file))
