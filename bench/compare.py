"""One's own method against a study's methods: what is to run, and where it then stands."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path

from bench import registry
from bench.errors import RequestError, unknown
from bench.grids import Filters, Planned, expand, load_grid
from bench.report.cells import Selection
from bench.report.expected import Expectation, Expected, planned
from bench.report.ranking import Ranking, rank
from bench.report.results import Results
from bench.report.settings import Column, settings_of
from bench.report.source import Source
from bench.report.standing import Standing, standings
from bench.report.study import Study
from bench.resolve import Overrides


def own_method(file: Path) -> str:
    """The name of the one method that a Python file holds, which this process now knows.

    Raises:
        RequestError: the file cannot be imported, or holds no method or several.
    """
    module = registry.add_plugin(file)
    names = [name for name, kind in registry.methods().items() if inspect.getmodule(kind) is module]
    if len(names) != 1:
        raise RequestError(
            f"{file.name}: expected one class with a name of its own that extends "
            f"bench.engine.method.Method, got {', '.join(names) or 'none'}"
        )
    return names[0]


def find_study(name: str) -> Study:
    """The study of that name; raises ``RequestError`` with the nearest name."""
    studies = registry.studies()
    if name not in studies:
        raise unknown("study", name, studies)
    return studies[name]()


def planned_runs(study: Study, method: str, filters: Filters, overrides: Overrides) -> list[Planned]:
    """The method's runs in the study's first grid with the data set, as far as ``filters`` want them.

    Overrides are for the method's own hyper-parameters: all else is as the other methods have it.

    Raises:
        RequestError: no grid of the study has the data set, or a filter or an override is wrong.
    """
    for key in overrides:
        if not key.startswith("method."):
            raise RequestError(
                f"--set {key}: a comparison keeps the protocol and client model of the other methods; "
                "only method.* can be set"
            )
    for name in study.grids:
        grid = load_grid(name)
        settings = tuple(
            each.model_copy(update={"methods": (method,)})
            for each in grid.settings
            if each.methods is None and set(filters.datasets) & set(each.datasets)
        )
        if settings:
            return expand(grid.model_copy(update={"settings": settings}), filters, overrides)
    known = {column.dataset for table in study.tables for column in table.columns}
    raise unknown(f"data set of {study.name}", " ".join(filters.datasets), known)


def expectations(study: Study, runs: list[Planned]) -> Expected:
    """What a report expects: the study's own cells, and the method's runs in the settings planned here."""
    own = {
        (Column(*each.names[:3]), each.method): Expectation(settings_of(each.spec.tree()))
        for each in runs
        if each.spec
    }
    return {**planned(study.grids), **own}


@dataclass(frozen=True, eq=False)
class Comparison:
    """The ranking of all methods over the tasks, and the method's standing in each."""

    ranking: Ranking
    standings: list[Standing]


def compare(source: Source, study: Study, method: str, runs: list[Planned]) -> Comparison:
    """Where the method stands in the tasks of its runs, given all results.

    Raises:
        RequestError: no run of the method has numbers, or no other method has any in its tasks.
    """
    results = Results(source, expectations(study, runs))
    columns = frozenset(Column(*each.names[:3]) for each in runs)
    methods = frozenset({method, *(row.method for row in study.rows)})
    selection = Selection(columns=columns, methods=methods)
    ranking = rank(study, study.boards(results, selection), results, selection)
    found = standings(study, ranking, method, results) if ranking else []
    if ranking is None or not found:
        raise RequestError(
            f"nothing to compare: {method} or the other methods have no numbers in these cells"
        )
    return Comparison(ranking, found)
