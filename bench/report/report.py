"""From a database to a report, of which nothing is written yet."""

from __future__ import annotations

import pandas as pd

from bench.errors import unknown
from bench.figures import charts
from bench.figures.drawing import Drawings
from bench.frames.graded_cells import Results, collect
from bench.frames.ranking import rank
from bench.frames.stored_runs import UsualRuns
from bench.metric_names import ACCURACY, TITLES
from bench.report.claims import claim_document
from bench.report.dataset_documents import dataset_document
from bench.report.document import Document, DocumentCells, Part, Report
from bench.report.ranking import ranking_document
from bench.report.request import Request
from bench.report.score import MEASURED, headline, judged_once, reproduction, verdict_counts
from bench.report.tables import document_of
from bench.store.tables import Tables
from bench.studies.experiment import Plans
from bench.studies.study import Study
from bench.tune.record import Configurations


def compose(
    source: Tables,
    request: Request,
    studies: dict[str, type[Study]],
    drawings: Drawings | None = None,
    winners: Configurations | None = None,
    usual_runs: UsualRuns | None = None,
) -> Report:
    """The report on a database. ``winners`` are the tuned configurations at hand, ``usual_runs`` the usual
    settings in place of those that the studies' grids plan; ``drawings`` begin while the rest is computed.

    Studies of which nothing was run are left out unless they are named.

    Raises:
        RequestError: an empty database, an unknown name, or filters that leave nothing.
    """
    all_plans: Plans = {name: study.experiments for name, study in studies.items()}
    for name in request.studies:
        if name not in studies:
            raise unknown("study", name, studies)
    chosen = [studies[name]() for name in request.studies or studies]
    results = collect(source, chosen, request.metric, winners, all_plans, usual_runs)
    request.check(results.cells, results.runs)
    results = results._replace(places=request.asked_places(results.places))
    cells = results.cells[request.mask(results.cells)]
    has_runs = cells["study"].isin(cells.loc[cells["runs"] > 0, "study"])
    if has_runs.any() and not request.studies:
        cells = cells[has_runs]
    shown_studies = [study for study in chosen if (cells["study"] == study.name).any()]
    parts = [_part(study, request, cells, results, drawings) for study in shown_studies]
    # What was measured most comes first: a reader's first screen is not of a study that has just begun.
    shown = sorted((part for part in parts if part.documents), key=_measured_share, reverse=True)
    runs = _runs([document for part in shown for document in part.documents], results)
    return Report(shown, int((runs["origin"] != "").sum()))


def _measured_share(part: Part) -> float:
    """The share of a study's published values that was measured."""
    return float(part.counts[MEASURED].to_numpy().sum() / max(1, part.counts.to_numpy().sum()))


def _part(
    study: Study, request: Request, cells: pd.DataFrame, results: Results, drawings: Drawings | None
) -> Part:
    """A study's documents: of its tables among the ``cells`` selected, then statistics over all of these, run
    or not.

    No statistics where no methods are compared; by another metric than accuracy tables and the ranking alone,
    as nothing is published or claimed of it.
    """
    cells = cells[cells["study"] == study.name]
    by_accuracy, is_whole, is_compared = results.metric == ACCURACY, not request.filters, False
    documents: list[Document | None] = []
    for experiment in study.experiments:
        table = DocumentCells.of(study, experiment, cells, results)
        is_run = table.cells["is_run_column"].any() and not request.only_main
        if table.cells.empty or not (experiment.main or is_run):
            continue
        # Drawings are begun before anything else: what follows takes long enough to draw many.
        figures = tuple(charts.figures(results, study, experiment, table.cells)) if by_accuracy else ()
        if drawings:
            for figure in figures:
                drawings.begin(figure)
        documents.append(document_of(table, figures))
        is_compared |= experiment.competes
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
    return Part(study.name, title, len(_runs(shown, results)), sentences, counts, ranks, shown)


def _runs(documents: list[Document], results: Results) -> pd.DataFrame:
    """The runs behind documents, each once."""
    places = {place for document in documents for place in document.cells["place"]}
    return results.members[results.members["place"].isin(places)].drop_duplicates("run")
