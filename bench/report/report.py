"""From a database to a folder of tables and figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bench.errors import RequestError, unknown
from bench.figures import charts
from bench.figures.drawing import Drawings
from bench.figures.panels import Figure
from bench.grids import load_grid
from bench.metric_names import ACCURACY
from bench.replacement import replacing_folder
from bench.report import folder, page, render, tables, terminal
from bench.report.claim_views import claims
from bench.report.dataset_documents import dataset_document
from bench.report.document import Document, Part, Report
from bench.report.findings import Findings
from bench.report.ranking_views import ranking_document
from bench.report.reproduction import reproduction
from bench.report.request import Request
from bench.report.spread import spread
from bench.report.tuning import tuning
from bench.studies import frame as frames
from bench.studies.cells import Cells, Selection
from bench.studies.collect import plans_of, results_of, selected_cells
from bench.studies.experiment import ExperimentPlan
from bench.studies.metric import TITLES, check_kept
from bench.studies.planned import GridCells, UsualCells, grid_cells, usual_cells
from bench.studies.ranking import rank
from bench.studies.results import Results
from bench.studies.settings import Column
from bench.studies.source import Source
from bench.studies.study import Study
from bench.tune.apply import Configurations


def _check_names(kind: str, names: Iterable[str], known_names: Iterable[str]) -> None:
    choices = set(known_names)
    for name in names:
        if name not in choices:
            raise unknown(kind, name, choices)


def choose(request: Request, studies: dict[str, type[Study]]) -> list[Study]:
    """The studies asked for; a grid narrows them to those that it belongs to."""
    _check_names("study", request.studies, studies)
    names = list(request.studies or studies)
    if request.grid and not request.studies:
        study = load_grid(request.grid).study
        if study:
            _check_names("study", [study], studies)
            names = [study]
    return [studies[name]() for name in names]


Plans = dict[str, list[ExperimentPlan]]
"""Study -> its experiments."""


def select(
    request: Request, studies: Sequence[Study], results: Results, asked_cells: GridCells, plans: Plans
) -> Selection:
    """The request as a selection; ``asked_cells`` are those of the grid asked for, if one is.

    Raises:
        RequestError: a name or number of clients that occurs in no study and no run, or a
            combination that no table has.
    """
    study_plans = [plan for study in studies for plan in plans[study.name]]
    columns = {column for study in studies for column in study.columns}
    columns |= {column for plan in study_plans for column in plan.columns}
    places = columns | results.columns
    methods = {line.method for study in studies for line in study.lines} | set(results.runs["method"])
    methods |= {line.method for plan in study_plans for line in plan.lines}
    _check_names("dataset", request.datasets, {column.dataset for column in places})
    _check_names("scenario", request.scenarios, {column.scenario for column in places})
    _check_names("number of clients", map(str, request.clients), {str(column.clients) for column in places})
    _check_names("method", request.methods, methods)
    names = request.methods or {method for _, method in asked_cells}
    readers = {line.method for study in studies for line in study.lines if line.reads and line.runs in names}
    choice = set(names) if request.methods else {*names, *readers}
    selection = Selection(
        frozenset(request.datasets),
        frozenset(request.scenarios),
        frozenset(request.clients),
        frozenset(choice),
        frozenset(column for column, _ in asked_cells),
    )
    if not any(selection.has_column(column) for column in columns):
        if any(selection.has_column(column) for column in results.columns):
            other_studies = [
                name
                for name, other_plans in plans.items()
                if any(
                    selection.has_column(column) and column in results.columns
                    for plan in other_plans
                    for column in plan.columns
                )
            ]
            others = " or ".join(other_studies)
            hint = f"look at --study {others}" if others else "'bench runs list' shows them"
            title = ", ".join(study.name for study in studies)
            raise RequestError(f"these runs are in no table of the studies {title}: {hint}")
        raise RequestError(
            "no table of the studies "
            f"{', '.join(study.name for study in studies)} has these data sets, scenarios and numbers of "
            "clients together: leave one of the filters away"
        )
    return selection


def _columns_outside_tables(results: Results, plans: Plans) -> tuple[str, ...]:
    """Columns with runs that no table of any study has."""
    table_columns: set[Column] = {
        column for study_plans in plans.values() for plan in study_plans for column in plan.columns
    }
    lines = []
    for column in sorted(results.columns - table_columns):
        methods = sorted({method for method in results.methods(column) if results.groups(column, method)})
        lines.append(f"{column.dataset} {column.scenario} {column.clients}: {', '.join(methods)}")
    return tuple(lines)


def _usual_cells(request: Request, studies: Iterable[Study]) -> UsualCells:
    """The usual settings of every cell: those of the studies' grids, or of another grid asked for.

    Where a study's grid is asked for, its seeds are the planned ones of its cells.
    """
    grids = [grid for study in studies for grid in study.grids]
    if request.grid is None:
        return usual_cells(grids)
    grid_cells = usual_cells([request.grid])
    if request.grid not in grids:
        return grid_cells
    study_cells = usual_cells(grids)
    return study_cells | {
        key: cell for key, cell in grid_cells.items() if cell.settings == study_cells[key].settings
    }


def _part(
    study: Study,
    experiments: Sequence[Cells],
    shown_experiments: Sequence[Cells],
    results: Results,
    selection: Selection,
    drawings: Drawings | None,
) -> Part:
    """A study's documents: of ``shown_experiments``, then statistics over all those selected, run or not. No
    statistics where no methods are compared; by another metric than accuracy tables and the ranking alone,
    as nothing is published, claimed or drawn of it.
    """
    by_accuracy = results.metric == ACCURACY
    # Drawings are begun before anything else: what follows takes long enough to draw many.
    documents: list[Document | None] = [
        tables.document(cells, _figures(cells, drawings) if by_accuracy else ())
        for cells in shown_experiments
    ]
    competing_tables = [cells for cells in experiments if cells.experiment.competes]
    ranks = rank(study, competing_tables, selection) if competing_tables else None
    ranking = ranking_document(ranks) if ranks else None
    findings = Findings(study, experiments, ranks, selection == Selection())
    claim_documents: list[Document | None] = []
    if not by_accuracy:
        documents.append(ranking and replace(ranking, figures=()))
    elif competing_tables:
        main_tables = [cells for cells in experiments if cells.experiment.main]
        claim_documents = [claims(study, claim_list, experiments) for claim_list in study.claims]
        documents += [
            *map(spread, main_tables),
            ranking,
            tuning(study, main_tables, selection),
            reproduction(findings),
            *claim_documents,
            dataset_document(study) if findings.is_whole else None,
        ]
    columns = {column for cells in experiments for column in cells.columns}
    gap_sentences = (
        () if by_accuracy else filter(None, [check_kept(results.metric, *results.metric_coverage(columns))])
    )
    answers = (f"{document.title}: {document.summary}" for document in claim_documents if document)
    maps = [(cells, tables.verdict_map(cells)) for cells in competing_tables]
    return Part(
        study.name,
        study.title if by_accuracy else f"{study.title}, by {TITLES[results.metric]}",
        tuple(filter(None, (*findings.headline, findings.leaders, *answers, *gap_sentences))),
        findings.scores,
        ranks,
        {cells.experiment.name: table for cells, table in maps if table},
        [document for document in documents if document],
    )


def _figures(cells: Cells, drawings: Drawings | None) -> Iterator[Figure]:
    """An experiment's figures, each of which is begun to be drawn."""
    for figure in charts.figures(cells):
        if drawings:
            drawings.begin(figure)
        yield figure


