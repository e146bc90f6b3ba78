"""From a database to a report, of which nothing is written yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, replace

import pandas as pd

from bench.errors import unknown
from bench.figures import charts
from bench.figures.drawing import Drawings
from bench.figures.panels import Figure
from bench.frames.graded_cells import Results, collect
from bench.frames.ranking import rank
from bench.frames.stored_runs import WHERE, UsualRuns, parts_of
from bench.grids import load_grid
from bench.grids.grid import combinations
from bench.metric_names import ACCURACY, TITLES
from bench.report.claims import claim_document
from bench.report.dataset_documents import dataset_document
from bench.report.document import Document, DocumentCells, Part, Report
from bench.report.ranking import ranking_document
from bench.report.request import Request
from bench.report.score import headline, judged_once, reproduction, scores, verdict_counts
from bench.report.tables import document_of, spread_document, verdict_map
from bench.report.tuned import tuned_document
from bench.store.tables import Tables
from bench.studies.experiment import Plans
from bench.studies.study import Study
from bench.tune.apply import Configurations


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

    Raises:
        RequestError: an empty database, an unknown name, or filters that leave nothing.
    """
    all_plans: Plans = {name: study.experiments for name, study in studies.items()}
    for name in request.studies:
        if name not in studies:
            raise unknown("study", name, studies)
    plans: Plans = {name: all_plans[name] for name in request.studies or studies}
    if request.grid:
        request, plans = _of_grid(request.grid, request, plans, studies)
    chosen_studies = [studies[name]() for name in plans]
    results = collect(source, chosen_studies, request.metric, winners, {**all_plans, **plans}, usual_runs)
    request.check(results.cells, results.runs)
    places = results.places[request.mask(results.places)]
    results = results._replace(places=request.with_guests(places))
    cells = results.cells[request.mask(results.cells)]
    run_studies = set(cells.loc[cells["runs"] > 0, "study"]) or set(cells["study"])
    parts, unrun = [], []
    for study in chosen_studies:
        study_cells = cells[cells["study"] == study.name]
        if study_cells.empty:
            continue
        if study.name not in run_studies and not (request.studies or request.grid):
            unrun.append(study.name)
            continue
        tables = []
        for experiment in plans[study.name]:
            if experiment.name in set(study_cells["document"]):
                table = DocumentCells.of(study, experiment, study_cells, results)
                # An experiment that nobody ran has a document where it is asked for.
                if request.grid or experiment.main or table.cells["is_run_column"].any():
                    tables.append(table)
                else:
                    unrun.append(f"{study.name} {experiment.name}")
        if tables:
            parts.append(_part(study, request, drawings, tables, study_cells, results))
    # What was measured most comes first: a reader's first screen is not of a study that has just begun.
    parts.sort(key=_measured_share, reverse=True)
    runs = _runs((document for part in parts for document in part.documents), results)
    shipped = int((runs["origin"] != "").sum())
    return Report(parts, shipped, unrun, _runs_outside_tables(results.runs, all_plans))


def _of_grid(
    grid: str, request: Request, plans: Plans, studies: dict[str, type[Study]]
) -> tuple[Request, Plans]:
    """The tables of a grid; of one without tables, which says what is usual in a study's main tables, these
    in the columns and lines that it plans.

    Raises:
        RequestError: it is a grid of no study.
    """
    tables_by_study = {name: [table for table in plans[name] if table.grid == grid] for name in plans}
    if any(tables_by_study.values()):
        return request, {name: tables for name, tables in tables_by_study.items() if tables}
    for name, tables in plans.items():
        if grid in studies[name].grids:
            planned = [names[:4] for names in combinations(load_grid(grid))]
            datasets, scenarios, clients, methods = map(set, zip(*planned, strict=True))
            request = replace(
                request,
                datasets=request.datasets or tuple(datasets),
                scenarios=request.scenarios or tuple(scenarios),
                clients=request.clients or tuple(clients),
                methods=request.methods
                or tuple(line.method for line in studies[name].lines if line.runs in methods),
            )
            return request, {name: [table for table in tables if table.main]}
    raise unknown("grid of the studies:", grid, {table.grid for tables in plans.values() for table in tables})


def _measured_share(part: Part) -> float:
    """The share of a study's published values that was measured."""
    measured = sum(score.measured for score in part.scores)
    return measured / max(1, sum(score.published for score in part.scores))


def _part(
    study: Study,
    request: Request,
    drawings: Drawings | None,
    tables: list[DocumentCells],
    cells: pd.DataFrame,
    results: Results,
) -> Part:
    """A study's documents: of the ``tables``, then statistics over all the ``cells`` selected, run or not.

    No statistics where no methods are compared; by another metric than accuracy tables and the ranking alone,
    as nothing is published or claimed of it.
    """
    by_accuracy = results.metric == ACCURACY
    # Drawings are begun before anything else: what follows takes long enough to draw many.
    documents: list[Document | None] = [
        document_of(table, _figures(table, drawings) if by_accuracy else ()) for table in tables
    ]
    is_compared = any(table.experiment.competes for table in tables)
    ranks = rank(study, results, cells) if is_compared else None
    judged = judged_once(study, cells)
    counts = verdict_counts(study, judged, request.is_whole)
    sentences = headline(ranks, counts)
    documents.append(ranking_document(ranks, results) if ranks else None)
    if is_compared and by_accuracy:
        claims = [claim_document(study, results, cells, claim_list) for claim_list in study.claims]
        documents += [spread_document(table) for table in tables if table.experiment.main]
        documents.append(tuned_document(study, results, cells))
        documents += [reproduction(study, results, cells, judged, counts), *claims]
        documents.append(dataset_document(study) if request.is_whole else None)
        sentences += [f"{document.title}: {document.summary}" for document in claims if document]
    maps = {table.experiment.name: verdict_map(table) for table in tables if table.experiment.competes}
    shown_documents = [document for document in documents if document]
    return Part(
        study.name,
        study.title if by_accuracy else f"{study.title}, by {TITLES[results.metric]}",
        len(_runs(shown_documents, results)),
        sentences,
        scores(study, counts),
        ranks,
        {name: verdicts for name, verdicts in maps.items() if verdicts},
        shown_documents,
    )


def _figures(table: DocumentCells, drawings: Drawings | None) -> Iterator[Figure]:
    """An experiment's figures, each of which is begun to be drawn."""
    for figure in charts.figures(table.results, table.study, table.experiment, table.cells):
        if drawings:
            drawings.begin(figure)
        yield figure


def _runs(documents: Iterable[Document], results: Results) -> pd.DataFrame:
    """The runs behind documents, each once."""
    places = {place for document in documents for place in document.cells["place"]}
    return results.members[results.members["place"].isin(places)].drop_duplicates("run")


def _runs_outside_tables(runs: pd.DataFrame, plans: Plans) -> list[str]:
    """Columns with runs that no table of any study has, with the runs' methods."""
    columns = {
        astuple(column)
        for experiments in plans.values()
        for experiment in experiments
        for column in experiment.columns
    }
    return [
        f"{' '.join(map(str, where))}: {', '.join(sorted(part['method'].unique()))}"
        for where, part in parts_of(runs[~runs["special"]], WHERE)
        if where not in columns
    ]
