"""One's own method against a study's methods: what is to run, and where it then stands."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench import registry
from bench.data import Family
from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.errors import RequestError, unknown
from bench.frames.graded_cells import collect, values_of
from bench.frames.ranking import TASK, Ranking, rank
from bench.frames.stored_runs import WHERE, Usual, UsualRuns, usual_of
from bench.grids import Filters, Grid, Planned, expand, load_grid
from bench.grids.expand import ad_hoc
from bench.grids.experiment import Line
from bench.grids.grid import Setting
from bench.metric_names import ACCURACY, Metric
from bench.report.ranking import task_label
from bench.report.table import Table, listing
from bench.resolve import Overrides
from bench.runner.plan import Step
from bench.statistics.paired import of_one
from bench.store.tables import Tables
from bench.studies.measures import MEASURES
from bench.studies.settings import Column, settings_of
from bench.studies.study import STUDIES, Study, data_study
from bench.studies.wording import number, ranges, signed, with_std

RIVALS: dict[Family, str] = {"graph": "fedsheafhn", "hypergraph": "fedhgn", "images": "fedaghn"}
"""The study whose methods run on data that no study has."""

SEEDS = (0, 1, 2)
"""Seeds on such data unless somebody says otherwise."""

AHEAD = ["difference", "low", "high", "p_holm", "verdict"]
"""Columns of ``standings`` about the method that is compared and another one."""


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


class Asked(NamedTuple):
    """What a comparison is to show: a study with the method among its lines, the method's runs in it, and,
    of data that no study has, those of the other methods, too.
    """

    study: Study
    runs: list[Planned]
    others: list[Planned]


def asked(study: str | None, method: str, filters: Filters, overrides: Overrides) -> Asked:
    """What to compare a method on; of data without a study with the methods of a paper on such data, in the
    same settings.

    Raises:
        RequestError: as ``find_study`` and ``planned_runs``, or several data sets without a study.
    """
    studies = [kind() for kind in STUDIES.all().values()]
    with_study = {name for each in studies for name in _datasets(each)}
    without_study = [name for name in filters.datasets if name in DATASETS.all() and name not in with_study]
    if study is not None or not without_study:
        its_study = find_study(study, *filters.datasets)
        runs = planned_runs(its_study, method, filters, overrides)
        return Asked(with_guest(its_study, method, overrides)(), runs, [])
    if len(filters.datasets) > 1:
        raise RequestError(f"no study has {without_study[0]}: name this data set alone")
    rivals = STUDIES.named(RIVALS[DATASETS.named(without_study[0]).family])
    names = [line.method for line in rivals.lines if line.method == line.runs]
    choice = replace(filters, seeds=filters.seeds or SEEDS)
    runs = expand(ad_hoc(replace(choice, methods=(method,))), overrides=overrides)
    shared = {key: value for key, value in overrides.items() if not key.startswith("method.")}
    others = expand(
        ad_hoc(replace(choice, methods=tuple(name for name in names if name != method))), overrides=shared
    )
    columns = {Column(*run.names[:3]) for run in runs}
    return Asked(data_study(without_study[0], columns, {*names, method})(), runs, others)


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
                "only method.* can be set"
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
    experiments = []
    for table in study.experiments:
        hosts = [line for line in table.lines if line.method == study.baseline and not line.settings]
        if table.competes and hosts:  # a main table has no lines and shows whatever its columns hold
            guest = Line(method, settings=overrides, only=hosts[0].only, points=hosts[0].points)
            table = replace(table, lines=(*table.lines, guest))
        experiments.append(table)
    return type(type(study).__name__, (type(study),), {"experiments": tuple(experiments)})


def with_changed(plan: Iterable[Step]) -> list[Step]:
    """The plan of the method's runs, those to do again, too, that other sources have made."""
    return [replace(step, to_run=step.to_run or step.changed) for step in plan]


def usual_runs(study: Study, runs: list[Planned]) -> UsualRuns:
    """The usual settings: those of the study's grids, and of the method those of its runs planned here."""
    usual = usual_of(study.grids)
    drawn = {where[:3] for where, one in usual.items() if one.per_seed}
    own: UsualRuns = {}
    for run in runs:
        spec, per_seed = run.spec, run.names[:3] in drawn
        cell = spec.cell_on_any_partition if per_seed else spec.cell
        # Of several points of a column the first is the usual one.
        own.setdefault((*run.names[:3], run.method), Usual(cell, settings_of(spec, per_seed), (), per_seed))
    return {**usual, **own}


class Comparison(NamedTuple):
    """A method beside all others of a study.

    rows  a row a task and method with numbers, the best first: the columns of ``Ranking.cells``, title, rank
          (1 the best mean; equal means share it), seeds, and what the method that is compared has over it on
          the seeds of both (``AHEAD``), corrected over its own tests in the task
    own   the rows of the method itself, with below (mean number of its clients below the baseline)
    """

    method: str
    ranking: Ranking
    rows: pd.DataFrame
    own: pd.DataFrame

    def others(self, task: int) -> pd.DataFrame:
        """The rows of the other methods in a task."""
        return self.rows[(self.rows["task"] == task) & (self.rows["method"] != self.method)]

    def label(self, task: int) -> str:
        """A task in words: ``Cora, non-overlapping, 10 clients``, with the point."""
        return task_label(self.ranking, self.rows[self.rows["task"] == task])


