"""One's own method against a study's methods: what is to run, and where it then stands."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from pathlib import Path

from bench import registry
from bench.engine.methods import METHODS
from bench.errors import RequestError, unknown
from bench.grids import Filters, Grid, Planned, expand, load_grid
from bench.grids.experiment import Line
from bench.grids.grid import Setting
from bench.metric_names import ACCURACY, Metric
from bench.report.standing import Standing, standings
from bench.resolve import Overrides
from bench.spec import RunSpec
from bench.studies.cells import Selection
from bench.studies.collect import selected_cells
from bench.studies.experiment import ExperimentPlan
from bench.studies.metric import check_kept, client_values
from bench.studies.planned import PlannedCell, UsualCells, usual_cells
from bench.studies.ranking import Ranking, rank
from bench.studies.results import Results
from bench.studies.settings import Column, settings_of
from bench.studies.source import Source
from bench.studies.study import STUDIES, Study
from bench.sweep.plan import Plan


def own_method(file: Path) -> str:
    """The name of the one method that a Python file holds, which this process now knows.

    Raises:
        RequestError: the file cannot be imported, or holds no method or several.
    """
    module = registry.add_plugin(file)
    names = [name for name, kind in METHODS.all().items() if inspect.getmodule(kind) is module]
    if len(names) != 1:
        raise RequestError(
            f"{file.name}: expected one class with a name of its own that extends "
            f"bench.engine.method.Method, got {', '.join(names) or 'none'}"
        )
    return names[0]


def find_study(name: str | None, *datasets: str) -> Study:
    """The study of that name; without one the first that compares methods on all of the data sets, those
    first that have a main table of one.

    Raises:
        RequestError: no such study, or, without a name, none with one of the data sets or with all of them.
    """
    if name is not None:
        return STUDIES.named(name)()

    def lacks_main_table(study: Study) -> bool:
        columns = (column for table in study.experiments if table.main for column in table.columns)
        return all(column.dataset not in datasets for column in columns)

    studies = sorted((kind() for kind in STUDIES.all().values()), key=lacks_main_table)
    for study in studies:
        if _datasets(study).issuperset(datasets):
            return study
    known_datasets = {name for study in studies for name in _datasets(study)}
    for dataset in datasets:
        if dataset not in known_datasets:
            raise unknown("data set of the studies:", dataset, known_datasets)
    raise RequestError(f"no study compares methods on all of {', '.join(datasets)}: name fewer of them")


def _datasets(study: Study) -> set[str]:
    """Data sets on which the study compares methods with its baseline."""
    return {name for name in {column.dataset for column in study.columns} if _settings(study, name)}


def _settings(study: Study, dataset: str, method: str = "") -> tuple[Grid, tuple[Setting, ...]] | None:
    """The first grid whose table compares methods on the data set, and the settings in which it runs the
    study's baseline there, for the method.
    """
    for name in dict.fromkeys(table.grid for table in study.experiments if table.competes):
        grid = load_grid(name)
        settings = grid.settings_beside(study.baseline, method, {})
        settings = tuple(setting for setting in settings if dataset in setting.datasets)
        if settings:
            return grid, settings
    return None


def planned_runs(study: Study, method: str, filters: Filters, overrides: Overrides) -> list[Planned]:
    """The method's runs in every setting in which the study's baseline runs on the data sets of ``filters``,
    as far as these want them.

    Overrides are for the method's own hyper-parameters: all else is as the other methods have it.

    Raises:
        RequestError: no table of the study compares methods on one of the data sets, or a filter or an
            override is wrong.
    """
    for key in overrides:
        if not key.startswith("method."):
            raise RequestError(
                f"--set {key}: a comparison keeps the protocol and client model of the other methods; "
                "only method.* can be set; for other settings of all methods write a grid "
                "(docs/examples/own_grid.toml) for bench sweep --grid and bench report --grid"
            )
    runs = []
    for dataset in dict.fromkeys(filters.datasets):
        grid_settings = _settings(study, dataset, method)
        if grid_settings is None:
            raise unknown(f"data set of {study.name}", dataset, _datasets(study))
        grid, settings = grid_settings
        grid = grid.model_copy(update={"settings": settings})
        runs += expand(grid, replace(filters, datasets=(dataset,)), overrides)
    return runs


def with_guest(study: Study, method: str, overrides: Overrides) -> type[Study]:
    """The study with the method in all tables that compare methods, under settings of its own."""
    guest = Line(method, settings=overrides)
    experiments = tuple(
        replace(table, guests=(guest,), host=study.baseline)
        if table.competes and not table.main  # a main table shows whatever its columns hold
        else table
        for table in study.experiments
    )
    return type(type(study).__name__, (type(study),), {"experiments": experiments})


def with_changed(plan: Plan) -> Plan:
    """The plan of the method's runs, those to do again, too, that other sources have made."""
    return Plan(tuple(replace(step, to_run=step.to_run or step.changed) for step in plan.steps), plan.history)


