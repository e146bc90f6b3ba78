"""Compose a report from a database, in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from bench.errors import unknown
from bench.figures import charts
from bench.figures.drawing import Drawings
from bench.figures.panels import Figure
from bench.frames.graded_cells import DocumentCells, Results, collect
from bench.frames.ranking import rank
from bench.metric_names import ACCURACY, TITLES
from bench.report.claims import claim_document
from bench.report.dataset_documents import dataset_document
from bench.report.document import Document, Part, document_cells
from bench.report.ranking import ranking_document
from bench.report.request import Request
from bench.report.score import MEASURED, headline, judged_once, reproduction, verdict_counts
from bench.report.tables import document_of
from bench.store.tables import Tables
from bench.studies.experiment import Plans
from bench.studies.study import Study

DrawnTable = tuple[DocumentCells, tuple[Figure, ...]]


def compose(
    source: Tables,
    request: Request,
    studies: dict[str, type[Study]],
    drawings: Drawings | None = None,
    results: Results | None = None,
) -> list[Part]:
    """Compose the report on a database: one part for each study. ``results`` are what was collected for it
    before (None: it is collected). ``drawings`` start while the rest is computed.

    A study without runs is left out unless the request names it.

    Raises:
        RequestError: an empty database, an unknown name, or filters that leave nothing.
    """
    all_plans: Plans = {name: study.experiments for name, study in studies.items()}
    for name in request.studies:
        if name not in studies:
            raise unknown("study", name, studies)
    chosen = [studies[name]() for name in request.studies or studies]
    results = results or collect(source, chosen, request.metric, plans=all_plans)
    request.check(results.cells, results.runs)
    results = results._replace(places=request.asked_places(results.places))
    cells = results.cells[request.mask(results.cells)]
    has_runs = cells["study"].isin(cells.loc[cells["runs"] > 0, "study"])
    if has_runs.any() and not request.studies:
        cells = cells[has_runs]
    shown_studies = [study for study in chosen if (cells["study"] == study.name).any()]
    # Drawings start first: the rest takes long enough to draw them meanwhile.
    tables = [list(_tables(study, request, cells, results, drawings)) for study in shown_studies]
    parts = [_part(*each, request, cells, results) for each in zip(shown_studies, tables, strict=True)]
    # The most complete study comes first: a study that has just begun should not fill the first screen.
    return sorted((part for part in parts if part.documents), key=_measured_share, reverse=True)


def _measured_share(part: Part) -> float:
    """The share (0 to 1) of a study's published values that were measured."""
    return float(part.counts[MEASURED].to_numpy().sum() / max(1, part.counts.to_numpy().sum()))


def _tables(
    study: Study, request: Request, cells: pd.DataFrame, results: Results, drawings: Drawings | None
) -> Iterator[DrawnTable]:
    """The tables of a study in the selected ``cells``, with their figures. Begin to draw the figures."""
    cells = cells[cells["study"] == study.name]
    for experiment in study.experiments:
        table = document_cells(study, experiment, cells, results)
        is_run = table.cells["is_run_column"].any() and not request.only_main
        if table.cells.empty or not (experiment.main or is_run):
            continue
        is_drawn = results.metric == ACCURACY
        figures = tuple(charts.figures(table)) if is_drawn else ()
        if drawings:
            for figure in figures:
                drawings.begin(figure)
        yield table, figures


def _part(
    study: Study, tables: Sequence[DrawnTable], request: Request, cells: pd.DataFrame, results: Results
) -> Part:
    """A study's documents: its tables, then statistics over all selected ``cells``, with or without runs.

    If no methods are compared, there are no statistics. For a metric other than accuracy there are tables and
    the ranking only, because papers publish and claim nothing about it.
    """
    cells = cells[cells["study"] == study.name]
    by_accuracy, is_whole = results.metric == ACCURACY, not request.filters
    is_compared = any(table.experiment.competes for table, _ in tables)
    documents: list[Document | None] = [document_of(*table) for table in tables]
    ranks = rank(study, results, cells) if is_compared else None
    judged = judged_once(study, cells)
    counts = verdict_counts(study, judged, is_whole)
    sentences = headline(ranks, counts)
    documents.append(ranking_document(ranks, results) if ranks else None)
    if is_compared and by_accuracy:
        claims = [claim_document(study, results, cells, claim_list) for claim_list in study.claims]
        documents += [reproduction(study, results, cells, judged, counts), *claims]
        documents.append(dataset_document(study) if is_whole else None)
        sentences += [f"{document.title}: {document.summary}" for document in claims if document]
    shown = [document for document in documents if document]
    title = study.title if by_accuracy else f"{study.title}, by {TITLES[results.metric]}"
    counts = counts.rename(index=study.paper_title)
    places = {place for document in shown for place in document.cells["place"]}
    runs = results.members[results.members["place"].isin(places)].drop_duplicates("run")
    return Part(study.name, title, runs, sentences, counts, ranks, shown)
