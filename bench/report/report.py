"""From a database to a folder of tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.errors import RequestError, unknown
from bench.grids import load_grid
from bench.report import experiment_figures, experiment_views, figures, page, render, views
from bench.report import statistic as statistics_files
from bench.report.cells import Board, Selection, board
from bench.report.charts import board as charts
from bench.report.expected import Expected, planned
from bench.report.experiment import Plan
from bench.report.outcome import Outcome, outcome
from bench.report.ranking_views import ranking
from bench.report.reproduction import reproduction
from bench.report.results import Results
from bench.report.settings import Column
from bench.report.source import Source
from bench.report.spread import spread
from bench.report.statistic import Records, Statistic
from bench.report.study import Study
from bench.report.table import Document
from bench.report.tuned import Searches
from bench.report.tuning_views import tuning
from bench.tune.apply import configurations


@dataclass(frozen=True)
class Request:
    """What is to be reported; an empty part means everything."""

    studies: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    clients: tuple[int, ...] = ()
    methods: tuple[str, ...] = ()
    grid: str | None = None


@dataclass(frozen=True, eq=False)
class Report:
    """A part for each study, the numbers behind its statistics, and the files once they are written.

    ``unrun`` names studies and experiments left out because nothing of them was run; ``elsewhere``
    describes runs that no study shows.
    """

    parts: tuple[page.Part, ...]
    records: tuple[Sequence[Records], ...]
    unrun: tuple[str, ...]
    elsewhere: tuple[str, ...]
    paths: tuple[Path, ...] = ()

    @property
    def documents(self) -> tuple[Document, ...]:
        """The documents of all studies."""
        return tuple(document for part in self.parts for document in part.documents)

    def document(self, name: str) -> Document:
        """The document of a name.

        Raises:
            RequestError: there is none; the message has the nearest name.
        """
        documents = {each.name: each for each in self.documents}
        if name not in documents:
            raise unknown("table", name, documents)
        return documents[name]


def _known(kind: str, asked: Iterable[str], known: Iterable[str]) -> None:
    names = set(known)
    for name in asked:
        if name not in names:
            raise unknown(kind, name, names)


def choose(request: Request, studies: dict[str, type[Study]]) -> list[Study]:
    """The studies asked for; a grid narrows them to those that it belongs to."""
    _known("study", request.studies, studies)
    names = list(request.studies or studies)
    if request.grid and not request.studies:
        study = load_grid(request.grid).study
        names = [study] if study in studies else names
    return [studies[name]() for name in names]


Plans = dict[str, list[Plan]]
"""Study -> its experiments."""


def select(
    request: Request, studies: Sequence[Study], results: Results, expected: Expected, plans: Plans
) -> Selection:
    """The request as a selection; ``expected`` are the cells of the grid asked for, if one is.

    Raises:
        RequestError: a name or number of clients that occurs in no study and no run, or a
            combination that no table has.
    """
    columns = {column for study in studies for table in study.tables for column in table.columns}
    chosen = [plan for study in studies for plan in plans[study.name]]
    columns |= {column for plan in chosen for column in plan.columns}
    everywhere = columns | results.columns
    methods = {row.method for study in studies for row in study.rows} | set(results.runs["method"])
    methods |= {line.method for plan in chosen for line in plan.lines}
    _known("dataset", request.datasets, {column.dataset for column in everywhere})
    _known("scenario", request.scenarios, {column.scenario for column in everywhere})
    _known("number of clients", map(str, request.clients), {str(column.clients) for column in everywhere})
    _known("method", request.methods, methods)
    in_grid = bool(expected)
    asked = request.methods or ({method for _, method in expected} if in_grid else ())
    readers = {row.method for study in studies for row in study.rows if row.reads and row.runs in asked}
    wanted = set(asked) if request.methods else {*asked, *readers}
    selection = Selection(
        datasets=frozenset(request.datasets) or None,
        scenarios=frozenset(request.scenarios) or None,
        clients=frozenset(request.clients) or None,
        methods=frozenset(wanted) or None,
        columns=frozenset(column for column, _ in expected) if in_grid else None,
    )
    if not any(selection.has_column(column) for column in columns):
        if any(selection.has_column(column) for column in results.columns):
            raise RequestError(
                "these runs are in no table of the studies "
                f"{', '.join(study.name for study in studies)}: 'bench runs list' shows them"
            )
        raise RequestError(
            "no table of the studies "
            f"{', '.join(study.name for study in studies)} has these data sets, scenarios and numbers of "
            "clients together: leave one of the filters away"
        )
    return selection


def _has(study: Study, wanted: Callable[[Column], bool]) -> bool:
    return any(wanted(column) for table in study.tables for column in table.columns)


def _elsewhere(results: Results, studies: Iterable[Study], plans: Plans) -> tuple[str, ...]:
    """Columns with runs that no table of any study has."""
    shown: set[Column] = {column for study in studies for table in study.tables for column in table.columns}
    shown |= {column for each in plans.values() for plan in each for column in plan.columns}
    lines = []
    for column in sorted(results.columns - shown):
        methods = sorted({method for method in results.methods(column) if results.groups(column, method)})
        lines.append(f"{column.dataset} {column.scenario} {column.clients}: {', '.join(methods)}")
    return tuple(lines)


def _experiments(request: Request, studies: Iterable[Study], plans: Plans) -> list[Plan]:
    """The experiments whose grid is asked for by its name."""
    return [
        plan
        for study in studies
        for plan in plans[study.name]
        if request.grid and plan.experiment.grid == request.grid
    ]


def _planned(request: Request, studies: Iterable[Study]) -> Expected:
    """The usual settings of every cell: those of the studies' grids, or of another grid asked for.

    Where a study's grid is asked for, its seeds are the planned ones of its cells.
    """
    grids = [grid for study in studies for grid in study.grids]
    if request.grid is None:
        return planned(grids)
    asked = planned([request.grid])
    if request.grid not in grids:
        return asked
    usual = planned(grids)
    return usual | {key: cell for key, cell in asked.items() if cell.settings == usual[key].settings}


def main_tables(study: Study, results: Results, selection: Selection) -> list[Board]:
    """The selected cells of every main table that has some."""
    every = [board(study, table, results, selection) for table in study.tables]
    return [table for table in every if table.cells]


def experiment_outcomes(
    study: Study, plans: Iterable[Plan], results: Results, selection: Selection
) -> list[Outcome]:
    """The selected part of every experiment that has some."""
    every = [outcome(study, plan, results, selection) for plan in plans]
    return [part for part in every if part.cells]


def _statistics(
    study: Study, tables: list[Board], experiments: list[Outcome], results: Results, selection: Selection
) -> list[Statistic]:
    """Spread of every main table, ranking of the methods, what tuning changes, and how much of the
    papers comes out.

    ``experiments`` are all those selected, run or not. Nothing without a main table.
    """
    if not tables:
        return []
    every = [
        *(spread(study, table, results) for table in tables),
        ranking(study, tables, results, selection),
        tuning(study, tables, results, selection),
        reproduction(study, tables, experiments, results, selection),
    ]
    return [statistic for statistic in every if statistic is not None]


def _part(
    study: Study,
    tables: Iterable[Board],
    experiments: Iterable[Outcome],
    statistics: Iterable[Statistic],
    results: Results,
) -> page.Part:
    """A study's documents and figures: main tables, experiments, statistics."""
    return page.Part(
        study.title,
        [
            *(views.document(study, table, results) for table in tables),
            *(experiment_views.document(study, experiment, results) for experiment in experiments),
            *(statistic.document for statistic in statistics),
        ],
        [
            *(figure for table in tables for figure in charts.figures(study, table, results)),
            *(
                figure
                for experiment in experiments
                for figure in experiment_figures.figures(study, experiment, results)
            ),
            *(figure for statistic in statistics for figure in statistic.figures),
        ],
    )


