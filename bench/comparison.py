"""One's own method against a study's methods: what is to run, and where it then stands."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from bench import registry
from bench.data import Family
from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.frames.graded_cells import collect, values_of
from bench.frames.ranking import TASK, Ranking, rank
from bench.frames.stored_runs import WHERE, UsualRuns, usual_of
from bench.grids import Filters, Grid, Planned, expand, load_grid, requested_grid
from bench.grids.grid import Line
from bench.metric_names import ACCURACY, Metric
from bench.report.document import Table, listing
from bench.report.ranking import task_label
from bench.resolve import Overrides
from bench.runner.plan import Step, data_at_hand, make_plan
from bench.statistics.paired import of_one
from bench.store.tables import Stored, Tables
from bench.studies.experiment import usual_cell
from bench.studies.measures import MEASURES
from bench.studies.settings import Column
from bench.studies.study import STUDIES, Study, data_study
from bench.studies.wording import number, ranges, signed, with_std

RIVALS: dict[Family, str] = {"graph": "fedsheafhn", "hypergraph": "fedhgn", "images": "fedaghn"}
"""The study that a method is compared in where it has the data; its methods run on data that no study has."""

SEEDS = (0, 1, 2)
"""Seeds on such data unless somebody says otherwise."""

AHEAD = ["difference", "low", "high", "p_holm", "verdict"]
"""What the method that is compared has over another one, on the seeds of both."""

STANDINGS = [*TASK, "method", "title", "rank", "mean", "std", "seeds", *AHEAD]
"""Columns of ``bench.compare``."""


def methods_in(file: Path) -> list[str]:
    """Names of the methods that a Python file holds, at least one, which this process now knows."""
    module = registry.add_plugin(file)
    names = [name for name, kind in METHODS.all().items() if inspect.getmodule(kind) is module]
    if not names:
        expected = "a class that extends bench.engine.method.Method and has a name of its own"
        raise RequestError(f"{file.name} holds no method: expected {expected}")
    return names


def asked(
    method: str, filters: Filters, overrides: Overrides, study: str | None = None
) -> tuple[Study, list[Planned]]:
    """A study with a method among its lines, and the method's runs in it: the study of that name, or the
    first that has the data set of ``filters``. Where none has it, a study is made of the data set, with the
    runs of a paper's methods, too. A wrong name or override is a ``RequestError``.
    """
    (dataset,) = filters.datasets
    rivals = RIVALS[DATASETS.named(dataset).family]
    for name in [study] if study else [rivals, *STUDIES.all()]:
        found = STUDIES.named(name)()
        if grid := _grid_on(found, dataset, method):
            return _in_study(found, method, grid, filters, overrides)
    if study:
        raise RequestError(f"study {study} compares no methods on {dataset}")
    return _without_study(STUDIES.named(rivals)(), method, filters, overrides)


def _grid_on(study: Study, dataset: str, method: str) -> Grid | None:
    """The first grid whose table compares methods on a data set, for the method alone: in the settings in
    which it runs the study's baseline there.
    """
    for name in dict.fromkeys(table.grid for table in study.experiments if table.competes):
        grid = load_grid(name)
        settings = tuple(
            setting.model_copy(update={"methods": (method,)})
            for setting in grid.settings
            if study.baseline in (setting.methods or grid.methods) and dataset in setting.datasets
        )
        if settings:
            return grid.model_copy(update={"settings": settings})
    return None


def _in_study(
    study: Study, method: str, grid: Grid, filters: Filters, overrides: Overrides
) -> tuple[Study, list[Planned]]:
    """The method in all tables of a study that compare methods, under settings of its own.

    Overrides are for the method's own hyper-parameters: all else is as the other methods have it.
    """
    for key in overrides:
        if not key.startswith("method."):
            problem = "a comparison keeps the protocol and client model of the other methods"
            raise RequestError(f"--set {key}: {problem}; only method.* can be set")
    experiments = []
    for table in study.experiments:
        hosts = [line for line in table.lines if line.method == study.baseline and not line.settings]
        if table.competes and hosts:  # a main table has no lines and shows whatever its columns hold
            own_line = Line(method, settings=overrides, only=hosts[0].only, points=hosts[0].points)
            table = replace(table, lines=(*table.lines, own_line))
        experiments.append(table)
    kind = type(type(study).__name__, (type(study),), {"experiments": tuple(experiments)})
    return kind(), expand(grid, filters, overrides)


def _without_study(
    rivals: Study, method: str, filters: Filters, overrides: Overrides
) -> tuple[Study, list[Planned]]:
    """The method and the methods of a study on a data set that no study has."""
    names = [line.method for line in rivals.lines if line.method == line.runs and line.method != method]
    filters = replace(filters, seeds=filters.seeds or SEEDS)
    shared = {key: value for key, value in overrides.items() if not key.startswith("method.")}
    runs = expand(requested_grid(None, replace(filters, methods=(method,))), overrides=overrides)
    runs += expand(requested_grid(None, replace(filters, methods=tuple(names))), overrides=shared)
    columns = {Column(*run.names[:3]) for run in runs}
    return data_study(filters.datasets[0], columns, {*names, method})(), runs


def plan(
    method: str, runs: Sequence[Planned], rows: Mapping[str, Stored], roots: tuple[Path, ...]
) -> list[Step]:
    """What a database lacks of the runs; those of the method are made again where other sources made them."""
    steps = []
    for step in make_plan(runs, rows, data_at_hand(roots)):
        is_changed = step.changed and step.planned.method == method
        steps.append(replace(step, to_run=step.to_run or is_changed))
    return steps


def usual_runs(study: Study, runs: Iterable[Planned]) -> UsualRuns:
    """The usual settings: those of the study's grids, and those of the runs planned here."""
    usual = usual_of(study.grids)
    drawn = {where[:3] for where, one in usual.items() if one.per_seed}
    own: UsualRuns = {}
    for run in runs:  # of several points of a column the first is the usual one
        own.setdefault((*run.names[:3], run.method), usual_cell(run.spec, run.names[:3] in drawn))
    return {**usual, **own}


