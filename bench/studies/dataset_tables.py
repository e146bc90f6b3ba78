"""The studies' tables of data sets: every statistic measured here beside the published one.

A study describes its table by a ``DataTable``; published values are the rows ``dataset_stats`` and
``hyperedge_stats`` of its paper's file under ``results/published``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

import numpy as np

from bench import paths
from bench.data import FAMILIES, Data, Family, Graph, Hypergraph, Images
from bench.dataset import DATASETS
from bench.errors import NoDataError
from bench.federation import scenarios
from bench.federation.build import federate
from bench.federation.identity import data_checksum, features_checksum
from bench.federation.prepared import Prepared, prepare
from bench.federation.statistics import (
    border_hyperedges,
    clustering,
    cross_client_edges,
    graph_statistics,
    holders,
    image_statistics,
)
from bench.sources import Sources
from bench.studies.published import published

Setting = tuple[str, int]
"""Scenario and number of clients."""

WHOLE: Setting = ("global", 1)
"""The whole data set, as the published files call it."""

SHARES = ("clustering", "heterogeneity", "training_ratio")
"""Quantities that are no counts."""

GRAPH_QUANTITIES = ("classes", "nodes", "edges", "clustering", "heterogeneity")
"""What ``ClientMeans`` states of a graph, and of the clients of a setting."""

IMAGE_QUANTITIES = ("images", "fewest", "most", "classes", "heterogeneity")
"""What ``ImageClients`` states of a data set."""


@dataclass(frozen=True)
class Statistic:
    """One number of a paper's table; ``clients`` is 1 and ``scenario`` ``global`` for the whole data set.

    ``measured`` may be a mean over partitions, with its standard ``deviation`` (ddof 1). None where a
    value is not defined or not published.
    """

    dataset: str
    scenario: str
    clients: int
    quantity: str
    measured: float | None
    published: float | None
    deviation: float | None = None
    paper: str = ""

    @property
    def setting(self) -> str:
        """Scenario and number of clients as tables print them."""
        return "whole" if (self.scenario, self.clients) == WHOLE else f"{self.scenario} {self.clients}"


def _number(value: float | None, quantity: str) -> str:
    if value is None:
        return "-"
    if quantity in SHARES:
        return f"{value:.3f}"
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.1f}"


@dataclass(frozen=True)
class DatasetTable:
    """The statistics of one data set as a paper prints them; without any, ``missing_reason`` says why."""

    dataset: str
    title: str = ""
    statistics: tuple[Statistic, ...] = ()
    notes: tuple[str, ...] = ()
    missing_reason: str = ""

    @cached_property
    def columns(self) -> dict[str, list[str]]:
        """Heading -> texts: measured numbers beside published ones (``publ.``), with standard deviations
        where there are some; what neither side has is left out.
        """
        rows = [row for row in self.statistics if row.measured is not None or row.published is not None]
        texts_by_name = {
            "clients": [row.setting for row in rows],
            "quantity": [row.quantity.replace("_", " ") for row in rows],
            "measured": [
                _number(row.measured, row.quantity) if row.deviation is None else f"{row.measured:,.1f}"
                for row in rows
            ],
            "std": ["" if row.deviation is None else f"{row.deviation:,.1f}" for row in rows],
            "publ.": [_number(row.published, row.quantity) for row in rows],
        }
        return {name: texts for name, texts in texts_by_name.items() if set(texts) - {"", "-"}}

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The texts row by row."""
        return list(zip(*self.columns.values(), strict=True))


@runtime_checkable
class CleanedOnLoading(Protocol):
    """A data set that can tell which hyperedges there were before cleaning."""

    def raw_hyperedges(self, sources: Sources) -> Sized:
        """The hyperedges as the raw files list them."""


@runtime_checkable
class ReadWithoutFeatures(Protocol):
    """A graph whose labels and edges may be at hand where its features are not."""

    def structure(self, sources: Sources) -> Graph:
        """The graph with features of no width."""


@cache
def published_statistics(paper: str, folder: Path) -> dict[tuple[str, str, int, str], float]:
    """Published value by (data set's published name, scenario, clients, quantity), from the paper's file in a
    folder.
    """
    return {
        (value.dataset, value.scenario, value.clients or 1, value.metric): value.mean
        for value in published(paper, folder)
        if value.study in ("dataset_stats", "hyperedge_stats") and value.mean is not None
    }


