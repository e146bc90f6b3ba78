"""What the site shows of every study, computed by the functions that a report computes it with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from bench.report.cells import Cells, Selection
from bench.report.collect import collect
from bench.report.ranking import Ranking, cell_groups, rank
from bench.report.reproduction import reproduction
from bench.report.results import Results
from bench.report.settings import Column
from bench.report.source import Source
from bench.report.study import Study
from bench.report.table import Table

TRUSTED = ("", "verified")
"""States of a bundle (none: one's own or shipped runs) whose methods take part in a ranking."""


@dataclass(frozen=True, eq=False)
class StudySurvey:
    """A study: its main tables and its experiments with runs, its ranking and its reproduction score.

    ``groups`` are the groups of ties of each task by method. ``guests`` are methods that are no part
    of the suite and take part in the ranking; ``waiting`` those that do not, because none of their
    runs was verified here or some were contradicted.
    """

    study: Study
    experiments: Sequence[Cells]
    ranking: Ranking | None
    score: Table | None
    groups: Mapping[tuple[Column, str], Mapping[str, int]]
    guests: Collection[str]
    waiting: Collection[str]

    @property
    def datasets(self) -> tuple[str, ...]:
        """Data sets of the study's tables and experiments, in their order."""
        columns = [column for cells in self.experiments for column in cells.columns]
        return tuple(dict.fromkeys(column.dataset for column in columns))


@dataclass(frozen=True, eq=False)
class Survey:
    """All studies over one source of results."""

    results: Results
    studies: tuple[StudySurvey, ...]


def survey(source: Source, studies: Mapping[str, type[Study]], suite: Collection[str]) -> Survey:
    """Every study, with or without runs. ``suite`` are the methods that come with the suite.

    Raises:
        RequestError: the source has no runs.
    """
    found = collect(source, [study() for study in studies.values()])
    return Survey(
        found.results, tuple(_study(study, every, found.results, suite) for study, every in found.studies)
    )


def _study(
    study: Study, experiments: Sequence[Cells], results: Results, suite: Collection[str]
) -> StudySurvey:
    everything = Selection()
    tables = [cells for cells in experiments if cells.experiment.competes]
    guests, waiting = _guests(study, tables, suite)
    # A selection by methods only adds them to the competitors here: the tables are made already.
    ranking = rank(study, tables, results, Selection(methods=frozenset(guests)))
    score = reproduction(study, experiments, results, everything)
    return StudySurvey(
        study,
        [cells for cells in experiments if cells.experiment.main or cells.ran],
        ranking,
        score.document.views[0] if score else None,
        {(task.column, task.point): cell_groups(task) for task in ranking.tasks} if ranking else {},
        guests,
        waiting,
    )


def _guests(study: Study, tables: Sequence[Cells], suite: Collection[str]) -> tuple[list[str], list[str]]:
    """Methods beyond the study's rows and the suite: those that compete, and those that do not yet."""
    own = {line.method for line in study.lines} | set(suite)
    trusted: dict[str, bool] = {}
    for table in tables:
        for group in table.groups:
            if group.method not in own:
                states = set(group.runs["bundle_state"])
                trusted[group.method] = trusted.get(group.method, True) and states <= set(TRUSTED)
    return sorted(name for name in trusted if trusted[name]), sorted(n for n in trusted if not trusted[n])
