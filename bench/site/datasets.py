"""What a data set's page says: its source, its statistics beside the papers'."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pandas as pd

from bench.dataset import Dataset
from bench.report.dataset_documents import judged, shipped_statistics
from bench.site.boards import dataset_title
from bench.studies.dataset_tables import PRINTED, DatasetTable, published_statistics
from bench.studies.study import Study


class JudgedTable(NamedTuple):
    """What a paper prints of a data set beside what was measured: ``verdicts`` by row of the ``table``."""

    paper_title: str
    table: DatasetTable
    verdicts: Sequence[str]


def judged_tables(name: str, kind: type[Dataset] | None, studies: Sequence[Study]) -> Iterator[JudgedTable]:
    """The statistics that the studies' papers print of a data set, beside those that come with the suite."""
    shipped = shipped_statistics()
    for study in studies:
        description = study.data_table
        if description is None:
            continue
        measured = shipped[(shipped["paper"] == description.paper) & (shipped["dataset"] == name)]
        paper_name = description.names.get(name, name)
        values = published_statistics(description.paper, study.published)
        values = values[values["printed_dataset"] == paper_name]
        if measured.empty and name not in description.names and paper_name in description.names.values():
            continue  # the paper's data set of this name is another one here
        rows = description.beside(measured, values)
        missing = values.merge(rows[PRINTED], on=PRINTED, how="left", indicator=True)
        missing = missing[missing["_merge"] == "left_only"].drop_duplicates(PRINTED, keep="last")
        rows = pd.concat([rows, description.beside(measured[:0], missing.drop(columns="_merge"), "right")])
        rows = rows.dropna(subset=["measured", "published"], how="all")
        if len(rows):
            remarks = tuple(description.remarks(kind.family) if kind else ())
            yield JudgedTable(
                study.paper_title(description.paper),
                DatasetTable(name, dataset_title(name), rows, remarks),
                judged(rows, description.partitions),
            )