def expectations(study: Study, runs: list[Planned]) -> UsualCells:
    """What a report expects: the study's own cells, and the method's runs in the settings planned here."""
    own_cells: UsualCells = {}
    for run in runs:
        # Of several points of a column the first is the usual one.
        own_cells.setdefault((Column(*run.names[:3]), run.method), PlannedCell(settings_of(run.spec)))
    return {**usual_cells(study.grids), **own_cells}


def _columns(runs: list[Planned]) -> frozenset[Column]:
    return frozenset(Column(*run.names[:3]) for run in runs)


def check_others(source: Source, study: Study, method: str, runs: list[Planned], metric: Metric) -> str:
    """Before the method's runs are made: that there will be something to compare them with. A sentence names
    the methods that will be missing, as none of their runs has the metric; empty where none is.

    Raises:
        RequestError: no run of another method in their tasks, under their protocol, has the metric.
    """
    rows, columns, names = source.runs(), _columns(runs), {line.method for line in study.lines} - {method}
    done_runs = rows[(rows["state"] == "done") & rows["method"].isin(names)]
    tasks = zip(done_runs["dataset"], done_runs["scenario"], done_runs["clients"], strict=True)
    done_runs = done_runs[[Column(*names) in columns for names in tasks]]
    protocols = {_common_protocol(run.spec) for run in runs}
    specs = map(RunSpec.model_validate_json, done_runs["spec"])
    other_runs = done_runs[[_common_protocol(spec) in protocols for spec in specs]]
    if other_runs.empty:
        raise RequestError(f"nothing to compare with: no other method of {study.name} was run there")
    run_ids = other_runs["id"].tolist()
    values = client_values(source, run_ids, metric, stage="trained", split="test", rule="last")
    has_metric = other_runs["id"].isin(values["run_id"])
    gap = check_kept(metric, len(other_runs), int((~has_metric).sum()))
    missing = set(other_runs["method"]) - set(other_runs["method"][has_metric])
    titles = ", ".join(line.title or line.method for line in study.lines if line.method in missing)
    return f"Not compared: {titles}. {gap}" if titles else ""


def _common_protocol(spec: RunSpec) -> str:
    """What a run's protocol shares with those of other methods: not which clients are drawn, nor what
    methods choose for themselves.
    """
    own_keys = {key for method in METHODS.all().values() for key in method.protocol}
    return json.dumps(spec.protocol.model_dump(mode="json", exclude={"partition_seed", *own_keys}))


def compare(
    source: Source, study: Study, method: str, runs: list[Planned], metric: Metric = ACCURACY
) -> tuple[Ranking, list[Standing]]:
    """The ranking of all methods over the tasks of the method's runs, and its standing in each.

    Raises:
        RequestError: no run of the method has numbers, or no other method has any in its tasks.
    """
    results = Results(source, expectations(study, runs), metric=metric)
    methods = frozenset({method, *(line.method for line in study.lines)})
    selection = Selection(columns=_columns(runs), methods=methods)
    plans = [ExperimentPlan(table, study.lines) for table in study.experiments if table.competes]
    ranking = rank(study, selected_cells(study, plans, results, selection), selection)
    method_standings = standings(ranking, method) if ranking else []
    if ranking is None or not method_standings:
        raise RequestError(
            f"nothing to compare: {method} or the other methods have no numbers in these cells"
        )
    return ranking, method_standings
