"""Documents: what a report says of each table of a study's paper, and what all of them come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

import pandas as pd

from bench.figures.panels import Figure
from bench.frames.graded_cells import COLUMNS, DocumentCells, Results, no_rows
from bench.frames.ranking import Ranking
from bench.report.table import Table
from bench.studies.experiment import Experiment
from bench.studies.study import Study

PLACE = ["column_number", "line_number", "line_object", "reads", "point_object", "done_seeds"]
"""Columns of the places frame that the cells of a document have."""


def document_cells(
    study: Study, experiment: Experiment, cells: pd.DataFrame, results: Results
) -> DocumentCells:
    """The cells of an experiment among those of its study.

    To the columns of the cells frame come ``PLACE``, point_number (of the experiment's points),
    is_run_column (something was run on the federation), and what tables call a federation: data_title and
    federation (``10 clients``, with the scenario where several are there).
    """
    cells = cells[cells["document"] == experiment.name]
    cells = cells.join(results.places.set_index("place")[PLACE], on="place")
    federation = cells["clients"].map(lambda count: f"{count} client{'s' if count > 1 else ''}")
    has_scenarios = cells["scenario"].nunique() > 1
    cells = cells.assign(
        point_number=[experiment.points.index(point) for point in cells["point_object"]],
        is_run_column=(cells["runs"] > 0).groupby(cells["column_number"]).transform("any"),
        data_title=cells["dataset"].map(study.title_of),
        federation=cells["scenario"] + ", " + federation if has_scenarios else federation,
    )
    return DocumentCells(study, experiment, cells, results)


@dataclass(frozen=True, eq=False)
class Document:
    """Everything about one table of a study's paper. ``name`` and ``title`` are those that it has in the
    study.

    summary     what there is to see, in a sentence
    cells       rows of the cells frame, under every reading
    fine_print  lines that are folded on the page
    records     the numbers behind the tables of a statistic, by the name of their CSV file
    verdicts    the lines that have verdicts, where methods compete with each other
    """

    study: Study
    name: str
    title: str
    summary: str
    caption: tuple[str, ...]
    views: tuple[Table, ...]
    cells: pd.DataFrame = field(default_factory=lambda: no_rows(COLUMNS))
    is_statistic: bool = True
    notes: tuple[str, ...] = ()
    fine_print: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    records: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    verdicts: Table | None = None

    @property
    def key(self) -> str:
        """Its name among those of all studies: ``fedsheafhn_table1``."""
        return f"{self.study.name}_{self.name}"

    @property
    def full_title(self) -> str:
        """Its title among those of all studies."""
        return f"{self.study.title}: {self.title}"

    @property
    def folder(self) -> PurePosixPath:
        """Where its files lie in the report: ``fedsheafhn/table1``."""
        return PurePosixPath(self.study.name, self.name)

    def stem(self, figure: Figure) -> PurePosixPath:
        """Where a figure's files lie in the report, whose endings it lacks."""
        return self.folder / figure.name.removeprefix(f"{self.key}_")


class Part(NamedTuple):
    """A study in a report. ``runs`` are those behind its documents, ``counts`` has the number of published
    values by paper and verdict, ``ranking`` is None where no two methods can be ranked.
    """

    study: str
    title: str
    runs: pd.DataFrame
    sentences: list[str]
    counts: pd.DataFrame
    ranking: Ranking | None
    documents: list[Document]
