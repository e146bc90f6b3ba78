"""Statistics of data sets, measured here and as papers print them.

A study's ``DataTable`` says what its paper describes. Printed values are the rows ``dataset_stats`` and
``hyperedge_stats`` of a paper's file. The whole data set has the scenario ``global`` and one client.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.data import Graph, Hypergraph
from bench.dataset import Dataset
from bench.errors import NoDataError
from bench.federation import scenarios, statistics
from bench.federation.build import federate
from bench.federation.identity import data_checksum, features_checksum
from bench.federation.prepared import Prepared, prepare
from bench.sources import Sources
from bench.studies.published import published
from bench.studies.study import DataTable, Study
from bench.studies.wording import number

COLUMNS = ["dataset", "scenario", "clients", "quantity", "measured", "published", "deviation", "paper"]
"""``deviation`` is the standard deviation (ddof 1) of a ``measured`` that is a mean over partitions."""

PRINTED = ["printed_dataset", "printed_scenario", "clients", "quantity"]
"""What names a published statistic."""


def measured_statistics(dataset: type[Dataset], study: Study, roots: tuple[Path, ...]) -> pd.DataFrame:
    """The statistics of a data set that a study's paper describes, from files at hand, beside those that it
    prints: the columns ``COLUMNS``. There are none where the paper describes no such data.

    Raises:
        NoDataError: the data set is not at hand.
        RequestError: a raw file's checksum is wrong, or no clients can be drawn.
    """
    table, sources = study.data_table, Sources(roots, download=False)
    if table is None or dataset.family not in table.settings:
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
    study: Study, table: DataTable, prepared_data: Prepared, data: Graph | Hypergraph
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


def printed_statistics(study: Study) -> pd.DataFrame:
    """The statistics of data sets that a study's papers print: the columns ``PRINTED``, paper, table,
    published.
    """
    rows = [
        (row.dataset, row.scenario, row.clients or 1, row.metric, row.paper, row.table, row.mean)
        for paper in study.papers
        for row in published(paper, study.published)
        if row.study in ("dataset_stats", "hyperedge_stats") and row.mean is not None
    ]
    return pd.DataFrame(rows, columns=[*PRINTED, "paper", "table", "published"])


def with_printed_names(rows: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Measured statistics with the columns ``PRINTED``."""
    return rows.assign(
        printed_dataset=rows["dataset"].replace(dict(study.datasets)),
        printed_scenario=rows["scenario"].replace(dict(study.scenarios)),
    )


def texts(rows: pd.DataFrame) -> pd.DataFrame:
    """Statistics in words: the columns clients, quantity, measured, published."""
    is_whole = rows["scenario"] == "global"
    words = rows[["measured", "published"]].map(_number)
    words.insert(0, "quantity", rows["quantity"].str.replace("_", " "))
    words.insert(0, "clients", (rows["scenario"] + " " + rows["clients"].astype(str)).mask(is_whole, "whole"))
    return words


def _number(value: float) -> str:
    """Counts as they are, means of counts by a decimal, shares by three."""
    return number(value, ".3f" if 0 < value < 1 else ",.1f" if value % 1 else ",.0f")
