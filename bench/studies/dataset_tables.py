"""The studies' tables of data sets: statistics measured here beside those that papers print.

A study describes its table by a ``DataTable``. Printed values are the rows ``dataset_stats`` and
``hyperedge_stats`` of its paper's file. A frame of statistics has a row a number and these columns:

dataset, scenario, clients   where it is of: ``global`` and 1 for the whole data set
quantity                     what it counts
measured, published          missing where a value is not defined or not published
deviation                    standard deviation (ddof 1) of a ``measured`` that is a mean over partitions
paper                        whose description it is
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from bench.data import Family, Graph, Hypergraph
from bench.dataset import Dataset
from bench.errors import NoDataError
from bench.federation import scenarios, statistics
from bench.federation.build import federate
from bench.federation.identity import data_checksum, features_checksum
from bench.federation.prepared import Prepared, prepare
from bench.federation.scenario import Split
from bench.sources import Sources
from bench.studies.published import published

COLUMNS = ["dataset", "scenario", "clients", "quantity", "measured", "published", "deviation", "paper"]

PRINTED = ["printed_dataset", "printed_scenario", "clients", "quantity"]
"""What names a published statistic."""

Statistic = tuple[str, int, str, float | None, float | None]
"""Scenario, number of clients, quantity, value, and of a mean over partitions the standard deviation."""

WHOLE = ("global", 1)
"""The whole data set, as the published files call it."""


@dataclass(frozen=True)
class DataTable:
    """How a paper describes data sets.

    settings     by family the scenarios and numbers of clients that it describes beside the whole data set
    names        data sets that its published file calls otherwise
    scenarios    the same of scenarios; clients of the published name stand in for those that are not at hand
    split        in place of the data sets' own
    partitions   of data with hyperedges: how many are drawn to count what lies between clients; 0: the paper
                 describes graphs without hyperedges, by means over clients
    notes        are said below the table
    """

    paper: str
    settings: Mapping[Family, tuple[tuple[str, int], ...]]
    names: Mapping[str, str] = field(default_factory=dict)
    scenarios: Mapping[str, str] = field(default_factory=dict)
    split: Split | None = None
    partitions: int = 0
    notes: tuple[str, ...] = ()

    def at(self, scenario: str | None, clients: int | None) -> Self:
        """The same of clients in another scenario, or of another number (None leaves the paper's)."""
        settings = {
            family: tuple(dict.fromkeys((scenario or name, clients or count) for name, count in own))
            for family, own in self.settings.items()
        }
        return replace(self, settings=settings)

    def printed(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Statistics with the columns ``PRINTED``, by which published ones are found."""
        return rows.assign(
            printed_dataset=rows["dataset"].replace(dict(self.names)),
            printed_scenario=rows["scenario"].replace(dict(self.scenarios)),
        )


def _measured(table: DataTable, prepared_data: Prepared, sources: Sources) -> Iterator[Statistic]:
    """All numbers of a data set; none where the paper has no such statistics of such data."""
    data = prepared_data.data
    if isinstance(data, Graph) and data.hyperedges is None:
        if not table.partitions:
            yield from _client_means(table, prepared_data, data)
    elif isinstance(data, Graph | Hypergraph) and table.partitions:
        yield from _hyperedge_counts(table, prepared_data, data, sources)


def _client_means(table: DataTable, prepared_data: Prepared, graph: Graph) -> Iterator[Statistic]:
    """The whole graph, and means over its clients; ``edges`` are counted in both directions."""
    kind, nodes = prepared_data.dataset, len(graph.labels)
    yield *WHOLE, "classes", float(graph.classes), None
    yield *WHOLE, "nodes", float(nodes), None
    yield *WHOLE, "edges", float(graph.edges.shape[1]), None
    yield *WHOLE, "clustering", statistics.clustering(graph.edges, nodes), None
    split = table.split or kind.protocol.split
    for scenario, clients in table.settings[kind.family]:
        if (scenario, clients, split) not in graph.published:
            scenario = table.scenarios.get(scenario, scenario)
        federation = federate(prepared_data, scenario, clients, kind.protocol.partition_seed, split)
        for quantity, value in statistics.graph_statistics(federation).items():
            yield scenario, clients, quantity, value, None


def _hyperedge_counts(
    table: DataTable, prepared_data: Prepared, data: Graph | Hypergraph, sources: Sources
) -> Iterator[Statistic]:
    """The whole data set, and what lies between its clients, a mean over the partition seeds from 0.

    ``edges`` are counted once, ``hyperedges`` as they are listed, before any cleaning.
    """
    dataset, nodes, hyperedges = prepared_data.dataset(), len(data.labels), data.hyperedges
    assert hyperedges is not None
    listed = dataset.raw_hyperedges(sources) if hasattr(dataset, "raw_hyperedges") else hyperedges
    split = dataset.protocol.split
    yield *WHOLE, "nodes", float(nodes), None
    if isinstance(data, Graph):
        yield *WHOLE, "edges", float(data.edges.shape[1] // 2), None
    yield *WHOLE, "hyperedges", float(len(listed)), None
    yield *WHOLE, "classes", float(data.classes), None
    yield *WHOLE, "features", float(data.features.shape[1]), None
    yield *WHOLE, "training_ratio", split[0] / 100, None
    for scenario, clients in table.settings[dataset.family]:
        counts: dict[str, list[int]] = defaultdict(list)
        for seed in range(table.partitions):
            partition = scenarios.parse(scenario).draw(data, clients, seed, split)
            holder = statistics.holders(partition.ids, nodes)
            counts["border_hyperedges"].append(statistics.border_hyperedges(hyperedges, holder))
            if isinstance(data, Graph):
                counts["cross_client_edges"].append(statistics.cross_client_edges(data.edges, holder))
        for quantity, numbers in counts.items():
            yield scenario, clients, quantity, float(np.mean(numbers)), float(np.std(numbers, ddof=1))


def published_statistics(paper: str, folder: Path) -> pd.DataFrame:
    """The statistics of data sets that a paper prints, by its file in a folder: the columns ``PRINTED``,
    paper, table, published.
    """
    rows = [
        (row.dataset, row.scenario, row.clients or 1, row.metric, row.paper, row.table, row.mean)
        for row in published(paper, folder)
        if row.study in ("dataset_stats", "hyperedge_stats") and row.mean is not None
    ]
    return pd.DataFrame(rows, columns=[*PRINTED, "paper", "table", "published"])


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


def dataset_tables(
    dataset: type[Dataset], tables: Iterable[tuple[DataTable, Path]], roots: tuple[Path, ...]
) -> list[tuple[DataTable, pd.DataFrame]]:
    """The statistics of a data set, from files at hand, by each description that applies. A description comes
    with the folder of its study's published numbers.

    Raises:
        NoDataError: the data set is not at hand, or no description applies.
        RequestError: a raw file's checksum is wrong, or no clients can be drawn.
    """
    tables = [(table, folder) for table, folder in tables if dataset.family in table.settings]
    found, sources = [], Sources(roots, download=False)
    try:
        for table, folder in tables:
            numbers = _measured(table, _prepared(dataset, roots, sources), sources)
            rows = pd.DataFrame(numbers, columns=[*COLUMNS[1:5], "deviation"]).assign(dataset=dataset.name)
            values = published_statistics(table.paper, folder).drop_duplicates(PRINTED)
            if len(rows):
                rows = table.printed(rows).merge(values.drop(columns="paper"), on=PRINTED, how="left")
                found.append((table, rows.assign(paper=table.paper)[COLUMNS]))
    except NoDataError as error:
        raise NoDataError(f"{dataset.name}: not at hand: {error}") from None
    if not found:
        raise NoDataError(f"{dataset.name}: no paper describes such data")
    return found


def texts(rows: pd.DataFrame) -> pd.DataFrame:
    """Measured numbers beside published ones (``publ.``), with standard deviations where there are some."""
    whole = rows["scenario"] == WHOLE[0]
    numbers = rows[["measured", "deviation", "published"]].dropna(axis=1, how="all")
    numbers = numbers.map(_number, na_action="ignore").fillna({"deviation": ""}).fillna("-")
    clients = (rows["scenario"] + " " + rows["clients"].astype(str)).mask(whole, "whole")
    words = pd.DataFrame({"clients": clients, "quantity": rows["quantity"].str.replace("_", " ")})
    return words.join(numbers.rename(columns={"deviation": "std", "published": "publ."}))


def _number(value: float) -> str:
    """Counts as they are, means of counts by a decimal, shares by three."""
    return f"{value:{'.3f' if 0 < value < 1 else ',.1f' if value % 1 else ',.0f'}}"
