"""The seam for studies: a paper's tables, the grids that rebuild them, and how they are compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.errors import unknown
from bench.grids.experiment import Line
from bench.grids.grid import Grid
from bench.registry import Kind
from bench.studies.claims import Claim, Claims
from bench.studies.dataset_tables import DataTable
from bench.studies.experiment import Experiment
from bench.studies.measures import TEST, Measure, accuracy_under
from bench.studies.published import FOLDER, Published, PublishedRuns, published
from bench.studies.settings import Average, Column, Reading, Settings, difference_text


class Study:
    """A paper's experiments, measured beside published.

    A subclass with a ``name`` of its own in ``reports/`` is found by the registry. ``primary`` is
    the comparison that verdicts rest on, fixed before looking at numbers; ``readings`` are shown
    beside it in main tables. ``lines`` are those of the main tables; they also say how their methods
    are named, here and in the published numbers. ``grids`` plan the usual settings of their cells,
    ``split_grids`` draws of the split alone on the papers' own parts.

    ``average`` says how clients are averaged. ``baseline`` is the method that clients would use alone;
    ``control`` the one that learns nothing; ``references`` are methods that compete with no other and have no
    rank. ``margin`` is how many points off a mean still counts as the published one. ``datasets`` and
    ``scenarios`` map the suite's names to the published ones, ``paper_titles`` papers to names that readers
    know, ``titles`` data sets and methods to others than their own. ``remarks`` go into every caption.
    ``claims`` are lists of what it says in words. ``data_table`` describes the paper's statistics of its data
    sets. ``proposed`` is the method that the paper proposes: figures show it in a colour of its own.
    ``shared_protocol`` says that most papers of the field report on its clients, so that its boards come
    first. ``published`` is the folder with the papers' numbers, ``PAPER.csv`` each (see
    ``bench.studies.published.COLUMNS``).
    """

    name: ClassVar[str]
    title: ClassVar[str]
    grids: ClassVar[tuple[str, ...]]
    experiments: ClassVar[tuple[Experiment, ...]]
    lines: ClassVar[tuple[Line, ...]]
    primary: ClassVar[Reading]
    readings: ClassVar[tuple[Reading, ...]] = ()
    average: ClassVar[Average] = "clients"
    split_grids: ClassVar[tuple[str, ...]] = ()
    baseline: ClassVar[str] = "local"
    control: ClassVar[str] = "majority"
    margin: ClassVar[float] = 2.0
    references: ClassVar[tuple[str, ...]] = ("majority",)
    datasets: ClassVar[Mapping[str, str]] = {}
    scenarios: ClassVar[Mapping[str, str]] = {}
    titles: ClassVar[Mapping[str, str]] = {}
    paper_titles: ClassVar[Mapping[str, str]] = {}
    remarks: ClassVar[tuple[str, ...]] = ()
    claims: ClassVar[tuple[Claims, ...]] = ()
    data_table: ClassVar[DataTable | None] = None
    published: ClassVar[Path] = FOLDER
    proposed: ClassVar[str] = ""
    shared_protocol: ClassVar[bool] = False

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What main tables measure: test accuracy as ``primary`` says, and by the other readings."""
        return (TEST, *map(accuracy_under, self.readings))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the tables that compare methods."""
        return tuple(column for table in self.experiments if table.competes for column in table.columns)

    @property
    def pooled_grids(self) -> tuple[str, ...]:
        """The grids of the cells over which the spread between partitions is pooled: those that say what is
        usual, else those of the experiments that rank methods.
        """
        return self.grids or tuple(experiment.grid for experiment in self.experiments if experiment.ranked)

    @property
    def papers(self) -> tuple[str, ...]:
        """The papers whose tables its cells are set beside."""
        targets = (
            target
            for table in self.experiments
            for comparison in table.comparisons
            for target in comparison.targets
        )
        return tuple(dict.fromkeys(target.paper for target in targets))

    def row(self, line: Line) -> Line:
        """The main tables' line of a line's method, which knows its name in the published numbers."""
        return next((row for row in self.lines if row.method == line.method), line)

    def printed_column(self, column: Column) -> tuple[str, str, int | None]:
        """Data set, scenario and number of clients of a column in the published numbers."""
        dataset = self.datasets.get(column.dataset, column.dataset)
        return dataset, self.scenarios.get(column.scenario, column.scenario), column.clients

    def barred(self, target: Published, column: Column, settings: Settings) -> str:
        """Why a published value is no target for runs with these settings; empty where it is one."""
        return ""

    def published_runs(self, target: Published, column: Column) -> PublishedRuns:
        """The runs behind a published value. Default: one, whose deviation is that of a single run."""
        return PublishedRuns(1)

    def paper_protocol(self, target: Published, column: Column) -> Mapping[str, Any]:
        """Settings that the paper states for a published value; a run with others is not comparable."""
        return {}

    def title_of(self, name: str) -> str:
        """A data set's or method's name as tables print it: the study's for it, or its own."""
        return self._titles.get(name, name)

    @cached_property
    def _titles(self) -> dict[str, str]:
        titles = {name: data.title for name, data in DATASETS.all().items()}
        titles |= {name: method.title for name, method in METHODS.all().items()}
        titles |= {line.method: line.title for line in self.lines if line.title}
        return {**titles, **self.titles}

    def paper_title(self, paper: str) -> str:
        """A paper as readers know it; it may be called like one of its methods."""
        return self.paper_titles.get(paper, paper.replace("_", " "))

    def column_title(self, column: Column) -> str:
        """A column in full: ``Cora, non-overlapping, 10 clients``."""
        return column.description(self.title_of(column.dataset))

    def line_title(self, line: Line) -> str:
        """A line's name: its title, without one its method's, with the settings that tell it apart."""
        title = line.title or self.title_of(line.method)
        settings = line.setting if line.title else difference_text(line.settings, {})
        return f"{title} [{settings}]" if settings else title


