"""What a data set's page says: its source, its statistics beside the papers', who holds which labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.dataset import DATASETS, Dataset
from bench.federation.build import federate
from bench.federation.prepared import prepare
from bench.federation.statistics import class_counts
from bench.leaderboard.boards import StudyBoards, dataset_title
from bench.report.dataset_documents import judge_statistic, shipped_statistics
from bench.studies.dataset_tables import DatasetTable, Statistic, published_statistics
from bench.studies.results import Results
from bench.studies.settings import Column, is_special
from bench.studies.source import Source
from bench.studies.study import Study

MOST_CLIENTS = 100
"""Clients of a federation whose labels are drawn."""


@dataclass(frozen=True, eq=False)
class Labels:
    """How many items of every class each client holds: ``counts`` ``[clients, classes]``. With a ``run`` (a
    spec hash) they are the test items alone, as that run counted them.
    """

    column: Column
    counts: NDArray[np.int64]
    run: str = ""

    @property
    def most_items(self) -> int:
        """Items of the largest client."""
        return int(self.counts.sum(axis=1).max())

    @property
    def shares(self) -> list[list[tuple[int, float, float]]]:
        """For each client the classes that it holds, with start and width of their bars in percent of the
        largest client.
        """
        ends = 100 * self.counts.cumsum(axis=1) / self.most_items
        widths = 100 * self.counts / self.most_items
        return [
            [
                (int(label), float(end[label] - width[label]), float(width[label]))
                for label in np.flatnonzero(width)
            ]
            for end, width in zip(ends, widths, strict=True)
        ]


class JudgedTable(NamedTuple):
    """What a paper prints of a data set beside what was measured: ``verdicts`` by row of the ``table``."""

    paper_title: str
    table: DatasetTable
    verdicts: Sequence[str]


@dataclass(frozen=True, eq=False)
class DatasetDescription:
    """A data set. ``unknown_labels`` are the columns that nothing here has counts by class of."""

    name: str
    title: str
    kind: type[Dataset] | None
    tables: Sequence[JudgedTable]
    labels: Sequence[Labels]
    unknown_labels: Sequence[Column]


def about(name: str, studies: Sequence[StudyBoards], source: Source) -> DatasetDescription:
    """A data set's description, from what comes with the suite and from stored runs: a site does not hang on
    the raw files of the machine that builds it.
    """
    kind = DATASETS.all().get(name)
    columns = {column for boards in studies for cells in boards.experiments for column in cells.columns}
    dataset_columns = [
        column for column in sorted(columns) if column.dataset == name and 1 < column.clients <= MOST_CLIENTS
    ]
    known_labels = {
        column: labels
        for column in dataset_columns
        if (
            labels := _all_labels(kind, column)
            if kind and kind.embedded
            else _test_labels(studies[0].results, source, column)
        )
    }
    return DatasetDescription(
        name,
        dataset_title(name),
        kind,
        [table for boards in studies for table in _judged_tables(name, kind, boards.study)],
        list(known_labels.values()),
        [column for column in dataset_columns if column not in known_labels],
    )


def _all_labels(kind: type[Dataset], column: Column) -> Labels:
    """The labels of the clients under the data set's own partition seed and split."""
    prepared_data = prepare(column.dataset, roots=(), download=False)
    seed, split = kind.protocol.partition_seed, kind.protocol.split
    clients = federate(prepared_data, column.scenario, column.clients, seed, split).clients
    return Labels(column, class_counts([client.labels for client in clients], prepared_data.data.classes))


def _test_labels(results: Results, source: Source, column: Column) -> Labels | None:
    """The labels of the clients' test items, by the first run that keeps its counts by class."""
    runs = results.runs
    runs = runs[(runs["column"] == column) & (runs["state"] == "done")]
    runs = runs[~runs["settings"].map(is_special).astype(bool)]
    confusions = source.confusions(runs["id"])
    if not confusions:
        return None
    key = min(confusions)
    run = runs.loc[runs["id"] == key[0], "spec_hash"].item()
    return Labels(column, confusions[key].sum(axis=2, dtype=np.int64), run)


def _judged_tables(name: str, kind: type[Dataset] | None, study: Study) -> Iterator[JudgedTable]:
    """The statistics that a study's paper prints of a data set, and those that come with the suite."""
    description = study.data_table
    if description is None:
        return
    paper, paper_name = description.paper, description.names.get(name, name)
    rows = {
        (row.scenario, row.clients, row.quantity): row
        for row in shipped_statistics()
        if (row.paper, row.dataset) == (paper, name)
    }
    is_meant = rows or name in description.names or paper_name not in description.names.values()
    published_values = published_statistics(paper, study.published)
    for (dataset, scenario, clients, quantity), value in published_values.items():
        if dataset == paper_name and is_meant:
            missing_row = Statistic(name, scenario, clients, quantity, None, value, paper=paper)
            rows.setdefault((scenario, clients, quantity), missing_row)
    known_rows = [row for row in rows.values() if row.measured is not None or row.published is not None]
    if known_rows:
        remarks = description.remarks(kind.family) if kind else ()
        yield JudgedTable(
            study.paper_title(paper),
            DatasetTable(name, dataset_title(name), tuple(known_rows), tuple(remarks)),
            [judge_statistic(row, description.partitions) for row in known_rows],
        )
