"""The papers' data set tables: every statistic measured here beside the published one.

Published values are the ``dataset_stats`` and ``hyperedge_stats`` rows of the packaged
``published/fedsheafhn_final.csv`` (Tables 7 and 8) and ``published/fedhgn.csv`` (Table 1).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from bench import registry
from bench.data import Family, Graph, Hypergraph
from bench.errors import NoDataError
from bench.federation.build import federate
from bench.federation.prepared import Prepared, prepare
from bench.federation.statistics import clustering, graph_statistics, hypergraph_statistics

WHOLE = "global"
"""The published files' name for the whole graph."""

Setting = tuple[str, int]

SETTINGS: dict[Family, tuple[Setting, ...]] = {
    "graph": (("non-overlapping", 10), ("non-overlapping", 20), ("overlapping", 30), ("overlapping", 50)),
    "hypergraph": (("label-dirichlet", 3), ("label-dirichlet", 6), ("label-dirichlet", 9)),
    "images": (),
}
"""The papers' main settings, in their order."""

QUANTITIES: dict[Family, tuple[str, ...]] = {
    "graph": ("nodes", "edges", "clustering", "heterogeneity"),
    "hypergraph": ("nodes", "hyperedges", "border_hyperedges"),
    "images": (),
}

FILES: dict[Family, str] = {"graph": "fedsheafhn_final.csv", "hypergraph": "fedhgn.csv"}

PUBLISHED_NAMES = {"coraca": "coauthorship_cora"}
"""Our name of a data set -> its name in the published file, where they differ."""


@dataclass(frozen=True)
class Statistic:
    """One number of a table; ``clients`` is 1 and ``scenario`` ``global`` for the whole graph.

    Counts and coefficients are means over clients, except ``border_hyperedges`` (a total) and
    ``heterogeneity`` (a median over pairs). None where a value is not defined or not published.
    """

    dataset: str
    scenario: str
    clients: int
    quantity: str
    measured: float | None
    published: float | None


@dataclass(frozen=True)
class DatasetTable:
    """The statistics of one data set, or why there are none."""

    dataset: str
    title: str
    statistics: tuple[Statistic, ...]
    missing: str = ""


@cache
def published_statistics(family: Family) -> dict[tuple[str, str, int, str], float]:
    """Published value by (data set's published name, scenario, clients, quantity)."""
    if family not in FILES:
        return {}
    text = (resources.files("bench.results") / "published" / FILES[family]).read_text(encoding="utf-8")
    return {
        (row["dataset"], row["scenario"], int(row["clients"] or 1), row["metric"]): float(row["mean"])
        for row in csv.DictReader(text.splitlines())
        if row["study"] in ("dataset_stats", "hyperedge_stats")
        and (family == "graph" or row["table"] == "Table 1")
    }


def _whole(data: Graph | Hypergraph) -> dict[str, float | None]:
    nodes = len(data.labels)
    if isinstance(data, Graph):
        coefficient = clustering(data.edges, nodes)
        return {"nodes": float(nodes), "edges": float(data.edges.shape[1]), "clustering": coefficient}
    return {"nodes": float(nodes), "hyperedges": float(len(data.hyperedges))}


def measure(prepared: Prepared) -> tuple[Statistic, ...]:
    """Every statistic of a data set: the whole of it, then the papers' settings.

    Clients are drawn with the data set's own partition seed and split.
    """
    kind, family = prepared.dataset, prepared.dataset.family
    if not isinstance(prepared.data, Graph | Hypergraph):
        return ()
    published = published_statistics(family)
    name = PUBLISHED_NAMES.get(kind.name, kind.name)
    measured: dict[Setting, dict[str, float | None]] = {(WHOLE, 1): _whole(prepared.data)}
    statistics = graph_statistics if family == "graph" else hypergraph_statistics
    for scenario, clients in SETTINGS[family]:
        federation = federate(prepared, scenario, clients, kind.protocol.partition_seed, kind.protocol.split)
        measured[scenario, clients] = statistics(federation)
    return tuple(
        Statistic(
            kind.name, *setting, quantity, values.get(quantity), published.get((name, *setting, quantity))
        )
        for setting, values in measured.items()
        for quantity in QUANTITIES[family]
    )


def dataset_table(dataset: str, roots: tuple[Path, ...] | None = None) -> DatasetTable:
    """The table of one data set, from files at hand; nothing is downloaded.

    Raises:
        RequestError: no such data set, or a raw file's checksum is wrong.
    """
    title = registry.dataset(dataset).title
    try:
        statistics = measure(prepare(dataset, roots, download=False))
    except NoDataError as error:
        return DatasetTable(dataset, title, (), f"not at hand: {error}")
    return DatasetTable(dataset, title, statistics, "" if statistics else "no published statistics")
