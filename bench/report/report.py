"""From a database to a folder of tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.errors import RequestError, unknown
from bench.grids import load_grid
from bench.report import figures, page, render, tables
from bench.report import frame as frames
from bench.report import statistic as statistics_files
from bench.report.cells import Cells, Selection
from bench.report.charts import every as charts
from bench.report.claim_views import claims
from bench.report.collect import selected
from bench.report.experiment import Plan
from bench.report.planned import Usual, usual
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
    request: Request, studies: Sequence[Study], results: Results, asked_cells: Usual, plans: Plans
) -> Selection:
    """The request as a selection; ``asked_cells`` are those of the grid asked for, if one is.

    Raises:
        RequestError: a name or number of clients that occurs in no study and no run, or a
            combination that no table has.
    """
    chosen = [plan for study in studies for plan in plans[study.name]]
    columns = {column for study in studies for column in study.columns}
    columns |= {column for plan in chosen for column in plan.columns}
    everywhere = columns | results.columns
    methods = {line.method for study in studies for line in study.lines} | set(results.runs["method"])
    methods |= {line.method for plan in chosen for line in plan.lines}
    _known("dataset", request.datasets, {column.dataset for column in everywhere})
    _known("scenario", request.scenarios, {column.scenario for column in everywhere})
    _known("number of clients", map(str, request.clients), {str(column.clients) for column in everywhere})
    _known("method", request.methods, methods)
    in_grid = bool(asked_cells)
    asked = request.methods or ({method for _, method in asked_cells} if in_grid else ())
    readers = {line.method for study in studies for line in study.lines if line.reads and line.runs in asked}
    wanted = set(asked) if request.methods else {*asked, *readers}
    selection = Selection(
        datasets=frozenset(request.datasets) or None,
        scenarios=frozenset(request.scenarios) or None,
        clients=frozenset(request.clients) or None,
        methods=frozenset(wanted) or None,
        columns=frozenset(column for column, _ in asked_cells) if in_grid else None,
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
    return any(map(wanted, study.columns))


def _elsewhere(results: Results, plans: Plans) -> tuple[str, ...]:
    """Columns with runs that no table of any study has."""
    shown: set[Column] = {column for each in plans.values() for plan in each for column in plan.columns}
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


def _usual(request: Request, studies: Iterable[Study]) -> Usual:
    """The usual settings of every cell: those of the studies' grids, or of another grid asked for.

    Where a study's grid is asked for, its seeds are the planned ones of its cells.
    """
    grids = [grid for study in studies for grid in study.grids]
    if request.grid is None:
        return usual(grids)
    asked = usual([request.grid])
    if request.grid not in grids:
        return asked
    own = usual(grids)
    return own | {key: cell for key, cell in asked.items() if cell.settings == own[key].settings}


def _statistics(
    study: Study, experiments: Sequence[Cells], results: Results, selection: Selection
) -> list[Statistic]:
    """Spread of every main table, ranking of the methods, what tuning changes, how much of the papers comes
    out, and which claims hold.

    ``experiments`` are all those selected, run or not. Nothing where no methods are compared.
    """
    main = [cells for cells in experiments if cells.experiment.main]
    competing = [cells for cells in experiments if cells.experiment.competes]
    if not competing:
        return []
    every = [
        *(spread(table, results) for table in main),
        ranking(study, competing, results, selection),
        tuning(study, main, results, selection),
        reproduction(study, experiments, results, selection),
        *(claims(study, listed, experiments, results) for listed in study.claims),
    ]
    return [statistic for statistic in every if statistic is not None]


def _part(
    study: Study, experiments: Iterable[Cells], statistics: Iterable[Statistic], results: Results
) -> page.Part:
    """A study's documents and figures: main tables, experiments, statistics."""
    return page.Part(
        study.title,
        [
            *(tables.document(each, results) for each in experiments),
            *(statistic.document for statistic in statistics),
        ],
        [
            *(figure for each in experiments for figure in charts.figures(each, results)),
            *(figure for statistic in statistics for figure in statistic.figures),
        ],
    )


def compose(
    source: Source, request: Request, studies: dict[str, type[Study]], settings: Usual | None = None
) -> Report:
    """The report on a database, of which nothing is written yet. ``settings`` replace what the grids plan as
    the usual settings of every cell.

    Raises:
        RequestError: an empty database, an unknown name, or filters that leave nothing.
    """
    chosen = choose(request, studies)
    every = {name: [Plan(each, study.lines) for each in study.experiments] for name, study in studies.items()}
    asked = _experiments(request, chosen, every)
    settings = settings or ({} if asked else _usual(request, chosen))
    apart = {digest for each in every.values() for plan in each for digest in plan.hashes}
    results = Results(source, settings, apart, Searches(configurations()))
    if results.runs.empty:
        raise RequestError("the database has no runs yet: run 'bench sweep --grid quickstart' first")
    plans = {
        name: [
            plan for plan in each if plan in asked or not request.grid or (plan.experiment.main and not asked)
        ]
        for name, each in every.items()
    }
    wanted = {} if asked or not request.grid else usual([request.grid])
    selection = select(request, chosen, results, wanted, plans)
    shown = [
        study for study in chosen if request.studies or asked or _has(study, results.columns.__contains__)
    ] or chosen
    parts, records, unrun = [], [], []
    for study in shown:
        experiments = selected(study, plans[study.name], results, selection)
        with_runs = [each for each in experiments if asked or each.experiment.main or each.ran]
        unrun += [f"{study.name} {each.experiment.name}" for each in experiments if each not in with_runs]
        statistics = _statistics(study, experiments, results, selection)
        parts.append(_part(study, with_runs, statistics, results))
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
        elsewhere=_elsewhere(results, every),
    )


def write(report: Report, out: Path, workers: int = 1) -> Report:
    """Write a report into a folder; unchanged results give byte-identical files. ``workers`` draw figures.

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
            for path in _save(part, records, out, workers)
        ]
        paths.append(out / "cells.csv")
        frames.write(paths[-1], frames.frame(cell for each in report.documents for cell in each.primary))
        paths.append(page.save([part for part in report.parts if part.documents], out))
    except OSError as error:
        raise RequestError(f"--out {out}: cannot write there: {error.strerror or error}") from None
    return replace(report, paths=tuple(paths))


def _save(part: page.Part, records: Sequence[Records], out: Path, workers: int) -> list[Path]:
    paths = []
    for document in part.documents:
        own = [figure for figure in part.figures if figure.document == document.name]
        paths += render.save(document, own, out)
    paths += figures.save_all(part.figures, out, workers)
    return [*paths, *statistics_files.save(records, out)]


def build(
    source: Source,
    request: Request,
    studies: dict[str, type[Study]],
    out: Path,
    settings: Usual | None = None,
) -> Report:
    """``compose`` and ``write``: nothing is written if the request is wrong."""
    return write(compose(source, request, studies, settings), out)