def compose(
    source: Source, request: Request, studies: dict[str, type[Study]], usual: Expected | None = None
) -> Report:
    """The report on a database, of which nothing is written yet. ``usual`` replaces what the grids plan as
    the usual settings of every cell.

    Raises:
        RequestError: an empty database, an unknown name, or filters that leave nothing.
    """
    chosen = choose(request, studies)
    every = {name: [Plan(each) for each in study.experiments] for name, study in studies.items()}
    asked = _experiments(request, chosen, every)
    expected = usual or ({} if asked else _planned(request, chosen))
    apart = {digest for each in every.values() for plan in each for digest in plan.hashes}
    results = Results(source, expected, apart, Searches(configurations()))
    if results.runs.empty:
        raise RequestError("the database has no runs yet: run 'bench sweep --grid quickstart' first")
    plans = {
        name: [plan for plan in each if plan in asked or not request.grid] for name, each in every.items()
    }
    wanted = {} if asked or not request.grid else planned([request.grid])
    selection = select(request, chosen, results, wanted, plans)
    shown = [
        study for study in chosen if request.studies or asked or _has(study, results.columns.__contains__)
    ] or chosen
    parts, records, unrun = [], [], []
    for study in shown:
        tables = [] if asked else main_tables(study, results, selection)
        experiments = experiment_outcomes(study, plans[study.name], results, selection)
        with_runs = experiments if asked else [each for each in experiments if each.ran]
        unrun += [f"{study.name} {each.experiment.name}" for each in experiments if each not in with_runs]
        statistics = _statistics(study, tables, experiments, results, selection)
        parts.append(_part(study, tables, with_runs, statistics, results))
        records.append([record for each in statistics for record in each.records])
    if not any(part.documents for part in parts):
        raise RequestError(
            "no cell of the studies has all of these names together: leave one of the filters away"
        )
    return Report(
        parts=tuple(parts),
        records=tuple(records),
        unrun=(
            *(study.name for study in chosen if study not in shown and _has(study, selection.has_column)),
            *unrun,
        ),
        elsewhere=_elsewhere(results, [study() for study in studies.values()], every),
    )


def write(report: Report, out: Path) -> Report:
    """Write a report into a folder; unchanged results give byte-identical files.

    Raises:
        RequestError: the folder cannot be written to.
    """
    if out.exists() and not out.is_dir():
        raise RequestError(f"--out {out}: expected a folder, this is a file")
    try:
        out.mkdir(parents=True, exist_ok=True)
        paths = [
            path
            for part, records in zip(report.parts, report.records, strict=True)
            for path in _save(part, records, out)
        ]
        paths.append(out / "cells.csv")
        render.cells_csv(paths[-1], (cell for each in report.documents for cell in each.primary))
        paths.append(page.save([part for part in report.parts if part.documents], out))
    except OSError as error:
        raise RequestError(f"--out {out}: cannot write there: {error.strerror or error}") from None
    return replace(report, paths=tuple(paths))


def _save(part: page.Part, records: Sequence[Records], out: Path) -> list[Path]:
    paths = []
    for document in part.documents:
        own = [figure for figure in part.figures if figure.document == document.name]
        paths += render.save(document, own, out)
    for figure in part.figures:
        paths += figures.save(figure, out)
    return [*paths, *statistics_files.save(records, out)]


def build(
    source: Source,
    request: Request,
    studies: dict[str, type[Study]],
    out: Path,
    usual: Expected | None = None,
) -> Report:
    """``compose`` and ``write``: nothing is written if the request is wrong."""
    return write(compose(source, request, studies, usual), out)
