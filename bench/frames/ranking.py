"""Which method is better: the competitors of a study in every task, their ranks, tests and groups of ties."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench.federation.scenarios import parse
from bench.frames.graded_cells import VALUE, Results
from bench.frames.stored_runs import WHERE, parts_of
from bench.statistics.paired import COLUMNS, LEAST_RUNS_IN_COMMON, compare, compare_tasks, tie_groups
from bench.statistics.summary import LEAST, rank_intervals
from bench.studies.study import Study

RANKS = {
    "study": "string",
    "method": "string",
    "title": "string",
    "rank": "float64",
    "low": "float64",
    "high": "float64",
    "group": "Int64",
    "tasks": "int64",
    "minus_baseline": "float64",
}
"""Columns of ``bench.ranks`` and their types."""

TASK = [*WHERE, "point"]
"""What a task is: a column of a table at one point, under the primary reading."""


PLACE = ["place", "document_number", "column_number", "inner", "line_number", "line_object"]
"""Columns of places by which tasks are ordered."""


class Ranking(NamedTuple):
    """The competitors of a study over the tasks that have begun in earnest.

    ranks    a row a method with numbers: the columns ``RANKS``, and planned (tasks that have a cell of it)
    cells    a row a task and method with numbers: the columns of the cells frame, task (its number),
             group (of ties in the task)
    tests    the tests (``bench.statistics.paired``) of every task, with its number; then those over tasks and
             over data sets, which have none
    titles   method -> title, of all competitors
    """

    study: Study
    ranks: pd.DataFrame
    cells: pd.DataFrame
    tests: pd.DataFrame
    titles: dict[str, str]

    @property
    def scores(self) -> pd.DataFrame:
        """Measured means in percent [tasks, methods], missing where there are none."""
        return self.cells.pivot(index="task", columns="method", values="mean")

    @property
    def task_count(self) -> int:
        """Number of tasks."""
        return int(self.cells["task"].nunique())

    @property
    def over_tasks(self) -> pd.DataFrame:
        """The tests over tasks, of the methods that have all of them; none for fewer tasks than ``LEAST``."""
        return self.tests[self.tests["unit"] == "task"]

    @property
    def over_datasets(self) -> pd.DataFrame:
        """The tests with the data set as the unit: a method's mean over its tasks, which share the data set's
        items. None for fewer data sets than ``LEAST``, nor where all tasks are of different ones.
        """
        return self.tests[self.tests["unit"] == "data set"]

    @property
    def baseline_title(self) -> str:
        """The baseline's name."""
        return self.study.title_of(self.study.baseline)

    @property
    def unranked_titles(self) -> list[str]:
        """Titles of competitors without numbers."""
        ranked = set(self.ranks["method"])
        return [title for method, title in self.titles.items() if method not in ranked]


def _places(study: Study, results: Results) -> pd.DataFrame:
    """The places of a study's tables that compare methods, with document_number."""
    documents = [experiment.name for experiment in study.experiments if experiment.competes]
    places = results.places
    places = places[(places["study"] == study.name) & places["document"].isin(documents)]
    return places.assign(document_number=places["document"].map(documents.index))


def competitors(study: Study, places: pd.DataFrame, guests: Collection[str] = ()) -> dict[str, str]:
    """Method -> title, in the order of the lines of some places: the study's own lines, and the ``guests``;
    no references, and of lines that show the same runs at the same stage the first.
    """
    lines = places[places["usual"]].sort_values(["document_number", "line_number"])
    titles: dict[str, str] = {}
    shown = set()
    for title, line in zip(lines["line"], lines["line_object"], strict=True):
        is_rival = line.ranked and (line.is_own or line.method in guests)
        runs = line.runs, line.stage or study.primary.stage
        if is_rival and line.method not in study.references and runs not in shown:
            shown.add(runs)
            titles[line.method] = title
    return titles


