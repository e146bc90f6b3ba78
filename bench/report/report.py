"""From a database to a folder of tables and figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from pathlib import Path

import pandas as pd

from bench.errors import unknown
from bench.figures import charts
from bench.figures.drawing import Drawings
from bench.figures.panels import Figure
from bench.frames.graded_cells import Results as Collected
from bench.frames.graded_cells import collect
from bench.frames.stored_runs import WHERE
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
from bench.report.request import Request, asked_plans
from bench.report.spread import spread
from bench.report.tuning import tuning
from bench.studies import frame as frames
from bench.studies.cells import Cells, Selection
from bench.studies.collect import plans_of, results_of, selected_cells
from bench.studies.experiment import Experiment, Plans
from bench.studies.metric import TITLES, check_kept
from bench.studies.planned import usual_cells
from bench.studies.ranking import rank
from bench.studies.results import Results
from bench.studies.source import Source
from bench.studies.study import Study
from bench.tune.apply import Configurations


def choose(request: Request, studies: dict[str, type[Study]]) -> list[Study]:
    """The studies asked for; a grid narrows them to those that it belongs to.

    Raises:
        RequestError: there is no such study.
    """
    names = list(request.studies or studies)
    if request.grid and not request.studies:
        study = load_grid(request.grid).study
        names = [study] if study else names
    for name in names:
        if name not in studies:
            raise unknown("study", name, studies)
    return [studies[name]() for name in names]


def _columns_outside_tables(runs: pd.DataFrame, plans: Plans) -> tuple[str, ...]:
    """Columns with runs that no table of any study has."""
    table_columns = {
        astuple(column) for study_plans in plans.values() for plan in study_plans for column in plan.columns
    }
    return tuple(
        f"{dataset} {scenario} {clients}: {', '.join(sorted(part['method'].unique()))}"
        for (dataset, scenario, clients), part in runs[~runs["special"]].groupby(WHERE)
        if (dataset, scenario, clients) not in table_columns
    )


def _part(
    study: Study,
    experiments: Sequence[Cells],
    shown_experiments: Sequence[Cells],
    results: Results,
    selection: Selection,
    is_whole: bool,
    drawings: Drawings | None,
    cells: pd.DataFrame,
    collected: Collected,
) -> Part:
    """A study's documents: of ``shown_experiments``, then statistics over all those selected, run or not.

    ``cells`` are the selected cells of the study among those that were ``collected``. No statistics where no
    methods are compared; by another metric than accuracy tables and the ranking alone, as nothing is
    published, claimed or drawn of it.
    """
    by_accuracy = results.metric == ACCURACY
    # Drawings are begun before anything else: what follows takes long enough to draw many.
    documents: list[Document | None] = [
        tables.document(
            table, _figures(collected, study, table.experiment, cells, drawings) if by_accuracy else ()
        )
        for table in shown_experiments
    ]
    competing_tables = [table for table in experiments if table.experiment.competes]
    ranks = rank(study, competing_tables, selection) if competing_tables else None
    ranking = ranking_document(ranks) if ranks else None
    findings = Findings(study, experiments, ranks, is_whole)
    claim_documents: list[Document | None] = []
    if not by_accuracy:
        documents.append(ranking and replace(ranking, figures=()))
    elif competing_tables:
        main_tables = [table for table in experiments if table.experiment.main]
        claim_documents = [claims(study, claim_list, experiments) for claim_list in study.claims]
        documents += [
            *map(spread, main_tables),
            ranking,
            tuning(study, main_tables, selection),
            reproduction(findings),
            *claim_documents,
            dataset_document(study) if findings.is_whole else None,
        ]
    columns = {column for table in experiments for column in table.columns}
    gap_sentences = (
        () if by_accuracy else filter(None, [check_kept(results.metric, *results.metric_coverage(columns))])
    )
    answers = (f"{document.title}: {document.summary}" for document in claim_documents if document)
    maps = [(table, tables.verdict_map(table)) for table in competing_tables]
    return Part(
        study.name,
        study.title if by_accuracy else f"{study.title}, by {TITLES[results.metric]}",
        tuple(filter(None, (*findings.headline, findings.leaders, *answers, *gap_sentences))),
        findings.scores,
        ranks,
        {table.experiment.name: verdicts for table, verdicts in maps if verdicts},
        [document for document in documents if document],
    )


def _figures(
    collected: Collected,
    study: Study,
    experiment: Experiment,
    cells: pd.DataFrame,
    drawings: Drawings | None,
) -> Iterator[Figure]:
    """An experiment's figures, each of which is begun to be drawn."""
    for figure in charts.figures(collected, study, experiment, cells[cells["document"] == experiment.name]):
        if drawings:
            drawings.begin(figure)
        yield figure


def compose(
    source: Source,
    request: Request,
    studies: dict[str, type[Study]],
    drawings: Drawings | None = None,
    winners: Configurations | None = None,
) -> Report:
    """The report on a database, of which nothing is written yet. ``winners`` are the tuned configurations at
    hand; ``drawings`` begin while the rest is computed.

    Raises:
        RequestError: an empty database, an unknown name, or filters that leave nothing.
    """
    chosen_studies = choose(request, studies)
    all_plans = plans_of(studies)
    plans: Plans = {study.name: all_plans[study.name] for study in chosen_studies}
    if request.grid:
        plans = asked_plans(request.grid, chosen_studies, all_plans)
        chosen_studies = [study for study in chosen_studies if plans[study.name]]
    usual = usual_cells(grid for study in chosen_studies for grid in study.grids)
    results = results_of(source, all_plans, usual, request.metric, winners)
    collected = collect(source, chosen_studies, request.metric, winners, {**all_plans, **plans})
    request.check(collected.cells, collected.runs)
    cells = collected.cells[request.mask(collected.cells)]
    selection = Selection(
        frozenset(request.datasets),
        frozenset(request.scenarios),
        frozenset(request.clients),
        frozenset(request.methods),
    )
    shown_studies = [
        study
        for study in chosen_studies
        if request.studies or request.grid or results.columns.intersection(study.columns)
    ] or chosen_studies
    parts, unrun_names = [], []
    for study in shown_studies:
        study_cells = cells[cells["study"] == study.name]
        if study_cells.empty:
            continue
        experiments = selected_cells(study, plans[study.name], results, selection)
        shown_experiments = [
            table for table in experiments if request.grid or table.experiment.main or table.run_columns
        ]
        unrun_names += [
            f"{study.name} {table.experiment.name}" for table in experiments if table not in shown_experiments
        ]
        parts.append(
            _part(
                study,
                experiments,
                shown_experiments,
                results,
                selection,
                request.is_whole,
                drawings,
                study_cells,
                collected,
            )
        )
    omitted_names = set(cells["study"]) - {study.name for study in shown_studies}
    # What was measured most comes first: a reader's first screen is not of a study that has just begun.
    full_parts = tuple(
        sorted((part for part in parts if part.documents), key=lambda part: part.measured_share, reverse=True)
    )
    return Report(
        full_parts,
        (*(study.name for study in chosen_studies if study.name in omitted_names), *unrun_names),
        _columns_outside_tables(collected.runs, all_plans),
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
    winners: Configurations | None = None,
) -> Report:
    """``compose`` and ``write``: nothing is written if the request is wrong."""
    with Drawings() as drawings:
        report = compose(source, request, studies, drawings, winners)
        write(report, out, drawings)
    return report
