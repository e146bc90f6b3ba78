"""The papers' data set tables: every statistic measured here beside the published one.

Published values are the ``dataset_stats`` and ``hyperedge_stats`` rows of the packaged
``published/fedsheafhn_final.csv`` (Tables 7 and 8) and ``published/fedhgn.csv`` (Tables 1 and 4).
Graphs belong to the first; hypergraphs, and graphs that have hyperedges, to the second.
"""

from __future__ import annotations

import csv
from collections.abc import Sized
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from bench import paths
from bench.data import Graph, Hypergraph, Images, Ragged
from bench.dataset import DATASETS, Dataset
from bench.errors import NoDataError
from bench.federation.build import federate
from bench.federation.hypergraph import LabelDirichlet
from bench.federation.prepared import Prepared, prepare
from bench.federation.statistics import (
    border_hyperedges,
    clustering,
    cross_client_edges,
    graph_statistics,
    holders,
)
from bench.sources import Sources

Paper = Literal["fedsheafhn_final", "fedhgn"]

Setting = tuple[str, int]
"""Scenario and number of clients."""

WHOLE = "global"
"""The published files' name for the whole graph."""

SUBGRAPH_SETTINGS: tuple[Setting, ...] = (
    ("non-overlapping", 10),
    ("non-overlapping", 20),
    ("overlapping", 30),
    ("overlapping", 50),
)
"""FedSheafHN's main settings, in the papers' order."""

SUBGRAPH_QUANTITIES = ("nodes", "edges", "clustering", "heterogeneity")

HYPERGRAPH_CLIENTS = (3, 6, 9)
SIMPLE_GRAPH_CLIENTS = (3, 8)
"""FedHGN's numbers of clients, on hypergraphs and on simple graphs."""

PARTITIONS = 10
"""Partition seeds ``0 .. 9`` over which FedHGN's counts are averaged; the paper prints one draw."""

PUBLISHED_NAMES = {
    "coraca": "coauthorship_cora",
    "dblp4k-repeats": "dblp4k",
    "cora-whole": "cora",
    "citeseer-whole": "citeseer",
}
"""Our name of a data set -> its name in the published file, where they differ."""


@dataclass(frozen=True)
class Statistic:
    """One number of a table; ``clients`` is 1 and ``scenario`` ``global`` for the whole graph.

    FedSheafHN: counts and coefficients are means over clients, ``heterogeneity`` is a median over
    pairs; ``edges`` are counted in both directions. FedHGN: ``edges`` are counted once, ``hyperedges``
    as the paper does (before cleaning where there is any), border hyperedges and cross-client edges
    over all clients: the mean over ``PARTITIONS`` and its standard ``deviation`` (ddof 1), which
    other numbers lack. None where a value is not defined or not published.
    """

    dataset: str
    scenario: str
    clients: int
    quantity: str
    measured: float | None
    published: float | None
    deviation: float | None = None


@dataclass(frozen=True)
class DatasetTable:
    """The statistics of one data set as its paper prints them, or why there are none."""

    dataset: str
    title: str
    paper: Paper | None
    statistics: tuple[Statistic, ...]
    missing: str = ""


@runtime_checkable
class CleanedOnLoading(Protocol):
    """A data set that can tell which hyperedges there were before cleaning."""

    def raw_hyperedges(self, sources: Sources) -> Sized:
        """The hyperedges as the raw files list them."""


@cache
def published_statistics(paper: Paper) -> dict[tuple[str, str, int, str], float]:
    """Published value by (data set's published name, scenario, clients, quantity)."""
    text = (resources.files("bench.results") / "published" / f"{paper}.csv").read_text(encoding="utf-8")
    return {
        (row["dataset"], row["scenario"], int(row["clients"] or 1), row["metric"]): float(row["mean"])
        for row in csv.DictReader(text.splitlines())
        if row["study"] in ("dataset_stats", "hyperedge_stats")
    }


def _statistic(
    paper: Paper,
    dataset: str,
    setting: Setting,
    quantity: str,
    measured: float | None,
    deviation: float | None = None,
) -> Statistic:
    name = PUBLISHED_NAMES.get(dataset, dataset)
    published = published_statistics(paper).get((name, *setting, quantity))
    return Statistic(dataset, *setting, quantity, measured, published, deviation)


