"""The studies' tables of data sets: every statistic measured here beside the published one.

A study describes its table by a ``DataTable``; published values are the rows ``dataset_stats`` and
``hyperedge_stats`` of its paper's file under ``results/published``. A frame of statistics has a row a number
and these columns:

dataset, scenario, clients   where it is of: ``global`` and 1 for the whole data set
quantity                     what it counts
measured, published          missing where a value is not defined or not published
deviation                    standard deviation (ddof 1) of a ``measured`` that is a mean over partitions
paper                        whose description it is
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

import pandas as pd

from bench import paths
from bench.data import Data, Family, Graph, Images
from bench.dataset import DATASETS
from bench.errors import NoDataError
from bench.federation.build import federate
from bench.federation.identity import data_checksum, features_checksum
from bench.federation.prepared import Prepared, prepare
from bench.federation.scenario import Split
from bench.federation.statistics import clustering, graph_statistics, image_statistics
from bench.sources import Sources
from bench.studies.published import published
from bench.studies.wording import number

COLUMNS = ["dataset", "scenario", "clients", "quantity", "measured", "published", "deviation", "paper"]

PRINTED = ["printed_dataset", "printed_scenario", "clients", "quantity"]
"""What names a published statistic."""

Measured = tuple[str, int, str, float | None, float | None]
"""Scenario, number of clients, quantity, value, and of a mean over partitions the standard deviation."""

WHOLE = ("global", 1)
"""The whole data set, as the published files call it."""

SHARES = ("clustering", "heterogeneity", "training_ratio")
"""Quantities that are no counts."""

QUANTITIES: Mapping[Family, tuple[str, ...]] = {
    "graph": ("classes", "nodes", "edges", "clustering", "heterogeneity"),
    "images": ("images", "fewest", "most", "classes", "heterogeneity"),
}
"""What ``ClientMeans`` states of data of a family, whole and of the clients of a setting."""


@dataclass(frozen=True, eq=False)
class DatasetTable:
    """The ``statistics`` of one data set as a paper prints them; without any, ``missing_reason`` says why."""

    dataset: str
    title: str = ""
    statistics: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=COLUMNS))
    notes: tuple[str, ...] = ()
    missing_reason: str = ""

    @property
    def records(self) -> list[dict[Any, Any]]:
        """The statistics row by row, None where a number is missing."""
        return self.statistics.astype(object).where(self.statistics.notna(), None).to_dict("records")

    @property
    def texts(self) -> pd.DataFrame:
        """Measured numbers beside published ones (``publ.``), with standard deviations where there are some;
        columns that nothing has are left out.
        """
        rows = self.statistics.dropna(subset=["measured", "published"], how="all")
        has_std = rows["deviation"].notna()
        texts: dict[str, Any] = {
            "clients": settings(rows),
            "quantity": rows["quantity"].str.replace("_", " "),
            "measured": list(map(_number, rows["measured"], rows["quantity"], has_std)),
            "std": ["" if pd.isna(value) else f"{value:,.1f}" for value in rows["deviation"]],
            "publ.": list(map(_number, rows["published"], rows["quantity"])),
        }
        return pd.DataFrame({name: column for name, column in texts.items() if {*column} - {"", "-"}})


def settings(rows: pd.DataFrame) -> pd.Series[str]:
    """Scenario and number of clients as tables print them."""
    texts = rows["scenario"] + " " + rows["clients"].astype(str)
    return texts.mask((rows["scenario"] == WHOLE[0]) & (rows["clients"] == WHOLE[1]), "whole")


def _number(value: float, quantity: str, is_mean: bool = False) -> str:
    if quantity in SHARES and not is_mean:
        return number(value, ".3f")
    return number(value, ",.1f" if is_mean or value % 1 else ",.0f")


@cache
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

    def at(self, scenario: str | None, clients: int | None) -> Self:
        """The same of clients in another scenario, or of another number (None leaves the paper's)."""
        return self

    def remarks(self, family: Family) -> Sequence[str]:
        """What is said below the table of a data set of that family."""
        return ()

    def beside(
        self, measured: pd.DataFrame, values: pd.DataFrame, how: Literal["left", "right"] = "left"
    ) -> pd.DataFrame:
        """Measured statistics beside published ``values``: all of the former, or with ``right`` of the
        latter, by the suite's names where something was measured.
        """
        rows = measured.drop(columns=["published", "paper"], errors="ignore").assign(
            printed_dataset=measured["dataset"].replace(dict(self.names)),
            printed_scenario=measured["scenario"].replace(dict(self.scenarios)),
        )
        if how == "right":
            rows = rows.drop_duplicates(PRINTED)
        else:
            values = values.drop_duplicates(PRINTED, keep="last")
        rows = rows.merge(values, on=PRINTED, how=how)
        return rows.assign(
            dataset=rows["dataset"].fillna(rows["printed_dataset"]),
            scenario=rows["scenario"].fillna(rows["printed_scenario"]),
        )


@dataclass(frozen=True, eq=False)
class ClientMeans(DataTable):
    """Data of a ``family``, graphs or images, whole and in ``settings``, with their data set's own partition
    seed and, without a ``split``, its own split; without settings, in all of its scenarios with so many
    ``clients``. Where the papers' own clients are not at hand, drawn ones stand in for them.

    Counts and coefficients are means over clients, ``heterogeneity`` is a median over pairs, ``fewest`` and
    ``most`` are images of one client; ``edges`` are counted in both directions.
    """

    settings: tuple[tuple[str, int], ...] = ()
    clients: int = 0
    family: Family = "graph"
    split: Split | None = None

    def at(self, scenario: str | None, clients: int | None) -> Self:
        """The settings with this scenario or this number of clients in place of theirs."""
        own = self.settings or ([(scenario, self.clients)] if scenario else [])
        settings = dict.fromkeys((scenario or name, clients or count) for name, count in own)
        return replace(self, settings=tuple(settings), clients=clients or self.clients)

    def applies(self, data: Data) -> bool:
        """All images, or graphs without hyperedges."""
        if self.family == "images":
            return isinstance(data, Images)
        return isinstance(data, Graph) and data.hyperedges is None

    def statistics(self, prepared_data: Prepared, sources: Sources) -> Iterator[Measured]:
        """All of the data set that is here, then the settings."""
        kind, data = prepared_data.dataset, prepared_data.data
        values_by_setting: dict[tuple[str, int], Mapping[str, float | None]] = {
            WHOLE: _whole_counts(prepared_data)
        }
        statistics_of = graph_statistics if isinstance(data, Graph) else image_statistics
        for scenario, clients in self.settings or [(name, self.clients) for name in kind.scenarios]:
            split = self.split or kind.protocol.split
            if not (isinstance(data, Graph) and (scenario, clients, split) in data.published):
                scenario = self.scenarios.get(scenario, scenario)
            federation = federate(prepared_data, scenario, clients, kind.protocol.partition_seed, split)
            values_by_setting[scenario, clients] = statistics_of(federation)
        for (scenario, clients), values in values_by_setting.items():
            for quantity in QUANTITIES[self.family]:
                yield scenario, clients, quantity, values.get(quantity), None


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
        if not hasattr(dataset_object, "structure"):
            raise
        graph: Graph = dataset_object.structure(sources)
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
        title = f"{prepared_data.dataset.title} ({dataset})"
        for description, folder in descriptions.items():
            if description.applies(prepared_data.data):
                rows = description.statistics(prepared_data, sources)
                measured = pd.DataFrame(rows, columns=[*COLUMNS[1:5], "deviation"]).assign(dataset=dataset)
                values = published_statistics(description.paper, folder)
                statistics = description.beside(measured, values).assign(paper=description.paper)
                remarks = tuple(description.remarks(prepared_data.dataset.family))
                tables.append(DatasetTable(dataset, title, statistics[COLUMNS], remarks))
    except NoDataError as error:
        return [DatasetTable(dataset, missing_reason=f"not at hand: {error}")]
    return tables or [DatasetTable(dataset, missing_reason="no published statistics")]
