"""The seam for studies: a paper's tables, the grids that rebuild them, and how they are compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from bench.engine.methods import METHODS
from bench.registry import Kind
from bench.report import experiment_figures, experiment_views, views
from bench.report.cells import Board, Selection, board
from bench.report.charts import board as charts
from bench.report.dataset_tables import DataTable
from bench.report.experiment import Experiment, Plan
from bench.report.figures import Figure
from bench.report.layout import PaperTable, Reading, Row, Target
from bench.report.outcome import Outcome, outcome
from bench.report.published import Key, Published, accuracies
from bench.report.ranking_views import ranking
from bench.report.reproduction import reproduction
from bench.report.results import Average, Results
from bench.report.settings import Column, Settings
from bench.report.spread import spread
from bench.report.statistic import Statistic
from bench.report.table import Document
from bench.report.tuning_views import tuning


class Study:
    """A paper's experiments, measured beside published.

    A subclass with a ``name`` of its own in ``reports/`` is found by the registry. ``primary`` is
    the comparison that verdicts rest on, fixed before looking at numbers; ``readings`` are shown
    beside it. ``average`` says how clients are averaged. ``baseline`` is the method that clients
    would use alone; ``references`` are methods that compete with no other and have no rank.
    ``datasets`` and ``scenarios`` map the suite's names to the published ones. ``remarks`` go into
    every caption, as does ``tuning``: how the methods' settings were found. ``settings`` names
    settings whose lines stand in the main tables. ``experiments`` have grids and documents of
    their own. ``data_table`` describes the paper's statistics of its data sets.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    grids: ClassVar[tuple[str, ...]]
    tables: ClassVar[tuple[PaperTable, ...]]
    rows: ClassVar[tuple[Row, ...]]
    primary: ClassVar[Reading]
    readings: ClassVar[tuple[Reading, ...]] = ()
    average: ClassVar[Average] = "clients"
    baseline: ClassVar[str] = "local"
    references: ClassVar[tuple[str, ...]] = ("majority",)
    datasets: ClassVar[Mapping[str, str]] = {}
    scenarios: ClassVar[Mapping[str, str]] = {}
    titles: ClassVar[Mapping[str, str]] = {}
    remarks: ClassVar[tuple[str, ...]] = ()
    tuning: ClassVar[str] = "none (default settings, not tuned)"
    settings: ClassVar[Mapping[str, str]] = {}
    experiments: ClassVar[tuple[Experiment, ...]] = ()
    data_table: ClassVar[DataTable | None] = None

    def key(self, source: Target, column: Column, row: Row) -> Key:
        """The name of a cell in the published numbers."""
        return Key(
            source.table,
            self.datasets.get(column.dataset, column.dataset),
            self.scenarios.get(column.scenario, column.scenario),
            column.clients,
            row.published_name,
        )

    def target(self, source: Target, column: Column, row: Row) -> Published | None:
        """The published value of a cell, None where the paper has none."""
        return accuracies(source.paper).get(self.key(source, column, row))

    def barred(self, target: Published, column: Column, settings: Settings) -> str:
        """Why a published value is no target for runs with these settings; empty where it is one."""
        return ""

    def paper_protocol(self, target: Published, column: Column) -> Mapping[str, Any]:
        """Settings that the paper states for a published value; a run with others is not comparable."""
        return {}

    def title_of(self, name: str) -> str:
        """A data set's or method's name as tables print it."""
        titles = {**{row.method: row.title for row in self.rows}, **self.titles}
        if name not in titles and name in METHODS.all():
            return METHODS.named(name).title
        return titles.get(name, name)

    def boards(self, results: Results, selection: Selection) -> list[Board]:
        """The selected cells of every table that has some."""
        made = [board(self, table, results, selection) for table in self.tables]
        return [each for each in made if each.cells]

    def documents(self, boards: list[Board], results: Results) -> list[Document]:
        """The study's tables, one document a board."""
        return [views.document(self, each, results) for each in boards]

    def figures(self, boards: list[Board], results: Results) -> list[Figure]:
        """The figures of every board with runs."""
        return [figure for each in boards for figure in charts.figures(self, each, results)]

    def outcomes(self, plans: Iterable[Plan], results: Results, selection: Selection) -> list[Outcome]:
        """The selected part of every experiment that has some."""
        made = [outcome(self, plan, results, selection) for plan in plans]
        return [each for each in made if each.cells]

    def experiment_documents(self, outcomes: Iterable[Outcome], results: Results) -> list[Document]:
        """One document an experiment."""
        return [experiment_views.document(self, each, results) for each in outcomes]

    def experiment_figures(self, outcomes: Iterable[Outcome], results: Results) -> list[Figure]:
        """The experiments' figures."""
        return [figure for each in outcomes for figure in experiment_figures.figures(self, each, results)]

    def statistics(
        self, boards: list[Board], outcomes: list[Outcome], results: Results, selection: Selection
    ) -> list[Statistic]:
        """Spread of every board, ranking of the methods, what tuning changes, and how much of the papers
        comes out.

        ``outcomes`` are all the selected experiments, run or not. Nothing without a board.
        """
        if not boards:
            return []
        made = [
            *(spread(self, each, results) for each in boards),
            ranking(self, boards, results, selection),
            tuning(self, boards, results, selection),
            reproduction(self, boards, outcomes, results, selection),
        ]
        return [each for each in made if each is not None]


STUDIES: Kind[Study] = Kind("study", "bench.reports", "bench.reports", "bench.report.study:Study")
