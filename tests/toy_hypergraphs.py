"""Hypergraphs and their clients for tests, and centralised propagation as the definition has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from bench.data import Hypergraph, Ragged
from bench.engine.methods import METHODS
from bench.federation.clients import assigned_clients
from bench.federation.scenario import Assignment
from bench.federation.traffic import TrafficMeter
from bench.federation.types import TEST, TRAIN, UNUSED, VALIDATION, Client, Federation
from bench.spec import ClientSettings, Protocol, RunSpec


def hypergraph(
    features: Any, lists: Iterable[Iterable[int]], labels: Any = None, classes: int = 2
) -> Hypergraph:
    rows = np.asarray(features, np.float32)
    labels = np.zeros(len(rows), np.int64) if labels is None else np.asarray(labels)
    return Hypergraph(
        rows, labels, Ragged.of([np.array(sorted(nodes), np.int64) for nodes in lists]), classes
    )


def clients_of(data: Hypergraph, owner: Any, roles: Any = None) -> tuple[Client, ...]:
    """Node v belongs to client ``owner[v]``; every node trains unless ``roles`` says otherwise."""
    owner = np.asarray(owner)
    roles = np.zeros(len(owner), np.int8) if roles is None else np.asarray(roles, np.int8)
    parts = [np.flatnonzero(owner == client) for client in range(owner.max() + 1)]
    return assigned_clients(data, Assignment(tuple(parts), tuple(roles[part] for part in parts)))


def federation_of(data: Hypergraph, clients: tuple[Client, ...]) -> Federation:
    return Federation("toy", "by hand", "hypergraph", data.classes, clients, "")


def centralised(data: Hypergraph, layers: int = 2) -> NDArray[np.float64]:
    """``L ... L X`` node by node and hyperedge by hyperedge, in float64."""
    features = data.features if isinstance(data.features, np.ndarray) else data.features.toarray()
    rows = features.astype(np.float64)
    edges = [data.hyperedges[index] for index in range(len(data.hyperedges))]
    degree = np.zeros(len(rows))
    for edge in edges:
        degree[edge] += 1
    for _ in range(layers):
        result = np.zeros_like(rows)
        for edge in edges:
            mean = sum(rows[node] / np.sqrt(degree[node]) for node in edge) / len(edge)
            for node in edge:
                result[node] += mean / np.sqrt(degree[node])
        rows = result
    return rows


class Recorder(TrafficMeter):
    """A traffic meter that keeps what passes."""

    def __init__(self) -> None:
        super().__init__()
        self.uploads: list[tuple[NDArray[Any], ...]] = []
        self.downloads: list[tuple[NDArray[Any], ...]] = []

    def upload(self, *arrays: NDArray[Any], exchange: int | None = None) -> None:
        super().upload(*arrays, exchange=exchange)
        self.uploads.append(tuple(array.copy() for array in arrays))

    def download(self, *arrays: NDArray[Any], exchange: int | None = None) -> None:
        super().download(*arrays, exchange=exchange)
        self.downloads.append(tuple(array.copy() for array in arrays))


def rows_of(
    method: str, federation: Federation, traffic: TrafficMeter | None = None, **hyper: Any
) -> list[NDArray[np.float32]]:
    """What every client of a method trains on."""
    kind = METHODS.named(method)
    copy = object.__new__(kind)
    copy.hyper = kind.Hyper.model_validate(hyper)
    return [client.features for client in copy.prepare_data(federation, traffic or TrafficMeter()).clients]


@st.composite
def partitioned(draw: st.DrawFn) -> tuple[Hypergraph, list[int]]:
    """A hypergraph of up to 20 nodes, some of them isolated, and the owner of every node."""
    nodes = draw(st.integers(2, 20))
    edge = st.frozensets(st.integers(0, nodes - 1), min_size=2, max_size=6)
    edges = draw(st.lists(edge, max_size=15, unique=True))
    count = draw(st.integers(1, min(4, nodes)))
    owner = list(range(count)) + draw(
        st.lists(st.integers(0, count - 1), min_size=nodes - count, max_size=nodes - count)
    )
    features = np.random.default_rng(draw(st.integers(0, 99))).random((nodes, 3))
    return hypergraph(features, edges), draw(st.permutations(owner))


def learnable(seed: int = 0, nodes: int = 90) -> tuple[Hypergraph, tuple[Client, ...]]:
    """Two classes that words and hyperedges tell apart, over three clients of unequal size."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, nodes)
    features = rng.random((nodes, 8)) * (
        rng.random((nodes, 8)) < np.where(labels[:, None] == np.arange(8) % 2, 0.8, 0.2)
    )
    lists = {
        tuple(sorted(rng.choice(np.flatnonzero(labels == c), 4, replace=False)))
        for c in (0, 1)
        for _ in range(40)
    }
    data = hypergraph(features, lists, labels)
    roles = rng.choice([TRAIN, VALIDATION, TEST, UNUSED], nodes, p=[0.3, 0.2, 0.3, 0.2])
    return data, clients_of(data, rng.choice(3, nodes, p=[0.5, 0.3, 0.2]), roles)


def spec(
    method: str, clients: int, rounds: int = 4, hyper: dict[str, Any] | None = None, **client: Any
) -> RunSpec:
    return RunSpec(
        dataset="toy",
        scenario="by hand",
        clients=clients,
        method=method,
        seed=0,
        protocol=Protocol(rounds=rounds, local_epochs=3, initial="common", evaluate="epoch"),
        client=ClientSettings(**{"model": "hgnn", "hidden": 6, **client}),
        hyper=hyper or {},
    )
