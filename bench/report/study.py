"""The seam for studies: a paper's tables, the grids that rebuild them, and how they are compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from bench.engine.methods import METHODS
from bench.registry import Kind
from bench.report.dataset_tables import DataTable
from bench.report.experiment import Experiment
from bench.report.layout import PaperTable, Reading, Row, Target
from bench.report.published import Key, Published, accuracies
from bench.report.results import Average
from bench.report.settings import Column, Settings


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


STUDIES: Kind[Study] = Kind("study", "bench.reports", "bench.reports", "bench.report.study:Study")
