"""Every cell of every study over one source of results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bench.errors import RequestError
from bench.metric_names import ACCURACY, Metric
from bench.studies.cell_builder import cells_of
from bench.studies.cells import Cells, Selection
from bench.studies.declarations import check_claims, check_methods, check_targets
from bench.studies.experiment import ExperimentPlan
from bench.studies.metric import check_kept
from bench.studies.planned import UsualCells, usual_cells
from bench.studies.results import Results
from bench.studies.source import Source
from bench.studies.study import Study
from bench.tune.apply import Configurations, configurations


def selected_cells(
    study: Study, plans: Iterable[ExperimentPlan], results: Results, selection: Selection
) -> tuple[Cells, ...]:
    """The selected cells of every experiment that has some."""
    experiments_cells = [cells_of(study, plan, results, selection) for plan in plans]
    return tuple(cells for cells in experiments_cells if cells.by_key)


def plans_of(studies: Mapping[str, Study | type[Study]]) -> dict[str, list[ExperimentPlan]]:
    """Every experiment of studies by their names.

    Raises:
        RequestError: a study names something that there is not.
    """
    plans = {}
    for name, study in studies.items():
        check_methods(study)
        plans[name] = [ExperimentPlan(experiment, study.lines) for experiment in study.experiments]
        check_targets(study, plans[name])
        check_claims(study() if isinstance(study, type) else study, plans[name])
    return plans


def results_of(
    source: Source,
    plans: Mapping[str, Iterable[ExperimentPlan]],
    settings: UsualCells,
    metric: Metric = ACCURACY,
    winners: Configurations | None = None,
) -> Results:
    """The results of a source for these experiments; ``settings`` are the usual ones of every cell,
    ``winners`` the tuned ones (None: all that are at hand).

    Raises:
        RequestError: the source has no runs, or none with this metric.
    """
    hashes = {digest for experiments in plans.values() for plan in experiments for digest in plan.hashes}
    results = Results(source, settings, hashes, winners or configurations(), metric)
    if results.runs.empty:
        raise RequestError("the database has no runs yet: run 'bench sweep --grid quickstart' first")
    if metric != ACCURACY:
        check_kept(metric, *results.metric_coverage())
    return results


def collect(
    source: Source, studies: Iterable[Study], metric: Metric = ACCURACY
) -> tuple[Results, list[tuple[Study, tuple[Cells, ...]]]]:
    """The results, and each study with its experiments: everything that is planned, published or run.

    Raises:
        RequestError: as ``results_of``.
    """
    by_name = {study.name: study for study in studies}
    plans = plans_of(by_name)
    settings = usual_cells(grid for study in by_name.values() for grid in study.grids)
    results = results_of(source, plans, settings, metric)
    return results, [
        (study, selected_cells(study, plans[name], results, Selection())) for name, study in by_name.items()
    ]
