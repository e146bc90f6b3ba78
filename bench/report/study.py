"""The seam for studies: a paper's tables, the grids that rebuild them, and how they are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bench.report import charts, views
from bench.report.cells import Board, Selection, board
from bench.report.figures import Figure
from bench.report.published import Published, published
from bench.report.results import Average, Column, Results
from bench.report.table import Document


@dataclass(frozen=True)
class Row:
    """A row of a table.

    ``reads`` names the method whose runs the row shows, where that is not ``method`` itself;
    ``stage`` fixes the stage of the primary comparison for this row; ``published`` is the method's
    name in the published numbers where that differs; ``ranked`` False keeps a reference that is
    no competitor out of best and second best.
    """

    method: str
    title: str
    reads: str = ""
    stage: str = ""
    published: str = ""
    ranked: bool = True

    @property
    def runs(self) -> str:
        """The method whose runs the row shows."""
        return self.reads or self.method

    @property
    def published_name(self) -> str:
        """The method's name in the published numbers."""
        return self.published or self.method


@dataclass(frozen=True)
class Reading:
    """Which of a run's numbers is read: a stage and a selection rule."""

    stage: str
    rule: str


@dataclass(frozen=True)
class Target:
    """Published numbers that a table is set beside: a table of a paper, and its name here."""

    label: str
    paper: str
    table: str


@dataclass(frozen=True)
class PaperTable:
    """A table of the study: file name, title, published numbers (the first is the main one), columns."""

    name: str
    title: str
    targets: tuple[Target, ...]
    columns: tuple[Column, ...]


class Study:
    """A paper's experiments, measured beside published.

    A subclass with a ``name`` of its own in ``reports/`` is found by the registry. ``primary`` is
    the comparison that verdicts rest on, fixed before looking at numbers; ``readings`` are shown
    beside it. ``average`` says how clients are averaged. ``baseline`` is the method that clients
    would use alone. ``datasets`` and ``scenarios`` map the suite's names to the published ones.
    ``remarks`` go into every caption.
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
    datasets: ClassVar[Mapping[str, str]] = {}
    scenarios: ClassVar[Mapping[str, str]] = {}
    titles: ClassVar[Mapping[str, str]] = {}
    remarks: ClassVar[tuple[str, ...]] = ()

    def target(self, source: Target, column: Column, row: Row) -> Published | None:
        """The published value of a cell, None where the paper has none."""
        key = (
            self.datasets.get(column.dataset, column.dataset),
            self.scenarios.get(column.scenario, column.scenario),
            column.clients,
            row.published_name,
        )
        for value in published(source.paper):
            if value.table == source.table and value.metric == "accuracy" and not value.setting:
                if (value.dataset, value.scenario, value.clients, value.method) == key:
                    return value
        return None

    def barred(self, target: Published) -> str:
        """Why a published value is no target; empty where it is one."""
        return ""

    def paper_protocol(self, paper: str, column: Column, row: Row) -> Mapping[str, Any]:
        """Settings that the paper states; a run with others is not comparable."""
        return {}

    def title_of(self, name: str) -> str:
        """A data set's or method's name as tables print it."""
        return self.titles.get(name, name)

    def board(self, table: PaperTable, results: Results, selection: Selection) -> Board:
        """The cells of a table."""
        return board(self, table, results, selection)

    def documents(self, results: Results, selection: Selection) -> list[Document]:
        """The study's tables, one document for each table of the paper with a column selected."""
        boards = [self.board(table, results, selection) for table in self.tables]
        return [views.document(self, each, results) for each in boards if each.columns and each.rows]

    def figures(self, results: Results, selection: Selection) -> list[Figure]:
        """The study's figures: convergence and clients, for each table with runs."""
        boards = [self.board(table, results, selection) for table in self.tables]
        return [figure for each in boards for figure in charts.figures(self, each, results)]
