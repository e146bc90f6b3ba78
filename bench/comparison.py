"""Compares a user's own method with a study's methods: which runs to make, and how the method ranks."""

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
from bench.frames.graded_cells import Results, collect, values_of
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
"""The study to search first for a data set. If no study has the data set, this study's methods run on it."""

SEEDS = (0, 1, 2)
"""Default seeds on a data set that no study has."""

AHEAD = ["difference", "low", "high", "p_holm", "verdict"]
"""Columns for the lead of the compared method over another method, on common seeds."""

STANDINGS = [*TASK, "method", "title", "rank", "mean", "std", "seeds", *AHEAD]
"""Columns of ``bench.compare``."""


def methods_in(file: Path) -> list[str]:
    """Register the methods of a Python file in this process and return their names (at least one)."""
    module = registry.add_plugin(file)
    names = [name for name, kind in METHODS.all().items() if inspect.getmodule(kind) is module]
    if not names:
        expected = "a class that extends bench.engine.method.Method and has a name of its own"
        raise RequestError(f"{file.name} holds no method: expected {expected}")
    return names


def asked(
    method: str, filters: Filters, overrides: Overrides, study: str | None = None
) -> tuple[Study, list[Planned]]:
    """A study with the method added to its lines, and the method's runs in it. Without ``study`` the first
    study with the data set of ``filters`` is used. If no study has the data set, a new study is made, and the
    runs include the other methods. A wrong name or override is a ``RequestError``.
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
    """The study's first grid that compares methods on a data set, reduced to ``method``. Settings that do not
    run the study's baseline on the data set are left out. None if there is no such grid.
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
    """Add the method, with its settings, to all tables of a study that compare methods.

    Overrides may only set the method's hyper-parameters. The other settings are the same for all methods.
    """
    for key in overrides:
        if not key.startswith("method."):
            problem = "a comparison keeps the protocol and client model of the other methods"
            raise RequestError(f"--set {key}: {problem}; only method.* can be set")
    experiments = []
    for table in study.experiments:
        hosts = [line for line in table.lines if line.method == study.baseline and not line.settings]
        if table.competes and hosts:  # a main table needs no lines: it shows all methods of its columns
            own_line = Line(method, settings=overrides, only=hosts[0].only, points=hosts[0].points)
            table = replace(table, lines=(*table.lines, own_line))
        experiments.append(table)
    kind = type(type(study).__name__, (type(study),), {"experiments": tuple(experiments)})
    return kind(), expand(grid, filters, overrides)


def _without_study(
    rivals: Study, method: str, filters: Filters, overrides: Overrides
) -> tuple[Study, list[Planned]]:
    """A new study, for a data set that no study has, of the method and the methods of ``rivals``."""
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
    """The steps for runs that a database lacks. Runs of ``method`` from other source code are made again."""
    steps = []
    for step in make_plan(runs, rows, data_at_hand(roots)):
        is_changed = step.changed and step.planned.method == method
        steps.append(replace(step, to_run=step.to_run or is_changed))
    return steps


def usual_runs(study: Study, runs: Iterable[Planned]) -> UsualRuns:
    """The usual settings of the study's grids and of the planned runs; the grids have priority."""
    usual = usual_of(study.grids)
    drawn = {where[:3] for where, one in usual.items() if one.per_seed}
    own: UsualRuns = {}
    for run in runs:  # if a column has several points, the first point is the usual one
        own.setdefault((*run.names[:3], run.method), usual_cell(run.spec, run.names[:3] in drawn))
    return {**usual, **own}


def compare(
    source: Tables, study: Study, method: str, runs: Sequence[Planned], metric: Metric = ACCURACY
) -> tuple[Results, Ranking, pd.DataFrame]:
    """What was collected, the ranking of all methods over the tasks of ``runs``, and a frame with a row for
    each task and method with numbers, the best first. Without numbers to compare, it raises ``RequestError``.

    The frame adds columns to ``Ranking.cells``: title, label (the task in words), rank (equal means share a
    rank), seeds, and ``AHEAD``, corrected over the method's own tests in the task. Rows of ``method`` also
    have below: the mean number of its clients below the baseline.
    """
    plans = {name: kind.experiments for name, kind in (STUDIES.all() | {study.name: type(study)}).items()}
    results = collect(source, [study], metric, plans=plans, usual_runs=usual_runs(study, runs))
    names = {method, *(line.method for line in study.lines)}
    columns = pd.DataFrame([run.names[:3] for run in runs], columns=WHERE).drop_duplicates()
    cells = results.cells[results.cells["method"].isin(names)].merge(columns, on=WHERE)
    ranking = rank(study, results, cells, names)
    if ranking is None or method not in set(ranking.cells["method"]):
        raise RequestError(f"nothing to compare: {method} or the others have no numbers in these cells")
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
    return results, ranking, rows.sort_values(["task", "rank"], kind="stable", ignore_index=True)


def tables(rows: pd.DataFrame) -> list[Table]:
    """A table of all methods for each task, the best first, 80 characters wide; none for over 3 tasks."""
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
    """For each task: the method's place, the number of its clients below the baseline, and its lead over the
    best other method. For several tasks also its mean rank and the significantly better and worse methods.
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
    """The method's lead, in words, over the other method with the highest mean in a task."""
    rival = f"{best['title']}, the best other"
    if pd.isna(best["low"]):
        return f"too few seeds and partitions in common with {rival}: no test"
    interval = f"95 % interval {signed(best['low'])} to {signed(best['high'])}"
    test = f"({interval}, corrected p {best['p_holm']:.2g}): {best['verdict']}"
    return f"{signed(best['difference'])} points against {rival} {test}"