def compose(
    source: Source,
    request: Request,
    studies: dict[str, type[Study]],
    settings: UsualCells | None = None,
    drawings: Drawings | None = None,
    winners: Configurations | None = None,
) -> Report:
    """The report on a database, of which nothing is written yet. ``settings`` replace what the grids plan as
    the usual settings of every cell, ``winners`` the tuned ones at hand; ``drawings`` begin while the rest is
    computed.

    Raises:
        RequestError: an empty database, an unknown name, or filters that leave nothing.
    """
    chosen_studies = choose(request, studies)
    plans_by_study = plans_of(studies)
    chosen_plans = [plan for study in chosen_studies for plan in plans_by_study[study.name]]
    asked_plans = [plan for plan in chosen_plans if request.grid and plan.experiment.grid == request.grid]
    settings = settings or ({} if asked_plans else _usual_cells(request, chosen_studies))
    asked_cells = {} if asked_plans or not request.grid else grid_cells(request.grid)
    results = results_of(source, plans_by_study, settings, request.metric, winners, asked_cells)
    plans = {
        name: [
            plan
            for plan in study_plans
            if plan in asked_plans or not request.grid or (plan.experiment.main and not asked_plans)
        ]
        for name, study_plans in plans_by_study.items()
    }
    selection = select(request, chosen_studies, results, asked_cells, plans)
    shown_studies = [
        study
        for study in chosen_studies
        if request.studies or asked_plans or results.columns.intersection(study.columns)
    ] or chosen_studies
    parts, unrun_names = [], []
    for study in shown_studies:
        experiments = selected_cells(study, plans[study.name], results, selection)
        shown_experiments = [
            cells for cells in experiments if asked_plans or cells.experiment.main or cells.run_columns
        ]
        unrun_names += [
            f"{study.name} {cells.experiment.name}" for cells in experiments if cells not in shown_experiments
        ]
        parts.append(_part(study, experiments, shown_experiments, results, selection, drawings))
    if not any(part.documents for part in parts):
        raise RequestError(
            "no cell of the studies has all of these names together: leave one of the filters away"
        )
    omitted_names = (
        study.name
        for study in chosen_studies
        if study not in shown_studies and any(map(selection.has_column, study.columns))
    )
    # What was measured most comes first: a reader's first screen is not of a study that has just begun.
    full_parts = tuple(
        sorted((part for part in parts if part.documents), key=lambda part: part.measured_share, reverse=True)
    )
    return Report(
        full_parts, (*omitted_names, *unrun_names), _columns_outside_tables(results, plans_by_study)
    )


