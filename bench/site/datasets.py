"""What a data set's page says: its source, its statistics beside the papers'."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench.dataset import Dataset
from bench.report.dataset_documents import judge_statistic, shipped_statistics
from bench.site.boards import dataset_title
from bench.studies.dataset_tables import DatasetTable, Statistic, published_statistics
from bench.studies.study import Study


class JudgedTable(NamedTuple):
    """What a paper prints of a data set beside what was measured: ``verdicts`` by row of the ``table``."""

    paper_title: str
    table: DatasetTable
    verdicts: Sequence[str]


def judged_tables(name: str, kind: type[Dataset] | None, studies: Sequence[Study]) -> Iterator[JudgedTable]:
    """The statistics that the studies' papers print of a data set, and those that come with the suite: a
    site does not hang on the raw files of the machine that builds it.
    """
    for study in studies:
        description = study.data_table
        if description is None:
            continue
        paper, paper_name = description.paper, description.names.get(name, name)
        rows = {
            (description.scenarios.get(row.scenario, row.scenario), row.clients, row.quantity): row
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
