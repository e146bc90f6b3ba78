"""What a data set's page says: its source, its statistics beside the papers', who holds which labels."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.dataset import DATASETS, Dataset
from bench.federation.build import federate
from bench.federation.prepared import prepare
from bench.leaderboard.boards import StudyBoards
from bench.studies.dataset_tables import DatasetTable, DataTable, dataset_tables, published_statistics
from bench.studies.settings import Column

MOST_CLIENTS = 100
"""Clients of a federation whose labels are drawn."""


@dataclass(frozen=True, eq=False)
class Labels:
    """How many items of every class each client holds: ``counts`` ``[clients, classes]``."""

    column: Column
    counts: NDArray[np.int64]

    @property
    def shares(self) -> list[list[tuple[int, float, float]]]:
        """For each client the classes that it holds, with start and width of their bars in percent of the
        largest client.
        """
        most_items = self.counts.sum(axis=1).max()
        ends = 100 * self.counts.cumsum(axis=1) / most_items
        widths = 100 * self.counts / most_items
        return [
            [
                (int(label), float(end[label] - width[label]), float(width[label]))
                for label in np.flatnonzero(width)
            ]
            for end, width in zip(ends, widths, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class DatasetDescription:
    """A data set. ``tables`` are its statistics by study; ``published_numbers`` are the papers' where
    ours cannot be computed without raw files: a paper, setting, quantity and value each.
    """

    name: str
    title: str
    kind: type[Dataset] | None
    tables: Sequence[DatasetTable] = ()
    published_numbers: Sequence[tuple[str, str, str, float]] = ()
    labels: Sequence[Labels] = ()


def about(name: str, studies: Sequence[StudyBoards]) -> DatasetDescription:
    """A data set's description. What depends on its items is computed for those that come with the suite, so
    that a site does not hang on the files of the machine that builds it.
    """
    kind = DATASETS.all().get(name)
    title = kind.title if kind else name
    data_tables = [boards.study.data_table for boards in studies if boards.study.data_table]
    if kind is None or not kind.embedded:
        return DatasetDescription(
            name, title, kind, published_numbers=list(_published_numbers(name, data_tables))
        )
    columns = {column for boards in studies for cells in boards.experiments for column in cells.columns}
    dataset_columns = [column for column in sorted(columns) if column.dataset == name]
    tables = dataset_tables(name, data_tables, roots=())
    return DatasetDescription(
        name,
        title,
        kind,
        tables=[table for table in tables if not table.missing_reason],
        labels=[labels(kind, column) for column in dataset_columns if column.clients <= MOST_CLIENTS],
    )


def labels(kind: type[Dataset], column: Column) -> Labels:
    """The labels of the clients under the data set's own partition seed and split."""
    prepared_data = prepare(column.dataset, roots=(), download=False)
    seed, split = kind.protocol.partition_seed, kind.protocol.split
    clients = federate(prepared_data, column.scenario, column.clients, seed, split).clients
    counts = [np.bincount(client.labels, minlength=prepared_data.data.classes) for client in clients]
    return Labels(column, np.stack(counts))


def _published_numbers(name: str, tables: Collection[DataTable]) -> Iterator[tuple[str, str, str, float]]:
    for table in tables:
        paper_name = table.names.get(name, name)
        for (dataset, scenario, clients, quantity), value in published_statistics(table.paper).items():
            if dataset == paper_name:
                yield table.paper, f"{scenario} {clients}", quantity.replace("_", " "), value