def compare(
    source: Tables, study: Study, method: str, runs: Sequence[Planned], metric: Metric = ACCURACY
) -> tuple[Ranking, pd.DataFrame]:
    """The ranking of all methods over the tasks of the method's runs, and where it stands in each: a row a
    task and method with numbers, the best first. Without any numbers to compare it is a ``RequestError``.

    To the columns of ``Ranking.cells`` come title, label (the task in words), rank (equal means share it),
    seeds, ``AHEAD``, corrected over the method's own tests in the task, and of the method itself below (mean
    number of its clients below the baseline).
    """
    results = collect(source, [study], metric, usual_runs=usual_runs(study, runs))
    names = {method, *(line.method for line in study.lines)}
    columns = pd.DataFrame([run.names[:3] for run in runs], columns=WHERE).drop_duplicates()
    cells = results.cells[results.cells["method"].isin(names)].merge(columns, on=WHERE)
    ranking = rank(study, results, cells, names)
    if ranking is None or method not in set(ranking.cells["method"]):
        raise RequestError(
            f"nothing to compare: {method} or the other methods have no numbers in these cells"
        )
    seeds = results.members[results.members["is_done"]].groupby("place")["seed"].agg(list)
    rows = ranking.cells.drop(columns=["difference", "low", "high", "verdict"])
    own = rows[rows["method"] == method]
    rows = rows[rows["task"].isin(own["task"])]
    below = values_of(results, own, MEASURES["below_local"]).groupby("place")["value"].mean()
    labels = {task: task_label(ranking, cells) for task, cells in rows.groupby("task")}
    rows = rows.assign(
        title=rows["method"].map(ranking.titles),
        label=rows["task"].map(labels),
        rank=rows.groupby("task")["mean"].rank(method="min", ascending=False).astype(int),
        seeds=rows["place"].map(seeds),
        below=rows["place"].map(below),
    )
    tests = [of_one(method, ranking.tests[ranking.tests["task"] == task]) for task in own["task"]]
    ahead = pd.concat(tests).rename(columns={"second": "method"})[["task", "method", *AHEAD]]
    rows = rows.merge(ahead, how="left", on=["task", "method"])
    return ranking, rows.sort_values(["task", "rank"], kind="stable", ignore_index=True)


def tables(rows: pd.DataFrame) -> list[Table]:
    """All methods of each task, the best first, in 80 columns; the report has those of many."""
    found = []
    for label, task in rows.groupby("label", sort=False):
        texts = {
            "Method": task["title"],
            "Place": task["rank"].astype(str),
            "Test": list(map(with_std, task["mean"], task["std"])),
            "Seeds": task["seeds"].map(ranges),
            "Ahead by,\nsame seeds": [number(each, "+.2f") for each in task["difference"]],
            "Verdict": task["verdict"].fillna("-"),
        }
        found.append(listing("others", str(label), pd.DataFrame(texts).set_index("Method")))
    return found if len(found) <= 3 else []


def sentences(method: str, ranking: Ranking, rows: pd.DataFrame) -> list[str]:
    """The method's place, the number of its clients below the baseline, and what it has over the best other
    one, by task; over several tasks its mean rank, and who it is significantly better and worse than.
    """
    lines = []
    for place, task in rows.groupby("label", sort=False):
        own, others = task[task["method"] == method].iloc[0], task[task["method"] != method]
        below = f"{number(own['below'], '.1f')} clients below {ranking.baseline_title}"
        lines.append(f"{place}: place {own['rank']} of {len(task)}, {below}.")
        lines.append(f"{place}: {_against_best(others.iloc[0])}.")
    if (count := rows["task"].nunique()) > 1:
        place = f"Over {count} tasks"
        overall = ranking.ranks.set_index("method").loc[method]
        ends = f"95 % interval {overall['low']:.2f} to {overall['high']:.2f}"
        lines.append(f"{place}: mean rank {overall['rank']:.2f} of {len(ranking.ranks)} ({ends}).")
        tests = of_one(method, ranking.over_tasks)
        for verdict in ("better", "worse"):
            names = tests.loc[tests["verdict"] == verdict, "second"].map(ranking.titles)
            lines += [f"{place}: significantly {verdict} than {', '.join(names)}."] if len(names) else []
    return lines


def _against_best(best: pd.Series[Any]) -> str:
    """What the method has in a task over the other method of highest mean."""
    rival = f"{best['title']}, the best other"
    if pd.isna(best["low"]):
        return f"too few seeds and partitions in common with {rival}: no test"
    interval = f"95 % interval {signed(best['low'])} to {signed(best['high'])}"
    test = f"({interval}, corrected p {best['p_holm']:.2g}): {best['verdict']}"
    return f"{signed(best['difference'])} points against {rival} {test}"
