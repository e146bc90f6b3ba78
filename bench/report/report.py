"""From a database to a folder of tables and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.errors import RequestError, unknown
from bench.grids import load_grid
from bench.metric_names import ACCURACY
from bench.pages.folder import replacement
from bench.report import charts, folder, page, render, tables, terminal
from bench.report import frame as frames
from bench.report.cells import Cells, Selection
from bench.report.claim_views import claims
from bench.report.collect import plans_of, results_of, selected
from bench.report.dataset_documents import dataset_document
from bench.report.drawings import Drawings
from bench.report.experiment import Plan
from bench.report.figures import Figure
from bench.report.metric import TITLES, check_kept
from bench.report.parts import Part, scores, sentences, verdict_counts
from bench.report.planned import Usual, usual
from bench.report.printout import PrintedStudy, Printout
from bench.report.ranking import rank
from bench.report.ranking_views import ranking_document
from bench.report.reproduction import reproduction
from bench.report.request import Request
from bench.report.results import Results
from bench.report.settings import Column
from bench.report.shipped import run_origins
from bench.report.source import OWN, Source
from bench.report.spread import spread
from bench.report.study import Study
from bench.report.table import Document
from bench.report.tuning import tuning


@dataclass(frozen=True, eq=False)
class Report:
    """A part for each study, and what a terminal shows of it."""

    parts: tuple[Part, ...]
    printout: Printout

    @property
    def documents(self) -> tuple[Document, ...]:
        """The documents of all studies."""
        return tuple(document for part in self.parts for document in part.documents)


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
    asked = request.methods or {method for _, method in asked_cells}
    readers = {line.method for study in studies for line in study.lines if line.reads and line.runs in asked}
    wanted = set(asked) if request.methods else {*asked, *readers}
    selection = Selection(
        frozenset(request.datasets),
        frozenset(request.scenarios),
        frozenset(request.clients),
        frozenset(wanted),
        frozenset(column for column, _ in asked_cells),
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


def _part(
    study: Study,
    experiments: Sequence[Cells],
    shown: Sequence[Cells],
    results: Results,
    selection: Selection,
    drawings: Drawings | None,
) -> Part:
    """A study's documents: of the experiments ``shown``, then statistics over all those selected, run or not.
    No statistics where no methods are compared; by another metric than accuracy tables and the ranking
    alone, as nothing is published, claimed or drawn of it.
    """
    by_accuracy = results.metric == ACCURACY
    # Drawings are begun before anything else: what follows takes long enough to draw many.
    documents: list[Document | None] = [
        tables.document(each, results, _figures(each, results, drawings) if by_accuracy else ())
        for each in shown
    ]
    competing = [cells for cells in experiments if cells.experiment.competes]
    ranks = rank(study, competing, results, selection) if competing else None
    ranking = ranking_document(study, ranks, results) if ranks else None
    answers: list[Document | None] = []
    if not by_accuracy:
        documents.append(ranking and replace(ranking, figures=()))
    elif competing:
        main = [cells for cells in experiments if cells.experiment.main]
        answers = [claims(study, listed, experiments, results) for listed in study.claims]
        documents += [
            *(spread(table, results) for table in main),
            ranking,
            tuning(study, main, results, selection),
            reproduction(study, experiments, results, selection),
            *answers,
            dataset_document(study) if selection == Selection() else None,
        ]
    columns = {column for cells in experiments for column in cells.columns}
    lacking = () if by_accuracy else filter(None, [check_kept(results.metric, *results.lacking(columns))])
    every = scores(verdict_counts(study, experiments, selection == Selection()))
    maps = [(each, tables.verdict_map(each)) for each in competing]
    return Part(
        study.name,
        study.title if by_accuracy else f"{study.title}, by {TITLES[results.metric]}",
        (*sentences(study, ranks, every, filter(None, answers)), *lacking),
        every,
        ranks.table if ranks else None,
        {f"{study.name}_{each.experiment.name}": table for each, table in maps if table},
        [document for document in documents if document],
    )


def _figures(cells: Cells, results: Results, drawings: Drawings | None) -> Iterator[Figure]:
    """An experiment's figures, each of which is begun to be drawn."""
    for figure in charts.figures(cells, results):
        if drawings:
            drawings.begin(figure)
        yield figure


