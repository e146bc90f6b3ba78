"""One's own method against a study's methods: what is to run, and where it then stands."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
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
from bench.statistics.paired import common_ground, of_one
from bench.store.tables import Tables
from bench.studies.data_study import data_study
from bench.studies.measures import BELOW_BASELINE
from bench.studies.settings import Column, settings_of
from bench.studies.study import STUDIES, Study
from bench.studies.wording import gap, number, ranges, with_std

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


def _columns(runs: list[Planned]) -> pd.DataFrame:
    """The columns of the runs, each once."""
    return pd.DataFrame([run.names[:3] for run in runs], columns=WHERE).drop_duplicates()


class Comparison(NamedTuple):
    """A method beside all others of a study.

    own      its cells with numbers, a row a task: the columns of ``Ranking.cells``, rank (1 the best mean;
             equal means share it), methods (with numbers there), below (mean number of clients below the
             baseline), and tests: those with every other method, itself first, corrected over these alone
    seeds    place -> seeds with numbers
    """

    method: str
    ranking: Ranking
    own: pd.DataFrame
    seeds: dict[int, list[int]]

    def label(self, row: Any) -> str:
        """The task of a row: ``Cora, non-overlapping, 10 clients``, with the point."""
        return task_label(self.ranking, self.ranking.cells[self.ranking.cells["task"] == row["task"]])


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
    cells = results.cells[results.cells["method"].isin(names)].merge(_columns(runs), on=WHERE)
    ranking = rank(study, results, cells, names)
    if ranking is None or method not in set(ranking.cells["method"]):
        raise RequestError(
            f"nothing to compare: {method} or the other methods have no numbers in these cells"
        )
    tasks = ranking.cells.groupby("task")
    cells = ranking.cells.assign(
        rank=tasks["mean"].rank(method="min", ascending=False).astype(int),
        methods=tasks["method"].transform("size"),
    )
    own = cells[cells["method"] == method]
    below = values_of(results, own, BELOW_BASELINE).groupby("place")["value"].mean()
    tests = [of_one(method, ranking.tests[ranking.tests["task"] == task]) for task in own["task"]]
    own = own.assign(below=own["place"].map(below), tests=pd.Series(tests, own.index, dtype=object))
    done = results.members[results.members["is_done"]]
    seeds = {int(str(place)): part.tolist() for place, part in done.groupby("place")["seed"]}
    return Comparison(method, ranking, own, seeds)


def standings_table(comparison: Comparison, title: str) -> Table:
    """One row a task, in 80 columns; the data set is named where there are several.

    Better / worse count the methods that it is significantly better and worse than, of those it was tested
    against; Below the clients below the baseline; s and MB what a run takes and exchanges.
    """
    ranking, own = comparison.ranking, comparison.own
    rows = []
    for row in own.to_dict("records"):
        verdicts = row["tests"]["verdict"].tolist()
        tested = len(verdicts) - verdicts.count("no test")
        texts = {
            "Test": with_std(row["mean"], None if pd.isna(row["std"]) else row["std"]),
            "Place": f"{row['rank']}/{row['methods']}",
            "Better /\nworse": f"{verdicts.count('better')}/{verdicts.count('worse')} of {tested}",
            f"Below\n{ranking.baseline_title}": number(row["below"], ".1f"),
            "s": f"{row['seconds']:.1f}",
            "MB": f"{row['megabytes']:.0f}",
        }
        dataset = ranking.study.title_of(row["dataset"]) if own["dataset"].nunique() > 1 else ""
        place = " ".join(filter(None, (dataset, row["scenario"], str(row["clients"]), row["point"])))
        rows.append({"Task": place, **texts})
    return listing("standing", title, pd.DataFrame(rows).set_index("Task"))


def standings(comparison: Comparison, task: int | None = None) -> pd.DataFrame:
    """All methods in every task or in one, the best first.

    A row names the task and the method (dataset, scenario, clients, point, method, title), says what it
    reaches (rank; mean and std in percent; seeds) and what the method that is compared has over it on the
    seeds of both: difference in points, its 95 % interval low to high, p_holm, corrected over the method's
    own tests, and verdict.
    """
    ranking = comparison.ranking
    cells = ranking.cells[["task", "place", *TASK, "method", "mean", "std"]]
    cells = cells.assign(
        title=cells["method"].map(ranking.titles),
        rank=cells.groupby("task")["mean"].rank(method="min", ascending=False).astype(int),
        seeds=cells["place"].map(comparison.seeds),
    )
    own = comparison.own.to_dict("records")
    tests = pd.concat([row["tests"].assign(task=row["task"]) for row in own])
    tests = tests.rename(columns={"second": "method"})[["task", "method", *AHEAD]]
    cells = cells.merge(tests, how="left", on=["task", "method"]).sort_values(["task", "rank"], kind="stable")
    if task is not None:
        cells = cells[cells["task"] == task]
    return cells[[*TASK, "method", "title", "rank", "mean", "std", "seeds", *AHEAD]].reset_index(drop=True)


def others_table(comparison: Comparison, row: Mapping[Any, Any]) -> Table:
    """The method among all others of the task of a row, the best first, in 80 columns.

    Ahead by is what the method has over each of them on the seeds and clients of both, with its verdict.
    """
    rows = []
    for cell in standings(comparison, row["task"]).to_dict("records"):
        texts = {
            "Place": str(cell["rank"]),
            "Test": with_std(cell["mean"], None if pd.isna(cell["std"]) else cell["std"]),
            "Seeds": ranges(cell["seeds"]),
            "Ahead by,\nsame seeds": "-" if pd.isna(cell["difference"]) else gap(cell["difference"]),
            "Verdict": "-" if pd.isna(cell["verdict"]) else cell["verdict"],
        }
        rows.append({"Method": cell["title"], **texts})
    title = f"{comparison.label(row)}: {comparison.ranking.titles[comparison.method]} among the others"
    return listing("others", title, pd.DataFrame(rows).set_index("Method"))


def sentences(comparison: Comparison) -> list[str]:
    """What the method has over the best other one, and who it is significantly better and worse than, by
    task; and its place and the tests over several tasks.
    """
    ranking, method = comparison.ranking, comparison.method
    lines = []
    for row in comparison.own.to_dict("records"):
        place = comparison.label(row)
        lines.append(f"{place}: {_against_best(comparison, row)}.")
        lines += _significant(ranking, place, row["tests"])
    if len(comparison.own) > 1:
        place = f"Over {len(comparison.own)} tasks"
        overall = ranking.ranks.set_index("method").loc[method]
        text = (
            f"mean rank {overall['rank']:.2f} of {len(ranking.ranks)} "
            f"(95 % interval {overall['low']:.2f} to {overall['high']:.2f})"
        )
        group = overall["group"]
        ties = f", group of ties {group}" if pd.notna(group) else ""
        lines.append(f"{place}: {text}{ties}.")
        lines += _significant(ranking, place, of_one(method, ranking.over_tasks))
    tests = of_one(method, ranking.over_datasets)
    if len(tests):
        text = f"With the {tests['units'].iloc[0]} data sets as units"
        lines += _significant(ranking, text, tests) or [f"{text}: no significant difference."]
    return lines


def _significant(ranking: Ranking, place: str, tests: pd.DataFrame) -> list[str]:
    """The methods that the first of these tests is significantly better and worse than; nothing of none."""
    lines = []
    for verdict in ("better", "worse"):
        titles = tests.loc[tests["verdict"] == verdict, "second"].map(ranking.titles)
        if len(titles):
            lines.append(f"{place}: significantly {verdict} than {', '.join(titles)}.")
    return lines


def _against_best(comparison: Comparison, row: Mapping[Any, Any]) -> str:
    """What the method has in a task over the other method of highest mean."""
    ranking = comparison.ranking
    others = ranking.cells[(ranking.cells["task"] == row["task"]) & (ranking.cells["place"] != row["place"])]
    best = others.loc[others["mean"].idxmax()]
    test = row["tests"].set_index("second").loc[best["method"]]
    rival = f"{ranking.titles[best['method']]}, the best other"
    if pd.isna(test["difference"]):
        return f"no seeds and partitions in common with {rival}: no test"
    text = f"{gap(test['difference'])} points against {rival}"
    seeds, other_seeds = (comparison.seeds[place] for place in (row["place"], best["place"]))
    if seeds != other_seeds:
        text += f", on the seeds of both, {ranges(set(seeds).intersection(other_seeds))}"
    ground = common_ground(test)
    if pd.isna(test["p"]):
        return f"{text} ({ground}): no test"
    count = int((row["tests"]["verdict"] != "no test").sum())
    corrected = f"corrected{f' over {count} comparisons' if count > 1 else ''} {test['p_holm']:.2g}"
    interval = f"95 % interval {gap(test['low'])} to {gap(test['high'])}"
    return f"{text} ({interval}, p {test['p']:.2g}, {corrected}, {ground}): {test['verdict']}"