@dataclass(frozen=True, eq=False)
class DataTable(ABC):
    """How a paper describes data sets: ``names`` are those that its published file calls otherwise. What has
    a deviation is a mean over so many ``partitions``.
    """

    paper: str
    names: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    partitions: int = field(default=1, kw_only=True)

    @abstractmethod
    def applies(self, data: Data) -> bool:
        """Whether the paper has such statistics of such data."""

    @abstractmethod
    def statistics(self, prepared_data: Prepared, sources: Sources) -> Iterator[Statistic]:
        """All numbers, setting by setting."""

    def at(self, scenario: str | None, clients: int | None) -> Self:
        """The same of clients in another scenario, or of another number; None leaves the paper's."""
        return self

    def remarks(self, family: Family) -> Sequence[str]:
        """What is said below the table of a data set of that family."""
        return ()

    def statistic(
        self,
        dataset: str,
        setting: Setting,
        quantity: str,
        measured_value: float | None,
        deviation: float | None = None,
    ) -> Statistic:
        """A measured number, as yet without the published one."""
        return Statistic(dataset, *setting, quantity, measured_value, None, deviation, self.paper)

    def beside_published(self, row: Statistic, folder: Path) -> Statistic:
        """A statistic with the value that the paper's file in a folder has of it, if any."""
        key = (self.names.get(row.dataset, row.dataset), row.scenario, row.clients, row.quantity)
        return replace(row, published=published_statistics(self.paper, folder).get(key))


@dataclass(frozen=True, eq=False)
class ClientMeans(DataTable):
    """Graphs, whole and in ``settings``, with their data set's own partition seed and split.

    Counts and coefficients are means over clients, ``heterogeneity`` is a median over pairs; ``edges``
    are counted in both directions.
    """

    settings: tuple[Setting, ...]

    def at(self, scenario: str | None, clients: int | None) -> Self:
        """The paper's settings with this scenario or this number of clients in place of theirs."""
        settings = [(scenario or name, clients or count) for name, count in self.settings]
        return replace(self, settings=tuple(dict.fromkeys(settings)))

    def applies(self, data: Data) -> bool:
        """Graphs without hyperedges."""
        return isinstance(data, Graph) and data.hyperedges is None

    def statistics(self, prepared_data: Prepared, sources: Sources) -> Iterator[Statistic]:
        """The whole graph, then the settings."""
        kind, graph = prepared_data.dataset, prepared_data.data
        assert isinstance(graph, Graph)
        nodes = len(graph.labels)
        values_by_setting: dict[Setting, dict[str, float | None]] = {
            WHOLE: {
                "classes": float(graph.classes),
                "nodes": float(nodes),
                "edges": float(graph.edges.shape[1]),
                "clustering": clustering(graph.edges, nodes),
            }
        }
        for scenario, clients in self.settings:
            federation = federate(
                prepared_data, scenario, clients, kind.protocol.partition_seed, kind.protocol.split
            )
            values_by_setting[scenario, clients] = graph_statistics(federation)
        for setting, values in values_by_setting.items():
            for quantity in GRAPH_QUANTITIES:
                yield self.statistic(kind.name, setting, quantity, values.get(quantity))


@dataclass(frozen=True, eq=False)
class PartitionCounts(DataTable):
    """Data with hyperedges, whole and shared out by ``scenario`` to numbers of ``clients`` by family.

    ``edges`` are counted once, ``hyperedges`` as listed (before cleaning where there is any), border
    hyperedges and cross-client edges over all clients: their mean and standard deviation over partition
    seeds ``0 .. partitions - 1``. ``notes`` by family go below the table.
    """

    scenario: str
    clients: Mapping[Family, tuple[int, ...]]
    notes: Mapping[Family, str] = field(default_factory=dict)

    def at(self, scenario: str | None, clients: int | None) -> Self:
        """With this scenario, and this number of clients for every family."""
        counts = self.clients if clients is None else dict.fromkeys(FAMILIES, (clients,))
        return replace(self, scenario=scenario or self.scenario, clients=counts)

    def applies(self, data: Data) -> bool:
        """Hypergraphs, and graphs that have hyperedges."""
        return isinstance(data, Graph | Hypergraph) and data.hyperedges is not None

    def statistics(self, prepared_data: Prepared, sources: Sources) -> Iterator[Statistic]:
        """The whole data set, then the counts that hang on the partition, by number of clients."""
        kind, data = prepared_data.dataset, prepared_data.data
        assert isinstance(data, Graph | Hypergraph)
        assert data.hyperedges is not None
        for quantity, value in self._whole_counts(prepared_data, sources).items():
            yield self.statistic(kind.name, WHOLE, quantity, float(value))
        for clients in self.clients.get(kind.family, ()):
            counts: dict[str, list[int]] = {}
            for seed in range(self.partitions):
                ids = scenarios.parse(self.scenario).draw(data, clients, seed, kind.protocol.split).ids
                holder = holders(ids, len(data.labels))
                counts.setdefault("border_hyperedges", []).append(border_hyperedges(data.hyperedges, holder))
                if isinstance(data, Graph):
                    crossing = cross_client_edges(data.edges, holder)
                    counts.setdefault("cross_client_edges", []).append(crossing)
            for quantity, values in counts.items():
                mean, deviation = float(np.mean(values)), float(np.std(values, ddof=1))
                yield self.statistic(kind.name, (self.scenario, clients), quantity, mean, deviation)

    def _whole_counts(self, prepared_data: Prepared, sources: Sources) -> dict[str, float]:
        kind, data = prepared_data.dataset(), prepared_data.data
        assert isinstance(data, Graph | Hypergraph)
        assert data.hyperedges is not None
        counts: dict[str, float] = {"nodes": len(data.labels)}
        if isinstance(data, Graph):
            counts["edges"] = data.edges.shape[1] // 2
        if isinstance(kind, CleanedOnLoading):
            counts["hyperedges"] = len(kind.raw_hyperedges(sources))
            counts["cleaned_hyperedges"] = len(data.hyperedges)
        else:
            counts["hyperedges"] = len(data.hyperedges)
        counts["classes"] = data.classes
        counts["features"] = data.features.shape[1]
        counts["training_ratio"] = kind.protocol.split[0] / 100
        return counts

    def remarks(self, family: Family) -> Sequence[str]:
        """How counts were averaged, and the family's own remark."""
        average_remark = f"Counts with std: over {self.partitions} partitions (ddof 1); the paper prints one."
        return average_remark, *filter(None, [self.notes.get(family)])