def compare(
    source: Tables,
    study: Study,
    method: str,
    runs: list[Planned],
    metric: Metric = ACCURACY,
    others: Sequence[Planned] = (),
) -> Comparison:
    """The ranking of all methods over the tasks of the method's runs, and where it stands in each. ``others``
    are runs of other methods that no grid of the study plans.

    Raises:
        RequestError: no run of the method has numbers, or no other method has any in its tasks.
    """
    results = collect(source, [study], metric, usual_runs=usual_runs(study, [*runs, *others]))
    names = {method, *(line.method for line in study.lines)}
    columns = pd.DataFrame([run.names[:3] for run in runs], columns=WHERE).drop_duplicates()
    cells = results.cells[results.cells["method"].isin(names)].merge(columns, on=WHERE)
    ranking = rank(study, results, cells, names)
    if ranking is None or method not in set(ranking.cells["method"]):
        raise RequestError(
            f"nothing to compare: {method} or the other methods have no numbers in these cells"
        )
    done = results.members[results.members["is_done"]]
    seeds = done.groupby("place")["seed"].agg(list)
    rows = ranking.cells.drop(columns=["difference", "low", "high", "verdict"])
    ranks = rows.groupby("task")["mean"].rank(method="min", ascending=False).astype(int)
    rows = rows.assign(title=rows["method"].map(ranking.titles), rank=ranks, seeds=rows["place"].map(seeds))
    tests = [
        of_one(method, ranking.tests[ranking.tests["task"] == task]).assign(task=task)
        for task in rows.loc[rows["method"] == method, "task"]
    ]
    ahead = pd.concat(tests).rename(columns={"second": "method"})[["task", "method", *AHEAD]]
    rows = rows.merge(ahead, how="left", on=["task", "method"])
    rows = rows.sort_values(["task", "rank"], kind="stable", ignore_index=True)
    own = rows[rows["method"] == method]
    below = values_of(results, own, MEASURES["below_local"]).groupby("place")["value"].mean()
    return Comparison(method, ranking, rows, own.assign(below=own["place"].map(below)))


def standings(comparison: Comparison) -> pd.DataFrame:
    """All methods in every task, the best first.

    A row names the task and the method (dataset, scenario, clients, point, method, title), says what it
    reaches (rank; mean and std in percent; seeds) and what the method that is compared has over it on the
    seeds of both: difference in points, its 95 % interval low to high, p_holm, corrected over the method's
    own tests, and verdict.
    """
    return comparison.rows[[*TASK, "method", "title", "rank", "mean", "std", "seeds", *AHEAD]]


def others_table(comparison: Comparison, task: int) -> Table:
    """The method among all others of a task, the best first, in 80 columns.

    Ahead by is what the method has over each of them on the seeds and clients of both, with its verdict.
    """
    rows = comparison.rows[comparison.rows["task"] == task]
    texts = {
        "Method": rows["title"],
        "Place": rows["rank"].astype(str),
        "Test": list(map(with_std, rows["mean"], rows["std"])),
        "Seeds": rows["seeds"].map(ranges),
        "Ahead by,\nsame seeds": [number(each, "+.2f") for each in rows["difference"]],
        "Verdict": rows["verdict"].fillna("-"),
    }
    title = f"{comparison.label(task)}: {comparison.ranking.titles[comparison.method]} among the others"
    return listing("others", title, pd.DataFrame(texts).set_index("Method"))


def sentences(comparison: Comparison) -> list[str]:
    """The method's place, the number of its clients below the baseline, what it has over the best other one,
    and who it is significantly better and worse than, by task; and its mean rank over several tasks.
    """
    ranking, method = comparison.ranking, comparison.method
    lines = []
    for row in comparison.own.to_dict("records"):
        place, others = comparison.label(row["task"]), comparison.others(row["task"])
        below = f"{number(row['below'], '.1f')} clients below {ranking.baseline_title}"
        lines.append(f"{place}: place {row['rank']} of {1 + len(others)}, {below}.")
        lines.append(f"{place}: {_against_best(others.iloc[0])}.")
        lines += _significant(place, others["title"], others["verdict"])
    if len(comparison.own) > 1:
        place = f"Over {len(comparison.own)} tasks"
        overall = ranking.ranks.set_index("method").loc[method]
        ends = f"95 % interval {overall['low']:.2f} to {overall['high']:.2f}"
        lines.append(f"{place}: mean rank {overall['rank']:.2f} of {len(ranking.ranks)} ({ends}).")
        tests = of_one(method, ranking.over_tasks)
        lines += _significant(place, tests["second"].map(ranking.titles), tests["verdict"])
    return lines


def _significant(place: str, titles: pd.Series[str], verdicts: pd.Series[str]) -> list[str]:
    """The methods that the one compared is significantly better and worse than; nothing of none."""
    named = {verdict: ", ".join(titles[verdicts == verdict]) for verdict in ("better", "worse")}
    return [f"{place}: significantly {verdict} than {names}." for verdict, names in named.items() if names]


def _against_best(best: pd.Series[Any]) -> str:
    """What the method has in a task over the other method of highest mean."""
    rival = f"{best['title']}, the best other"
    if pd.isna(best["difference"]):
        return f"no seeds and partitions in common with {rival}: no test"
    text = f"{signed(best['difference'])} points against {rival}"
    if best["verdict"] == "no test":
        return f"{text}, on too few common seeds: no test"
    interval = f"95 % interval {signed(best['low'])} to {signed(best['high'])}"
    return f"{text} ({interval}, corrected p {best['p_holm']:.2g}): {best['verdict']}"
