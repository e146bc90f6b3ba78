"""From a database to a report, of which nothing is written yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, replace

import pandas as pd

from bench.errors import unknown
from bench.figures import charts
from bench.figures.drawing import Drawings
from bench.figures.panels import Figure
from bench.frames.graded_cells import Results, collect
from bench.frames.ranking import rank
from bench.frames.stored_runs import WHERE, UsualRuns
from bench.grids import load_grid
from bench.metric_names import ACCURACY, TITLES
from bench.report.claims import claim_document
from bench.report.dataset_documents import dataset_document
from bench.report.document import Document, DocumentCells, Part, Report
from bench.report.ranking import ranking_document
from bench.report.request import Request, asked_plans
from bench.report.score import headline, judged_once, leaders, reproduction, scores, verdict_counts
from bench.report.spread import spread
from bench.report.tables import document_of, verdict_map
from bench.report.tuned import tuned_document
from bench.store.tables import Tables
from bench.studies.declarations import plans_of
from bench.studies.experiment import Plans
from bench.studies.members import check_kept, client_rows
from bench.studies.settings import Column
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
    request: Request,
    drawings: Drawings | None,
    tables: Sequence[DocumentCells],
    cells: pd.DataFrame,
    results: Results,
) -> Part:
    """A study's documents: of the ``tables`` that are shown, then statistics over all the ``cells`` selected,
    run or not.

    No statistics where no methods are compared; by another metric than accuracy tables and the ranking alone,
    as nothing is published, claimed or drawn of it.
    """
    by_accuracy = results.metric == ACCURACY
    # Drawings are begun before anything else: what follows takes long enough to draw many.
    documents: list[Document | None] = [
        document_of(table, _figures(table, drawings) if by_accuracy else ())
        for table in tables
        if is_shown(table, request)
    ]
    is_compared = any(table.experiment.competes for table in tables)
    ranks = rank(study, results, cells) if is_compared else None
    paper_scores = scores(study, verdict_counts(study, judged_once(study, cells), request.is_whole))
    ranking = ranking_document(ranks, results) if ranks else None
    claim_documents: list[Document | None] = []
    if not by_accuracy:
        documents.append(ranking and replace(ranking, figures=()))
    elif is_compared:
        claim_documents = [claim_document(study, results, cells, claim_list) for claim_list in study.claims]
        documents += [
            *(spread(table) for table in tables if table.experiment.main),
            ranking,
            tuned_document(study, results, cells),
            reproduction(study, results, cells, request.is_whole),
            *claim_documents,
            dataset_document(study) if request.is_whole else None,
        ]
    answers = (f"{document.title}: {document.summary}" for document in claim_documents if document)
    sentences = (*headline(ranks, paper_scores), leaders(ranks), *answers, *_gap(tables, results))
    maps = [(table, verdict_map(table)) for table in tables if table.experiment.competes]
    shown_documents = [document for document in documents if document]
    return Part(
        study.name,
        study.title if by_accuracy else f"{study.title}, by {TITLES[results.metric]}",
        len(_runs(shown_documents, results)),
        tuple(filter(None, sentences)),
        paper_scores,
        ranks,
        {table.experiment.name: verdicts for table, verdicts in maps if verdicts},
        shown_documents,
    )


def is_shown(table: DocumentCells, request: Request) -> bool:
    """Whether a table has a document: an experiment that nobody ran has one where it is asked for."""
    return bool(request.grid) or table.experiment.main or table.is_run


def _runs(documents: Iterable[Document], results: Results) -> pd.DataFrame:
    """The runs behind documents, each once."""
    places = {place for document in documents for place in document.cells["place"]}
    return results.members[results.members["place"].isin(places)].drop_duplicates("run")


def _gap(tables: Sequence[DocumentCells], results: Results) -> list[str]:
    """How many of the runs of these tables' columns lack the metric, in a sentence; none where none does."""
    if results.metric == ACCURACY:
        return []
    columns = pd.concat([table.cells[WHERE] for table in tables]).drop_duplicates()
    runs = results.runs[results.runs["state"] == "done"].merge(columns, on=WHERE)["run"].tolist()
    known = client_rows(results.source, runs, results.metric, "trained", "test", "last")
    return [check_kept(results.metric, len(runs), len(runs) - known["run"].nunique())]


def _figures(table: DocumentCells, drawings: Drawings | None) -> Iterator[Figure]:
    """An experiment's figures, each of which is begun to be drawn."""
    for figure in charts.figures(table.results, table.study, table.experiment, table.cells):
        if drawings:
            drawings.begin(figure)
        yield figure


def compose(
    source: Tables,
    request: Request,
    studies: dict[str, type[Study]],
    drawings: Drawings | None = None,
    winners: Configurations | None = None,
    usual_runs: UsualRuns | None = None,
) -> Report:
    """The report on a database. ``winners`` are the tuned configurations at
    hand, ``usual_runs`` the usual settings in place of those that the studies' grids plan; ``drawings`` begin
    while the rest is computed.

    Raises:
        RequestError: an empty database, an unknown name, or filters that leave nothing.
    """
    chosen_studies = choose(request, studies)
    all_plans = plans_of(studies)
    plans: Plans = {study.name: all_plans[study.name] for study in chosen_studies}
    if request.grid:
        plans = asked_plans(request.grid, chosen_studies, all_plans)
        chosen_studies = [study for study in chosen_studies if plans[study.name]]
    results = collect(source, chosen_studies, request.metric, winners, {**all_plans, **plans}, usual_runs)
    request.check(results.cells, results.runs)
    places = results.places[request.mask(results.places)]
    results = results._replace(places=request.with_guests(places))
    cells = results.cells[request.mask(results.cells)]
    run_columns = {Column(*where) for where in results.runs[WHERE].itertuples(index=False, name=None)}
    shown_studies = [
        study
        for study in chosen_studies
        if request.studies or request.grid or run_columns.intersection(study.columns)
    ] or chosen_studies
    parts, unrun = [], []
    for study in shown_studies:
        study_cells = cells[cells["study"] == study.name]
        experiments = [plan.experiment for plan in plans[study.name]]
        names = set(study_cells["document"])
        tables = [
            DocumentCells.of(study, experiment, study_cells, results)
            for experiment in experiments
            if experiment.name in names
        ]
        unrun += [f"{study.name} {table.experiment.name}" for table in tables if not is_shown(table, request)]
        if tables:
            parts.append(_part(study, request, drawings, tables, study_cells, results))
    omitted = [
        study.name
        for study in chosen_studies
        if study not in shown_studies and (cells["study"] == study.name).any()
    ]
    # What was measured most comes first: a reader's first screen is not of a study that has just begun.
    full_parts = tuple(
        sorted((part for part in parts if part.documents), key=lambda part: part.measured_share, reverse=True)
    )
    runs = _runs((document for part in full_parts for document in part.documents), results)
    return Report(
        full_parts,
        int((runs["origin"] != "").sum()),
        (*omitted, *unrun),
        _columns_outside_tables(results.runs, all_plans),
    )
