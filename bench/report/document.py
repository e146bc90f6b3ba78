"""Documents: what a report says of each table of a study's paper, and what all of them come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import NamedTuple

import pandas as pd

from bench.figures.panels import Figure
from bench.frames.graded_cells import COLUMNS, Results, no_rows
from bench.frames.ranking import Ranking
from bench.report.table import Table
from bench.studies.experiment import Experiment
from bench.studies.measures import Measure
from bench.studies.study import Study

PLACE = ["column_number", "line_number", "line_object", "point_object", "done_seeds"]
"""Columns of the places frame that the cells of a document have."""


@dataclass(frozen=True, eq=False)
class DocumentCells:
    """The cells of an experiment that a report shows, among all ``results``.

    To the columns of the cells frame come ``PLACE``, point_number (of the experiment's points),
    is_run_column (something was run on the federation), and what tables call a federation: data_title and
    federation (``10 clients``, with the scenario where several are there).
    """

    study: Study
    experiment: Experiment
    cells: pd.DataFrame
    results: Results

    @classmethod
    def of(cls, study: Study, experiment: Experiment, cells: pd.DataFrame, results: Results) -> DocumentCells:
        """The cells of an experiment among those of its study."""
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
        return cls(study, experiment, cells, results)

    @cached_property
    def measures(self) -> list[Measure]:
        """What it measures, in the order of the tables."""
        numbers = self.cells.sort_values("position")["measure_number"].unique()
        return [self.results.measures[number] for number in numbers]


@dataclass(frozen=True, eq=False)
class Document:
    """Everything about one table of a study's paper. ``name`` and ``title`` are those that it has in the
    study.

    summary     what there is to see, in a sentence
    views       tables that are written everywhere
    cells       rows of the cells frame, under every reading
    details     further tables, which are folded on the page and stand neither in LaTeX nor in a terminal
    fine_print  lines that are folded on the page
    records     the numbers behind the tables of a statistic, by the name of their CSV file
    """

    study: Study
    name: str
    title: str
    summary: str
    caption: tuple[str, ...]
    views: tuple[Table, ...]
    cells: pd.DataFrame = field(default_factory=lambda: no_rows(COLUMNS))
    is_statistic: bool = True
    details: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    fine_print: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    records: Mapping[str, pd.DataFrame] = field(default_factory=dict)

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


class Score(NamedTuple):
    """How many values the paper of a ``title`` prints, how many were measured, and the numbers of verdicts on
    these, best first.
    """

    title: str
    published: int
    measured: int
    counts: list[tuple[str, int]]


class Part(NamedTuple):
    """A study in a report. ``ranking`` is None where no two methods can be ranked; ``maps`` are the verdicts
    of the documents in which methods compete with each other, by their names.
    """

    study: str
    title: str
    runs: int
    sentences: list[str]
    scores: list[Score]
    ranking: Ranking | None
    maps: dict[str, Table]
    documents: list[Document]


class Report(NamedTuple):
    """A part for each study. ``unrun`` names studies and experiments of which nothing was run; ``elsewhere``
    describes runs that no study shows, ``shipped`` counts those that come with the suite.
    """

    parts: Sequence[Part]
    shipped: int = 0
    unrun: Sequence[str] = ()
    elsewhere: Sequence[str] = ()

    @property
    def documents(self) -> list[Document]:
        """The documents of all studies."""
        return [document for part in self.parts for document in part.documents]
