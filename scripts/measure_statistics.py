"""Measure the statistics of data sets that papers print, from the raw files at hand.

python scripts/measure_statistics.py > results/dataset_statistics.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from itertools import product
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.data import Family, Graph, Hypergraph
from bench.dataset import DATASETS, Dataset
from bench.errors import NoDataError
from bench.federation import scenarios, statistics
from bench.federation.build import federate
from bench.federation.identity import data_checksum, features_checksum
from bench.federation.prepared import Prepared, prepare
from bench.federation.scenario import Split
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
    clustering = statistics.clustering(data.edges, nodes)
    return {"classes": data.classes, "nodes": nodes, "edges": data.edges.shape[1], "clustering": clustering}


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
            draws.append(_between_clients(data, statistics.holders(partition.ids, len(data.labels))))
        if isinstance(data, Graph) and not draws:
            if (scenario, clients, split) not in data.published:
                scenario = study.scenarios.get(scenario, scenario)
            federation = federate(prepared_data, scenario, clients, kind.protocol.partition_seed, split)
            draws.append(statistics.graph_statistics(federation))
        for quantity, values in pd.DataFrame(draws, dtype=float).items():
            yield scenario, clients, str(quantity), values.mean(), values.std()


def _between_clients(data: Graph | Hypergraph, holder: NDArray[np.int64]) -> dict[str, int]:
    """What lies between the clients that hold the nodes."""
    assert data.hyperedges is not None
    counts = {"border_hyperedges": statistics.border_hyperedges(data.hyperedges, holder)}
    if isinstance(data, Graph):
        counts["cross_client_edges"] = statistics.cross_client_edges(data.edges, holder)
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


if __name__ == "__main__":
    main()
