"""Subgraph clients: METIS parts, and half-samples of METIS parts (FedSheafHN, FED-PUB)."""

from __future__ import annotations

from threading import Lock
from typing import Any, ClassVar

import numpy as np
import pymetis
from numpy.typing import NDArray

from bench import streams
from bench.data import Family, Graph
from bench.errors import RequestError
from bench.federation.clients import adjacency
from bench.federation.scenario import Assignment, Scenario, Split
from bench.federation.splits import global_roles

SAMPLES = 5
"""The number of half-samples, hence clients, of one part in the overlapping scenario."""

_ONE_AT_A_TIME = Lock()  # METIS draws from the C library's only generator: threads would mix their draws


def metis_seed(partition_seed: int) -> int:
    """METIS's own seed for a partition seed (a positive 31-bit number)."""
    return streams.entropy(partition_seed, "partition", "metis") % (2**31 - 1)


def metis_parts(graph: Graph, parts: int, partition_seed: int) -> NDArray[np.int64]:
    """Part of every node ``[nodes]``: multilevel k-way METIS, edge cut, no weights (facts 1.9).

    On tiny graphs METIS may leave parts empty.
    """
    dtype = pymetis.zero_copy_dtype()
    edges = adjacency(graph)
    neighbours = pymetis.CSRAdjacency(edges.indptr.astype(dtype), edges.indices.astype(dtype))
    options = pymetis.Options(seed=metis_seed(partition_seed))
    with _ONE_AT_A_TIME:
        result = pymetis.part_graph(parts, adjacency=neighbours, recursive=False, options=options)
    return np.asarray(result.vertex_part, np.int64)


class _Metis(Scenario[Graph]):
    """The common part of both scenarios: METIS, and one split of the whole graph before partitioning."""

    families: ClassVar[tuple[Family, ...]] = ("graph",)

    def recipe(self, partition_seed: int) -> dict[str, Any]:
        """METIS's options and the version of its binding."""
        return {
            "partitioner": "pymetis.part_graph",
            "pymetis": pymetis.version,
            "recursive": False,
            "options": {"seed": metis_seed(partition_seed)},
        }

    def _assign(
        self, graph: Graph, ids: list[NDArray[np.int64]], partition_seed: int, split: Split
    ) -> Assignment:
        roles = global_roles(len(graph.labels), split, streams.generator(partition_seed, "split"))
        return Assignment(tuple(ids), tuple(roles[part] for part in ids))


class NonOverlapping(_Metis):
    """One METIS part a client, nodes in ascending order (facts 1.10)."""

    name = "non-overlapping"

    def draw(self, data: Graph, clients: int, partition_seed: int, split: Split) -> Assignment:
        """Clients are the parts, in METIS's numbering."""
        labels = metis_parts(data, clients, partition_seed)
        ids = [np.flatnonzero(labels == part) for part in range(clients)]
        return self._assign(data, ids, partition_seed, split)


class Overlapping(_Metis):
    """The graph is cut into ``clients / 5`` METIS parts, and every part gives five clients (facts 1.11).

    Client ``5 * part + draw`` holds ``floor(size / 2)`` nodes drawn without replacement, in the
    order in which they were drawn.
    """

    name = "overlapping"
    disjoint: ClassVar[bool] = False
    samples: ClassVar[int] = SAMPLES

    def draw(self, data: Graph, clients: int, partition_seed: int, split: Split) -> Assignment:
        """Five clients of every part."""
        if clients < SAMPLES or clients % SAMPLES:
            raise RequestError(
                f"scenario overlapping: expected a multiple of {SAMPLES} clients ({SAMPLES} samples of "
                f"every part), got {clients}; use {max(SAMPLES, round(clients / SAMPLES) * SAMPLES)}"
            )
        labels = metis_parts(data, clients // SAMPLES, partition_seed)
        ids = []
        for part in range(clients // SAMPLES):
            nodes = np.flatnonzero(labels == part)
            for draw in range(SAMPLES):
                stream = streams.generator(partition_seed, "partition", "sample", part, draw)
                ids.append(stream.permutation(nodes)[: len(nodes) // 2])
        return self._assign(data, ids, partition_seed, split)
