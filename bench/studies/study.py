"""The base class of studies: a paper's tables, the grids that rebuild them, and how they are compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.grids.grid import Line
from bench.registry import Kind
from bench.studies.claims import Claims
from bench.studies.experiment import Experiment, read_study
from bench.studies.measures import TEST, Measure, accuracy_under
from bench.studies.published import FOLDER, Published, PublishedRuns
from bench.studies.settings import Average, Column, Reading, Settings, difference_text


class Study:
    """A paper's experiments, measured beside published.

    A subclass with a ``name`` of its own in ``reports/`` is found by the registry. With ``folder=`` it has
    the attributes in that folder's ``study.toml``; ``measures=`` are the study's own.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    experiments: ClassVar[tuple[Experiment, ...]]
    lines: ClassVar[tuple[Line, ...]]  #: rows of main tables; published numbers have their methods' names
    primary: ClassVar[Reading]  #: the reading for verdicts, fixed before looking at numbers
    readings: ClassVar[tuple[Reading, ...]] = ()  #: shown in main tables in addition to ``primary``
    average: ClassVar[Average] = "clients"  #: how clients are averaged
    grids: ClassVar[tuple[str, ...]]  #: grids that plan the usual settings of the main tables' cells
    split_grids: ClassVar[tuple[str, ...]] = ()  #: grids that draw only the split, on the papers' parts
    baseline: ClassVar[str] = "local"  #: the method that clients would use alone
    control: ClassVar[str] = "majority"  #: the method that learns nothing
    references: ClassVar[tuple[str, ...]] = ("majority",)  #: methods that do not compete
    proposed: ClassVar[str] = ""  #: the paper's own method, which figures show in a colour of its own
    margin: ClassVar[float] = 2.0  #: difference in points at which means are still equivalent
    datasets: ClassVar[Mapping[str, str]] = {}  #: names of data sets in the published numbers
    scenarios: ClassVar[Mapping[str, str]] = {}  #: names of scenarios in the published numbers
    titles: ClassVar[Mapping[str, str]] = {}  #: titles of data sets and methods
    paper_titles: ClassVar[Mapping[str, str]] = {}
    remarks: ClassVar[tuple[str, ...]] = ()  #: fine print of all main tables
    claims: ClassVar[tuple[Claims, ...]] = ()  #: lists of claims that the paper makes in words
    published: ClassVar[Path] = FOLDER  #: folder with the papers' numbers, ``PAPER.csv`` each
    shared_protocol: ClassVar[bool] = False  #: most papers use these clients; its boards come first

    def __init_subclass__(cls, folder: Traversable | None = None, measures: Iterable[Measure] = ()) -> None:
        super().__init_subclass__()
        if folder:
            for name, value in read_study(folder, measures).items():
                setattr(cls, name, value)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures of main tables: test accuracy under ``primary``, and under the other ``readings``."""
        return (TEST, *map(accuracy_under, self.readings))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the tables that compare methods."""
        return tuple(column for table in self.experiments if table.competes for column in table.columns)

    @property
    def pooled_grids(self) -> tuple[str, ...]:
        """Grids whose cells give the spread between partitions: ``grids``, else grids of ranked tables."""
        return self.grids or tuple(table.grid for table in self.experiments if table.ranked)

    @property
    def papers(self) -> tuple[str, ...]:
        """The papers whose tables are compared with the study's cells."""
        comparisons = [targets for table in self.experiments for targets in table.comparisons.values()]
        return tuple(dict.fromkeys(paper for targets in comparisons for paper, _ in targets))

    def row(self, line: Line) -> Line:
        """Return the main tables' line of the method; it has the method's name in the published numbers."""
        return next((row for row in self.lines if row.method == line.method), line)

    def printed_column(self, column: Column) -> tuple[str, str, int | None]:
        """Data set, scenario and number of clients of a column in the published numbers."""
        dataset = self.datasets.get(column.dataset, column.dataset)
        return dataset, self.scenarios.get(column.scenario, column.scenario), column.clients

    def barred(self, target: Published, column: Column, settings: Settings) -> str:
        """Return why a published value is no target for runs with these settings; empty if it is one."""
        return ""

    def published_runs(self, target: Published, column: Column) -> PublishedRuns:
        """Return the runs behind a published value. Default: one run; the deviation is of single runs."""
        return PublishedRuns(1)

    def paper_protocol(self, target: Published, column: Column) -> Mapping[str, Any]:
        """Return the settings stated for a published value. A run with other settings is not comparable."""
        return {}

    @cached_property
    def _titles(self) -> dict[str, str]:
        titles = {name: data.title for name, data in DATASETS.all().items()}
        titles |= {name: method.title for name, method in METHODS.all().items()}
        titles |= {line.method: line.title for line in self.lines if line.title}
        return {**titles, **self.titles}

    def title_of(self, name: str) -> str:
        """A data set's or method's name as tables print it."""
        return self._titles.get(name, name)

    def paper_title(self, paper: str) -> str:
        """Return the title of a paper as readers know it."""
        return self.paper_titles.get(paper, paper.replace("_", " "))

    def column_title(self, column: Column) -> str:
        """A column in full: ``Cora, non-overlapping, 10 clients``."""
        plural = "s" if column.clients > 1 else ""
        return f"{self.title_of(column.dataset)}, {column.scenario}, {column.clients} client{plural}"

    def line_title(self, line: Line) -> str:
        """Return a line's title, or else its method's, with the settings that distinguish the line."""
        title = line.title or self.title_of(line.method)
        settings = line.setting if line.title else difference_text(line.settings, {})
        return f"{title} [{settings}]" if settings else title


STUDIES: Kind[Study] = Kind("study", "bench.reports", "bench.studies.study:Study")


def data_study(dataset: str, columns: Iterable[Column], methods: Collection[str]) -> type[Study]:
    """Make a study of a data set that no study has, under the name of the data set. It has one main table
    without published values, with the given columns and one line per method.
    """
    beside, places = {"measured": ()}, tuple(sorted(columns))
    content = {
        "name": dataset,
        "title": DATASETS.all()[dataset].title if dataset in DATASETS.all() else dataset,
        "grids": (),
        "lines": tuple(Line(name, kind.title) for name, kind in METHODS.all().items() if name in methods),
        "experiments": (Experiment("runs", "All methods", beside, main=True, columns=places),),
        "primary": Reading("trained", "best_val"),
        "readings": (Reading("received", "best_val"),),
    }
    return type("DataStudy", (Study,), content)


def with_data_studies(
    studies: Mapping[str, type[Study]], datasets: Iterable[str], runs: pd.DataFrame
) -> dict[str, type[Study]]:
    """Add a study for each data set that has runs and is in no table of the studies."""
    known = {column.dataset for kind in studies.values() for column in kind().columns}
    found = dict(studies)
    for dataset in datasets:
        rows = runs[runs["dataset"] == dataset]
        if dataset not in known and not rows.empty:
            columns = set(map(Column, rows["dataset"], rows["scenario"], rows["clients"]))
            found[dataset] = data_study(dataset, columns, set(rows["method"]))
    return found
