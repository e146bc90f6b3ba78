"""Measure the statistics of data sets that papers print, from the raw files at hand.

python scripts/measure_statistics.py > results/dataset_statistics.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import rel_entr

from bench.data import Family, Graph, Hypergraph, Ragged
from bench.dataset import DATASETS, Dataset
from bench.errors import NoDataError
from bench.federation import scenarios
from bench.federation.build import federate
from bench.federation.identity import data_checksum, features_checksum
from bench.federation.prepared import Prepared, prepare
from bench.federation.scenario import Split
from bench.federation.types import Federation
from bench.paths import data_roots
from bench.sources import Sources
from bench.studies.dataset_tables import PARTITIONS, PRINTED, printed_statistics, with_printed_names
from bench.studies.study import STUDIES, Study

COLUMNS = ["dataset", "scenario", "clients", "quantity", "measured", "published", "deviation", "paper"]


class Described(NamedTuple):
    """How a paper describes data sets: by family the scenarios and numbers of clients beside the whole data
    set; the split (None: the data sets' own); and how many partitions are drawn to count the hyperedges
    between clients, 0 where it describes graphs without any.
    """

    paper: str
    settings: Mapping[Family, tuple[tuple[str, int], ...]]
    split: Split | None
    partitions: int


TABLES = {
    "fedhgn": Described(
        "fedhgn",
        {
            "hypergraph": tuple(product(["label-dirichlet"], (3, 6, 9))),
            "graph": tuple(product(["label-dirichlet"], (3, 8))),
        },
        None,
        PARTITIONS,
    ),
    "fedsheafhn": Described(
        "fedsheafhn_final",
        {"graph": (*product(["published"], (10, 20)), *product(["published-overlapping"], (30, 50)))},
        (20.0, 40.0, 40.0),
        0,
    ),
}
"""Study -> how its paper describes data sets."""


def measured_statistics(dataset: type[Dataset], name: str, roots: tuple[Path, ...]) -> pd.DataFrame:
    """The statistics of a data set as a study's paper describes them, beside those that it prints: the
    columns ``COLUMNS``. There are none where the paper describes no such data.
    """
    study, table, sources = STUDIES.named(name)(), TABLES[name], Sources(roots, download=False)
    if dataset.family not in table.settings:
        return pd.DataFrame(columns=COLUMNS)
    prepared_data = _prepared(dataset, roots, sources)
    data = prepared_data.data
    assert isinstance(data, Graph | Hypergraph)
    if (data.hyperedges is not None) != bool(table.partitions):
        return pd.DataFrame(columns=COLUMNS)
    whole = _whole_hypergraph(dataset(), data, sources) if table.partitions else _whole_graph(data)
    numbers = [("global", 1, quantity, float(value), nan) for quantity, value in whole.items()]
    numbers += _of_clients(study, table, prepared_data, data)
    rows = pd.DataFrame(numbers, columns=[*COLUMNS[1:5], "deviation"])
    rows = with_printed_names(rows.assign(dataset=dataset.name, paper=table.paper), study)
    values = printed_statistics(study).drop_duplicates([*PRINTED, "paper"])
    return rows.merge(values, on=[*PRINTED, "paper"], how="left")[COLUMNS]


def _prepared(dataset: type[Dataset], roots: tuple[Path, ...], sources: Sources) -> Prepared:
    """The data set; without its features where these alone are missing: no statistic needs them."""
    try:
        return prepare(dataset.name, roots, download=False)
    except NoDataError:
        instance: Any = dataset()
        if not hasattr(instance, "structure"):
            raise
        graph: Graph = instance.structure(sources)
        features = features_checksum(graph.features)
        return Prepared(dataset, graph, features, data_checksum(graph, features))


def _whole_graph(data: Graph | Hypergraph) -> dict[str, float]:
    """Statistics of a graph; ``edges`` are counted in both directions."""
    assert isinstance(data, Graph)
    nodes = len(data.labels)
    counts = {"classes": data.classes, "nodes": nodes, "edges": data.edges.shape[1]}
    return {**counts, "clustering": clustering(data.edges, nodes)}


def _whole_hypergraph(dataset: Dataset, data: Graph | Hypergraph, sources: Sources) -> dict[str, float]:
    """Statistics of data with hyperedges, as they are listed before any cleaning; ``edges`` count once."""
    listed: Any = data.hyperedges
    if hasattr(dataset, "raw_hyperedges"):
        listed = dataset.raw_hyperedges(sources)
    return {
        "nodes": len(data.labels),
        **({"edges": data.edges.shape[1] // 2} if isinstance(data, Graph) else {}),
        "hyperedges": len(listed),
        "classes": data.classes,
        "features": data.features.shape[1],
        "training_ratio": dataset.protocol.split[0] / 100,
    }


def _of_clients(
    study: Study, table: Described, prepared_data: Prepared, data: Graph | Hypergraph
) -> Iterator[tuple[str, int, str, float, float]]:
    """Means over clients of a graph, or what lies between them, the mean over partition seeds from 0."""
    kind = prepared_data.dataset
    split = table.split or kind.protocol.split
    for scenario, clients in table.settings[kind.family]:
        draws: list[dict[str, Any]] = []
        for seed in range(table.partitions):
            partition = scenarios.parse(scenario).draw(data, clients, seed, split)
            draws.append(_between_clients(data, holders(partition.ids, len(data.labels))))
        if isinstance(data, Graph) and not draws:
            if (scenario, clients, split) not in data.published:
                scenario = study.scenarios.get(scenario, scenario)
            federation = federate(prepared_data, scenario, clients, kind.protocol.partition_seed, split)
            draws.append(graph_statistics(federation))
        for quantity, values in pd.DataFrame(draws, dtype=float).items():
            yield scenario, clients, str(quantity), values.mean(), values.std()


def _between_clients(data: Graph | Hypergraph, holder: NDArray[np.int64]) -> dict[str, int]:
    """What lies between the clients that hold the nodes."""
    assert data.hyperedges is not None
    counts = {"border_hyperedges": border_hyperedges(data.hyperedges, holder)}
    if isinstance(data, Graph):
        counts["cross_client_edges"] = cross_client_edges(data.edges, holder)
    return counts


def main() -> None:
    """Print the statistics of all data sets as JSON; those that are not at hand are named."""
    records: list[Any] = []
    for kind in DATASETS.all().values():
        try:
            for name in TABLES:
                rows = measured_statistics(kind, name, data_roots())
                records += rows.astype(object).where(rows.notna(), None).to_dict("records")
        except NoDataError as error:
            print(f"{kind.name}: not at hand: {error}", file=sys.stderr)
    print(json.dumps(records, indent=1))


# The statistics, as the papers define them (subgraph facts 1.16 to 1.18, hypergraph facts 1.3) --------------


def clustering(edges: NDArray[np.int64], nodes: int) -> float:
    """Mean Watts-Strogatz local clustering coefficient over all nodes; it is 0 for a node of degree below 2.

    ``edges`` ``[2, m]`` holds both directions of every edge, no loops or repeats. Every edge is
    directed from its end of lower degree, which keeps the products small where degrees are uneven.
    """
    degree = np.bincount(edges[0], minlength=nodes)
    rank = np.empty(nodes, np.int64)
    rank[np.argsort(degree, kind="stable")] = np.arange(nodes)
    ends = edges[:, rank[edges[0]] < rank[edges[1]]]
    arcs = sparse.csr_array((np.ones(ends.shape[1], np.int64), (ends[0], ends[1])), shape=(nodes, nodes))
    # A triangle a -> b -> c, a -> c is counted once at its arc a -> c, and once at its arc b -> c. Both
    # products run over arcs that leave a node, which are few; thousands of arcs may enter a hub.
    by_long = (arcs @ arcs).multiply(arcs)
    by_last = (arcs.T @ arcs).multiply(arcs)
    triangles = by_long.sum(axis=1) + by_long.sum(axis=0) + by_last.sum(axis=1)
    pairs = degree * (degree - 1) / 2
    return float(np.divide(triangles, pairs, out=np.zeros(nodes), where=pairs > 0).mean())


def class_counts(labels: Sequence[NDArray[np.int64]], classes: int) -> NDArray[np.int64]:
    """How many items of every class each client has ``[clients, classes]``.

    ``labels[c]`` are the classes of the items of client ``c``.
    """
    return np.stack([np.bincount(part, minlength=classes) for part in labels])


def heterogeneity(labels: Sequence[NDArray[np.int64]], classes: int) -> float | None:
    """Median over pairs of clients of the Jensen-Shannon distance of their class shares.

    The distance is the square root of the divergence in natural logarithms, 0 to sqrt(ln 2).
    ``labels[c]`` are the classes of all items of client ``c``. None for a single client.
    """
    counts = class_counts(labels, classes)
    shares = counts / counts.sum(axis=1, keepdims=True)
    rows, columns = np.triu_indices(len(shares), k=1)
    if not rows.size:
        return None
    p, q = shares[rows], shares[columns]
    mean = (p + q) / 2
    divergence = (rel_entr(p, mean) + rel_entr(q, mean)).sum(axis=1) / 2
    return float(np.median(np.sqrt(np.maximum(divergence, 0.0))))


def graph_statistics(federation: Federation) -> dict[str, float | None]:
    """Means over clients of nodes, directed edges and clustering, and the heterogeneity."""
    clients = [(client.labels, client.edges) for client in federation.clients if client.edges is not None]
    return {
        "nodes": float(np.mean([len(labels) for labels, _ in clients])),
        "edges": float(np.mean([edges.shape[1] for _, edges in clients])),
        "clustering": float(np.mean([clustering(edges, len(labels)) for labels, edges in clients])),
        "heterogeneity": heterogeneity([labels for labels, _ in clients], federation.classes),
    }


def holders(ids: Sequence[NDArray[np.int64]], nodes: int) -> NDArray[np.int64]:
    """Return the client that holds each node ``[nodes]``. The clients' ``ids`` cover all nodes."""
    holder = np.empty(nodes, np.int64)
    for client, part in enumerate(ids):
        holder[part] = client
    return holder


def border_hyperedges(hyperedges: Ragged, holder: NDArray[np.int64]) -> int:
    """Number of hyperedges with members at two or more clients; none may be empty (hypergraph facts 1.3)."""
    clients, starts = holder[hyperedges.values], hyperedges.offsets[:-1]
    return int((np.minimum.reduceat(clients, starts) < np.maximum.reduceat(clients, starts)).sum())


def cross_client_edges(edges: NDArray[np.int64], holder: NDArray[np.int64]) -> int:
    """Number of undirected edges between clients; ``edges`` ``[2, m]`` has each both ways."""
    return int((holder[edges[0]] != holder[edges[1]]).sum()) // 2


if __name__ == "__main__":
    main()