def _subgraph_statistics(prepared: Prepared, graph: Graph) -> tuple[Statistic, ...]:
    """FedSheafHN's: the whole graph, then its settings, with the data set's own partition seed and split."""
    kind, nodes = prepared.dataset, len(graph.labels)
    measured: dict[Setting, dict[str, float | None]] = {
        (WHOLE, 1): {
            "nodes": float(nodes),
            "edges": float(graph.edges.shape[1]),
            "clustering": clustering(graph.edges, nodes),
        }
    }
    for scenario, clients in SUBGRAPH_SETTINGS:
        federation = federate(prepared, scenario, clients, kind.protocol.partition_seed, kind.protocol.split)
        measured[scenario, clients] = graph_statistics(federation)
    return tuple(
        _statistic("fedsheafhn_final", kind.name, setting, quantity, values.get(quantity))
        for setting, values in measured.items()
        for quantity in SUBGRAPH_QUANTITIES
    )


def _whole(kind: Dataset, data: Graph | Hypergraph, hyperedges: Ragged, sources: Sources) -> dict[str, float]:
    """What Tables 1 and 4 of FedHGN say of the whole data set."""
    counts: dict[str, float] = {"nodes": len(data.labels)}
    if isinstance(data, Graph):
        counts["edges"] = data.edges.shape[1] // 2
    if isinstance(kind, CleanedOnLoading):
        counts["hyperedges"] = len(kind.raw_hyperedges(sources))
        counts["cleaned_hyperedges"] = len(hyperedges)
    else:
        counts["hyperedges"] = len(hyperedges)
    counts["classes"] = data.classes
    counts["features"] = data.features.shape[1]
    counts["training_ratio"] = kind.protocol.split[0] / 100
    return counts


def _hyperedge_statistics(
    prepared: Prepared, data: Graph | Hypergraph, hyperedges: Ragged, sources: Sources
) -> tuple[Statistic, ...]:
    """FedHGN's: the whole data set, then the counts that hang on the partition, by number of clients."""
    kind = prepared.dataset
    statistics = [
        _statistic("fedhgn", kind.name, (WHOLE, 1), quantity, float(value))
        for quantity, value in _whole(kind(), data, hyperedges, sources).items()
    ]
    for clients in SIMPLE_GRAPH_CLIENTS if isinstance(data, Graph) else HYPERGRAPH_CLIENTS:
        counts: dict[str, list[int]] = {}
        for seed in range(PARTITIONS):
            ids = LabelDirichlet().draw(data, clients, seed, kind.protocol.split).ids
            holder = holders(ids, len(data.labels))
            counts.setdefault("border_hyperedges", []).append(border_hyperedges(hyperedges, holder))
            if isinstance(data, Graph):
                counts.setdefault("cross_client_edges", []).append(cross_client_edges(data.edges, holder))
        for quantity, values in counts.items():
            mean, deviation = float(np.mean(values)), float(np.std(values, ddof=1))
            setting = ("label-dirichlet", clients)
            statistics.append(_statistic("fedhgn", kind.name, setting, quantity, mean, deviation))
    return tuple(statistics)


def dataset_table(dataset: str, roots: tuple[Path, ...] | None = None) -> DatasetTable:
    """The table of one data set, from files at hand; nothing is downloaded.

    Raises:
        RequestError: no such data set, a raw file's checksum is wrong, or no clients can be drawn.
    """
    title = DATASETS.named(dataset).title
    roots = paths.data_roots() if roots is None else roots
    try:
        prepared = prepare(dataset, roots, download=False)
        data = prepared.data
        if isinstance(data, Images):
            return DatasetTable(dataset, title, None, (), "no published statistics")
        if data.hyperedges is None:
            return DatasetTable(dataset, title, "fedsheafhn_final", _subgraph_statistics(prepared, data))
        sources = Sources(roots, download=False)
        statistics = _hyperedge_statistics(prepared, data, data.hyperedges, sources)
        return DatasetTable(dataset, title, "fedhgn", statistics)
    except NoDataError as error:
        return DatasetTable(dataset, title, None, (), f"not at hand: {error}")