@dataclass(frozen=True, eq=False)
class ImageClients(DataTable):
    """Images, whole and shared out to so many ``clients`` in ``scenarios``; empty: all of the data set.

    Of clients, ``images`` and ``classes`` are means over them, beside the ``fewest`` and ``most`` images of
    one, and ``heterogeneity`` is a median over pairs. Papers of images print no such numbers.
    """

    clients: int
    scenarios: tuple[str, ...] = ()

    def at(self, scenario: str | None, clients: int | None) -> Self:
        """In this scenario alone, with this number of clients."""
        scenarios = self.scenarios if scenario is None else (scenario,)
        return replace(self, scenarios=scenarios, clients=clients or self.clients)

    def applies(self, data: Data) -> bool:
        """All images."""
        return isinstance(data, Images)

    def statistics(self, prepared_data: Prepared, sources: Sources) -> Iterator[Statistic]:
        """The images that are here, then the scenarios."""
        kind = prepared_data.dataset
        whole_counts = {"images": float(prepared_data.items), "classes": float(prepared_data.data.classes)}
        for quantity in IMAGE_QUANTITIES:
            yield self.statistic(kind.name, WHOLE, quantity, whole_counts.get(quantity))
        for scenario in self.scenarios or kind.scenarios:
            federation = federate(
                prepared_data, scenario, self.clients, kind.protocol.partition_seed, kind.protocol.split
            )
            for quantity, value in image_statistics(federation).items():
                yield self.statistic(kind.name, (scenario, self.clients), quantity, value)


def _prepared_data(dataset: str, roots: tuple[Path, ...], sources: Sources) -> Prepared:
    """The data set; without its features where these alone are missing: no statistic needs them."""
    try:
        return prepare(dataset, roots, download=False)
    except NoDataError:
        kind = DATASETS.named(dataset)
        dataset_object = kind()
        if not isinstance(dataset_object, ReadWithoutFeatures):
            raise
        graph = dataset_object.structure(sources)
        features = features_checksum(graph.features)
        return Prepared(kind, graph, features, data_checksum(graph, features))


def dataset_tables(
    dataset: str, descriptions: Mapping[DataTable, Path], roots: tuple[Path, ...] | None = None
) -> list[DatasetTable]:
    """The tables of one data set, one a description that applies, from files at hand; nothing is downloaded.
    Each description comes with the folder of its study's published numbers.

    Raises:
        RequestError: no such data set, a raw file's checksum is wrong, or no clients can be drawn.
    """
    DATASETS.named(dataset)
    roots = paths.data_roots() if roots is None else roots
    sources = Sources(roots, download=False)
    tables = []
    try:
        prepared_data = _prepared_data(dataset, roots, sources)
        for description, folder in descriptions.items():
            if description.applies(prepared_data.data):
                statistics = tuple(
                    description.beside_published(row, folder)
                    for row in description.statistics(prepared_data, sources)
                )
                title = f"{prepared_data.dataset.title} ({dataset})"
                remarks = tuple(description.remarks(prepared_data.dataset.family))
                tables.append(DatasetTable(dataset, title, statistics, remarks))
    except NoDataError as error:
        return [DatasetTable(dataset, missing_reason=f"not at hand: {error}")]
    return tables or [DatasetTable(dataset, missing_reason="no published statistics")]