def write(report: Report, out: Path, drawings: Drawings, stamp: str = "") -> folder.Contents:
    """Put a report in the place of an earlier one, and say what it holds; unchanged results give
    byte-identical files.

    ``stamp`` says what the report was made from (see ``bench.report.folder``).

    Raises:
        RequestError: the folder holds other files than a report's, or cannot be written.
    """
    folder.check(out)
    with replacing_folder(out) as new_folder:
        stems = {}
        for part in report.parts:
            for document in part.documents:
                figures = {figure: document.stem(figure) for figure in document.figures}
                stems.update({figure: new_folder / stem for figure, stem in figures.items()})
                place = new_folder / document.folder
                place.mkdir(parents=True)
                file_names = {figure: stem.name for figure, stem in figures.items()}
                for kind, text in (
                    ("md", render.markdown(document, file_names)),
                    ("tex", render.latex(document)),
                    ("txt", terminal.text_of(terminal.show, document)),
                ):
                    (place / f"table.{kind}").write_text(text, encoding="utf-8", newline="\n")
                frames.write(place / "table.csv", frames.frame(document.cells))
                for name, rows in document.records.items():
                    frames.write(place / f"{name}.csv", rows)
        drawings.save(stems)
        frames.write(
            new_folder / "cells.csv",
            frames.frame(cell for document in report.documents for cell in document.primary_cells),
        )
        page.save(report.parts, new_folder)
        texts = (
            terminal.text_of(terminal.brief, report, colours=True),
            terminal.text_of(terminal.remarks, report),
            terminal.text_of(terminal.beside, report),
        )
        return folder.seal(new_folder, stamp, *texts)


def build(
    source: Source,
    request: Request,
    studies: dict[str, type[Study]],
    out: Path,
    settings: UsualCells | None = None,
    winners: Configurations | None = None,
) -> Report:
    """``compose`` and ``write``: nothing is written if the request is wrong."""
    with Drawings() as drawings:
        report = compose(source, request, studies, settings, drawings, winners)
        write(report, out, drawings)
    return report