def rank(
    study: Study, results: Results, cells: pd.DataFrame | None = None, guests: Collection[str] = ()
) -> Ranking | None:
    """The ranking of a study's competitors in some cells (None: all); None where no task has two of them.

    A task with numbers of fewer than half as many methods as the fullest one has only begun, and counts for
    none: groups are of the methods that all tasks have, and would shrink to those few.
    """
    cells = results.cells if cells is None else cells
    places = _places(study, results)
    is_first = (cells["comparison_number"] == 0) & (cells["position"] == 0) & cells["usual"]
    board = cells[is_first].merge(places[PLACE], on="place")
    titles = competitors(study, places[places["method"].isin(board["method"])], guests)
    board = _tasks(board, list(titles))
    planned = board["method"].value_counts()
    board = board[board["n"] > 0]
    counts = board.groupby("task")["method"].transform("size")
    board = board[(counts >= 2) & (counts >= counts.max() / 2)]
    if board.empty:
        return None
    rows, tests, groups = scores_of(results, board, study.average), [], {}
    for number, task in board.groupby("task"):
        task_tests = compare(rows[rows["place"].isin(task["place"])], task["method"].tolist())
        tests.append(task_tests.assign(task=number))
        # A method with fewer runs than a test needs has no group: nothing could tell it from the best.
        tested = task[task["n"] >= LEAST_RUNS_IN_COMMON].sort_values("mean", ascending=False, kind="stable")
        for method, group in tie_groups(tested["method"].tolist(), task_tests).items():
            groups[number, method] = group
    keys = zip(board["task"], board["method"], strict=True)
    board = board.assign(group=pd.array([groups.get(key) for key in keys], "Int64"))
    means = board.pivot(index="task", columns="method", values="mean")
    means = means[[method for method in titles if method in means]]
    complete, datasets = means.dropna(axis=1), board.groupby("task")["dataset"].first()
    if len(complete) >= LEAST:
        tests.append(compare_tasks(complete))
    if LEAST <= datasets.nunique() < len(datasets):
        tests.append(compare_tasks(complete.groupby(datasets).mean(), "data set"))
    all_tests = pd.concat(tests, ignore_index=True)
    order = _order(results.values, board, means, all_tests)
    baseline = means.get(study.baseline, pd.Series(np.nan, means.index))
    ranks = order.assign(
        study=study.name,
        method=order.index,
        title=order.index.map(titles),
        tasks=means.count(),
        minus_baseline=means.sub(baseline, axis=0).mean(),
    )
    ranks = ranks[list(RANKS)].astype(RANKS).assign(planned=planned).reset_index(drop=True)
    return Ranking(study, ranks, board, all_tests, titles)


def _tasks(board: pd.DataFrame, methods: list[str]) -> pd.DataFrame:
    """The cells of the methods with their task's number: every task once, from the first table that has it,
    and every method once, by its first line there.
    """
    ranked = np.array([line.ranked for line in board["line_object"]], bool)
    board = board[ranked & board["method"].isin(methods)]
    board = board.sort_values(["document_number", "column_number", "inner", "line_number"])
    board = board.drop_duplicates(["document", *TASK, "method"])
    first_document = board.groupby(TASK)["document_number"].transform("first")
    board = board[board["document_number"] == first_document]
    number, order = board.groupby(TASK, sort=False).ngroup(), board["method"].map(methods.index)
    return board.assign(task=number, method_number=order).sort_values(["task", "method_number"])


def scores_of(results: Results, cells: pd.DataFrame, average: str) -> pd.DataFrame:
    """What the clients of cells score, for tests of one against the other: the columns
    ``bench.statistics.paired.COLUMNS``, place.

    Runs whose partition is not known cannot be paired and are left out.
    """
    done = results.members[results.members["is_done"] & (results.members["partition_hash"] != "")]
    done = done[["place", "run", "seed", "partition_hash", "scenario"]]
    parts = []
    for (stage, rule), part in parts_of(cells, ["stage", "rule"]):
        clients = results.clients_at(stage, rule)[["run", "client", "value", "samples"]]
        parts.append(part[["place", "method"]].merge(done, on="place").merge(clients, on="run"))
    if not parts:
        return pd.DataFrame(columns=["place", *COLUMNS])
    rows = pd.concat(parts).rename(columns={"partition_hash": "partition"})
    samples = {name: parse(name).samples for name in rows["scenario"].unique()}
    rows = rows.assign(
        part=rows["client"] // rows["scenario"].map(samples).astype(int),
        value=100.0 * rows["value"],
        weight=rows["samples"].astype(float) if average == "samples" else 1.0,
    )
    return rows.sort_values(["place", "seed", "client"], ignore_index=True)[["place", *COLUMNS]]


def _order(
    values: pd.DataFrame, cells: pd.DataFrame, means: pd.DataFrame, tests: pd.DataFrame
) -> pd.DataFrame:
    """A row for every method of ``means`` [tasks, methods], its name the index: those measured in every task
    come first, then by mean rank.

    ``rank`` is the mean rank over the method's tasks among the methods measured there, ``low`` and ``high``
    its 95 % interval by bootstrap over tasks and runs; ``group`` its group of ties (of a single task that of
    the task).
    """
    values = cells[[*VALUE, "task", "method"]].merge(values[[*VALUE, "seed", "value"]], on=VALUE)
    runs = [part.pivot(index="seed", columns="method", values="value") for _, part in values.groupby("task")]
    intervals = rank_intervals([task[[name for name in means if name in task]] for task in runs])
    intervals = intervals.loc[list(means)].assign(partial=means.isna().any())
    order = intervals.sort_values(["partial", "rank"], kind="stable")
    groups: Any = cells.set_index("method")["group"]
    if len(means) > 1:
        over_tasks = tests[tests["unit"] == "task"]
        tested = {*over_tasks["first"], *over_tasks["second"]}
        groups = tie_groups([name for name in order.index if name in tested], over_tasks)
    return order.assign(group=pd.Series(groups, dtype="Int64").reindex(order.index))
