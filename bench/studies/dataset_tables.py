"""The studies' tables of data sets: every statistic measured here beside the published one.

A study describes its table by a ``DataTable``; published values are the rows ``dataset_stats`` and
``hyperedge_stats`` of its paper's file under ``results/published``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from bench import paths
from bench.data import Data, Family, Graph, Images
from bench.dataset import DATASETS
from bench.errors import NoDataError
from bench.federation.build import federate
from bench.federation.identity import data_checksum, features_checksum
from bench.federation.prepared import Prepared, prepare
from bench.federation.scenario import Split
from bench.federation.statistics import (
    clustering,
    graph_statistics,
    image_statistics,
)
from bench.sources import Sources
from bench.studies.published import Published, published

Setting = tuple[str, int]
"""Scenario and number of clients."""

Measured = tuple[Setting, str, float | None, float | None]
"""A setting, a quantity, its value (or mean over partitions) and, of a mean, the standard deviation."""

WHOLE: Setting = ("global", 1)
"""The whole data set, as the published files call it."""

SHARES = ("clustering", "heterogeneity", "training_ratio")
"""Quantities that are no counts."""

QUANTITIES: Mapping[Family, tuple[str, ...]] = {
    "graph": ("classes", "nodes", "edges", "clustering", "heterogeneity"),
    "images": ("images", "fewest", "most", "classes", "heterogeneity"),
}
"""What ``ClientMeans`` states of data of a family, whole and of the clients of a setting."""


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
class ReadWithoutFeatures(Protocol):
    """A graph whose labels and edges may be at hand where its features are not."""

    def structure(self, sources: Sources) -> Graph:
        """The graph with features of no width."""


def published_rows(paper: str, folder: Path) -> Iterator[tuple[Published, float]]:
    """The statistics of data sets that a paper prints, by its file in a folder, each with its number."""
    for value in published(paper, folder):
        if value.study in ("dataset_stats", "hyperedge_stats") and value.mean is not None:
            yield value, value.mean


@cache
def published_statistics(paper: str, folder: Path) -> dict[tuple[str, str, int, str], float]:
    """Published value by (data set's published name, scenario, clients, quantity), from the paper's file in a
    folder.
    """
    return {
        (row.dataset, row.scenario, row.clients or 1, row.metric): mean
        for row, mean in published_rows(paper, folder)
    }


@dataclass(frozen=True, eq=False)
class DataTable(ABC):
    """How a paper describes data sets: ``names`` and ``scenarios`` are those that its published file calls
    otherwise. What has a deviation is a mean over so many ``partitions``.
    """

    paper: str
    names: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    scenarios: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    partitions: int = field(default=1, kw_only=True)

    @abstractmethod
    def applies(self, data: Data) -> bool:
        """Whether the paper has such statistics of such data."""

    @abstractmethod
    def statistics(self, prepared_data: Prepared, sources: Sources) -> Iterator[Measured]:
        """All numbers, setting by setting."""

    def at(self, scenario: str | None, clients: int | None, left_out: Collection[str] = ()) -> Self:
        """The same of clients in another scenario, or of another number (None leaves the paper's), without
        the scenarios that are left out.
        """
        return self

    def remarks(self, family: Family) -> Sequence[str]:
        """What is said below the table of a data set of that family."""
        return ()

    def beside_published(self, prepared_data: Prepared, sources: Sources, folder: Path) -> list[Statistic]:
        """All numbers with the values that the paper's file in a folder has of them."""
        dataset, rows = prepared_data.dataset.name, []
        name, published_values = self.names.get(dataset, dataset), published_statistics(self.paper, folder)
        for (scenario, clients), quantity, value, deviation in self.statistics(prepared_data, sources):
            key = (name, self.scenarios.get(scenario, scenario), clients, quantity)
            numbers = value, published_values.get(key), deviation
            rows.append(Statistic(dataset, scenario, clients, quantity, *numbers, self.paper))
        return rows


@dataclass(frozen=True, eq=False)
class ClientMeans(DataTable):
    """Data of a ``family``, graphs or images, whole and in ``settings``, with their data set's own partition
    seed and, without a ``split``, its own split; without settings, in all of its scenarios with so many
    ``clients``. Scenarios that are ``left_out`` have none. Where the papers' own clients are not at hand,
    drawn ones stand in for them.

    Counts and coefficients are means over clients, ``heterogeneity`` is a median over pairs, ``fewest`` and
    ``most`` are images of one client; ``edges`` are counted in both directions.
    """

    settings: tuple[Setting, ...] = ()
    clients: int = 0
    family: Family = "graph"
    left_out: frozenset[str] = frozenset()
    split: Split | None = None

    def at(self, scenario: str | None, clients: int | None, left_out: Collection[str] = ()) -> Self:
        """The settings with this scenario or this number of clients in place of theirs."""
        settings = [(scenario or name, clients or count) for name, count in self.settings]
        if scenario and not settings:
            settings = [(scenario, clients or self.clients)]
        unique_settings = tuple(dict.fromkeys(settings))
        count = clients or self.clients
        return replace(self, settings=unique_settings, clients=count, left_out=frozenset(left_out))

    def applies(self, data: Data) -> bool:
        """All images, or graphs without hyperedges."""
        if self.family == "images":
            return isinstance(data, Images)
        return isinstance(data, Graph) and data.hyperedges is None

    def statistics(self, prepared_data: Prepared, sources: Sources) -> Iterator[Measured]:
        """All of the data set that is here, then the settings."""
        kind, data = prepared_data.dataset, prepared_data.data
        values_by_setting: dict[Setting, Mapping[str, float | None]] = {WHOLE: _whole_counts(prepared_data)}
        statistics_of = graph_statistics if isinstance(data, Graph) else image_statistics
        for scenario, clients in self.settings or [(name, self.clients) for name in kind.scenarios]:
            if scenario in self.left_out:
                continue
            split = self.split or kind.protocol.split
            if not (isinstance(data, Graph) and (scenario, clients, split) in data.published):
                scenario = self.scenarios.get(scenario, scenario)
            federation = federate(prepared_data, scenario, clients, kind.protocol.partition_seed, split)
            values_by_setting[scenario, clients] = statistics_of(federation)
        for setting, values in values_by_setting.items():
            for quantity in QUANTITIES[self.family]:
                yield setting, quantity, values.get(quantity), None


def _whole_counts(prepared_data: Prepared) -> dict[str, float | None]:
    """What is known of a graph or of images, shared out to nobody."""
    data = prepared_data.data
    if not isinstance(data, Graph):
        return {"classes": float(data.classes), "images": float(prepared_data.items)}
    nodes = len(data.labels)
    return {
        "classes": float(data.classes),
        "nodes": float(nodes),
        "edges": float(data.edges.shape[1]),
        "clustering": clustering(data.edges, nodes),
    }


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
                statistics = tuple(description.beside_published(prepared_data, sources, folder))
                title = f"{prepared_data.dataset.title} ({dataset})"
                remarks = tuple(description.remarks(prepared_data.dataset.family))
                tables.append(DatasetTable(dataset, title, statistics, remarks))
    except NoDataError as error:
        return [DatasetTable(dataset, missing_reason=f"not at hand: {error}")]
    return tables or [DatasetTable(dataset, missing_reason="no published statistics")]
