"""The seam for studies: a paper's tables, the grids that rebuild them, and how they are compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.errors import unknown
from bench.grids.grid import Line
from bench.registry import Kind
from bench.studies.claims import Claims
from bench.studies.dataset_tables import DataTable
from bench.studies.experiment import Experiment
from bench.studies.measures import TEST, Measure, accuracy_under
from bench.studies.published import FOLDER, Published, PublishedRuns, published
from bench.studies.settings import Average, Column, Reading, Settings, difference_text


class Study:
    """A paper's experiments, measured beside published.

    A subclass with a ``name`` of its own in ``reports/`` is found by the registry.

    - ``grids`` plan the usual settings of the main tables' cells, ``split_grids`` draws of the split alone on
      the papers' own parts.
    - ``lines`` are rows of the main tables; they name their methods, here and in the published numbers.
    - ``primary`` is the reading that verdicts rest on, fixed before looking at numbers; ``readings`` are
      shown beside it in main tables.
    - ``average`` says how clients are averaged.
    - ``baseline`` is the method that clients would use alone, ``control`` the one that learns nothing;
      ``references`` compete with no other method and have no rank.
    - ``proposed`` is the method that the paper proposes: figures show it in a colour of its own.
    - ``margin`` is how many points off a mean still counts as the published one.
    - ``datasets`` and ``scenarios`` map the suite's names to the published ones, ``titles`` data sets and
      methods, ``paper_titles`` papers to names that readers know.
    - ``remarks`` go into every caption, ``claims`` are lists of what the paper says in words.
    - ``data_table`` describes the paper's statistics of its data sets.
    - ``shared_protocol``: most papers of the field report on its clients, so its boards come first.
    - ``published`` is the folder with the papers' numbers, ``PAPER.csv`` each, of the columns
      ``bench.studies.published.COLUMNS``.
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
        return tuple(dict.fromkeys(target.paper for table in self.experiments for target in table.targets))

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
        plural = "s" if column.clients > 1 else ""
        return f"{self.title_of(column.dataset)}, {column.scenario}, {column.clients} client{plural}"

    def line_title(self, line: Line) -> str:
        """A line's name: its title, without one its method's, with the settings that tell it apart."""
        title = line.title or self.title_of(line.method)
        settings = line.setting if line.title else difference_text(line.settings, {})
        return f"{title} [{settings}]" if settings else title


STUDIES: Kind[Study] = Kind("study", "bench.reports", "bench.studies.study:Study")


def plans_of(studies: Mapping[str, Study | type[Study]]) -> dict[str, tuple[Experiment, ...]]:
    """Every experiment of studies by their names.

    Raises:
        RequestError: a study names a method, a published table, an experiment or a line that there is not.
    """
    for study in studies.values():
        for where, names, known_names in _named(study() if isinstance(study, type) else study):
            for name in names:
                if name not in known_names:
                    raise unknown(f"{where} of study {study.name}:", name, known_names)
    return {name: study.experiments for name, study in studies.items()}


def _named(study: Study) -> Iterator[tuple[str, Iterable[str], Collection[str]]]:
    """What a study names: where, the names, and the names that there are."""
    methods = set(METHODS.all())
    yield "method in 'lines'", [line.runs for line in study.lines], methods
    named = [study.baseline, study.control, *study.references, *filter(None, [study.proposed])]
    yield (
        "a reference, baseline, control or proposed method",
        named,
        methods | {line.method for line in study.lines},
    )
    tables = {table.name: table for table in study.experiments}
    titles = set(map(study.title_of, methods))
    for table in tables.values():
        for target in table.targets:
            printed = {value.table for value in published(target.paper, study.published)}
            yield f"table of {target.paper} in experiment {table.name}", [target.table], printed
        titles |= {study.line_title(line) for line in (study.lines if table.finds else table.all_lines)}
    for claim in (claim for claims in study.claims for claim in claims.claims):
        yield f"table in the claim '{claim.text}'", (*claim.tables, *claim.reduced), tables
        lines = {*claim.first, *claim.second} - titles
        # A main table may have lines of settings, in brackets, that are not known yet.
        yield f"line in the claim '{claim.text}'", [line.partition(" [")[0] for line in sorted(lines)], titles