def compose(
    source: Source,
    request: Request,
    studies: dict[str, type[Study]],
    settings: Usual | None = None,
    drawings: Drawings | None = None,
) -> Report:
    """The report on a database, of which nothing is written yet. ``settings`` replace what the grids plan as
    the usual settings of every cell; ``drawings`` begin while the rest is computed.

    Raises:
        RequestError: an empty database, an unknown name, or filters that leave nothing.
    """
    chosen = choose(request, studies)
    every = plans_of(studies)
    planned = [plan for study in chosen for plan in every[study.name]]
    asked = [plan for plan in planned if request.grid and plan.experiment.grid == request.grid]
    settings = settings or ({} if asked else _usual(request, chosen))
    results = results_of(source, every, settings, request.metric)
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
    parts, unrun = [], []
    for study in shown:
        experiments = selected(study, plans[study.name], results, selection)
        with_runs = [each for each in experiments if asked or each.experiment.main or each.ran]
        unrun += [f"{study.name} {each.experiment.name}" for each in experiments if each not in with_runs]
        parts.append(_part(study, experiments, with_runs, results, selection, drawings))
    if not any(part.documents for part in parts):
        raise RequestError(
            "no cell of the studies has all of these names together: leave one of the filters away"
        )
    left_out = (study.name for study in chosen if study not in shown and _has(study, selection.has_column))
    with_documents = tuple(part for part in parts if part.documents)
    return Report(with_documents, _printout(with_documents, (*left_out, *unrun), _elsewhere(results, every)))


def _printout(parts: Sequence[Part], unrun: tuple[str, ...], elsewhere: tuple[str, ...]) -> Printout:
    studies = {
        part.study: PrintedStudy(
            part.title,
            len(run_origins(part.documents)),
            part.sentences,
            part.scores,
            {document.name: terminal.printed(document) for document in part.documents},
        )
        for part in parts
    }
    documents = [document for part in parts for document in part.documents]
    shipped = Counter(sorted(origin for origin in run_origins(documents).values() if origin != OWN))
    figures = sum(len(document.figures) for document in documents)
    return Printout(studies, unrun, elsewhere, dict(shipped), figures)


def write(report: Report, out: Path, drawings: Drawings, stamp: str = "") -> None:
    """Put a report in the place of an earlier one; unchanged results give byte-identical files.

    ``stamp`` says what the report was made from (see ``bench.report.folder``).

    Raises:
        RequestError: the folder holds other files than a report's, or cannot be written.
    """
    folder.check(out)
    with replacement(out) as new:
        stems = {}
        for part in report.parts:
            for document in part.documents:
                figures = {figure: part.file(document, figure.name) for figure in document.figures}
                stems.update({figure: new / stem for figure, stem in figures.items()})
                place = new / part.folder(document)
                place.mkdir(parents=True)
                named = {figure: stem.name for figure, stem in figures.items()}
                for kind, text in (("md", render.markdown(document, named)), ("tex", render.latex(document))):
                    (place / f"table.{kind}").write_text(text, encoding="utf-8", newline="\n")
                frames.write(place / "table.csv", frames.frame(document.cells))
                for name, rows in document.records.items():
                    frames.write(place / f"{name}.csv", rows)
        drawings.save(stems)
        frames.write(
            new / "cells.csv", frames.frame(cell for each in report.documents for cell in each.primary)
        )
        page.save(report.parts, new)
        folder.seal(new, stamp, report.printout)


def build(
    source: Source,
    request: Request,
    studies: dict[str, type[Study]],
    out: Path,
    settings: Usual | None = None,
) -> Report:
    """``compose`` and ``write``: nothing is written if the request is wrong."""
    with Drawings() as drawings:
        report = compose(source, request, studies, settings, drawings)
        write(report, out, drawings)
    return report