STUDIES: Kind[Study] = Kind("study", "bench.reports", "bench.reports", "bench.studies.study:Study")


def check_study(grid: Grid) -> None:
    """Raises ``RequestError`` if a grid names a study that does not exist: no report would have its runs."""
    if grid.study:
        STUDIES.named(grid.study)


Check = tuple[str, Iterable[str], Collection[str]]
"""Where names stand, the names, and the names that there are."""


def plans_of(studies: Mapping[str, Study | type[Study]]) -> dict[str, tuple[Experiment, ...]]:
    """Every experiment of studies by their names.

    Raises:
        RequestError: a study names a method, published table or measured table that there is not, or a claim
            is about lines that its tables do not have.
    """
    for study in studies.values():
        one = study() if isinstance(study, type) else study
        for where, names, known_names in chain(_methods(one), _targets(one), _claims(one)):
            for name in names:
                if name not in known_names:
                    raise unknown(where, name, known_names)
    return {name: study.experiments for name, study in studies.items()}


def _methods(study: Study) -> Iterator[Check]:
    methods = set(METHODS.all())
    of_lines = methods | {line.method for line in study.lines}
    yield f"method in 'lines' of study {study.name}:", [line.runs for line in study.lines], methods
    for place in ("control", "baseline", "proposed"):
        names = filter(None, [getattr(study, place)])
        yield f"method in '{place}' of study {study.name}:", names, of_lines
    yield f"method in 'references' of study {study.name}:", study.references, of_lines


def _targets(study: Study) -> Iterator[Check]:
    for experiment in study.experiments:
        for comparison in experiment.comparisons:
            for target in comparison.targets:
                tables = {value.table for value in published(target.paper, study.published)}
                place = f"experiment {experiment.name} of study {study.name}"
                yield f"table of {target.paper}.csv in {place}:", [target.table], tables


def _claims(study: Study) -> Iterator[Check]:
    tables = {experiment.name: experiment for experiment in study.experiments}
    for claim in [claim for claims in study.claims for claim in claims.claims]:
        names = (*claim.tables, *claim.reduced)
        yield f"table in the claim '{claim.text}':", names, tables
        for name in names:
            yield f"line of {name} in the claim '{claim.text}':", *_lines(study, claim, tables[name])


def _lines(study: Study, claim: Claim, table: Experiment) -> tuple[list[str], set[str]]:
    """The lines that a claim names, and those of a table: a main table may have one of every method, and of
    settings, in brackets, that are not known yet.
    """
    titles = {study.line_title(line) for line in (study.lines if table.finds else table.all_lines)}
    names = sorted({*claim.first, *claim.second} - titles)
    if table.main:
        titles |= set(map(study.title_of, METHODS.all()))
        names = [name.partition(" [")[0] for name in names]
    return names, titles
