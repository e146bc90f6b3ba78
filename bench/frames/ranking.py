"""The ranking of a study's competitors: ranks, tests and groups of ties, in every task and over all tasks."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import pandas as pd

from bench.federation.scenarios import parse
from bench.frames.graded_cells import VALUE, Results
from bench.frames.stored_runs import WHERE, columns_of, parts_of, rows_of
from bench.statistics.paired import COLUMNS, LEAST_RUNS_IN_COMMON, compare, compare_tasks, tie_groups
from bench.statistics.summary import LEAST, rank_intervals
from bench.studies.study import Study

RANKS = columns_of("ranks")
"""Columns of ``bench.ranks`` and their types."""

TASK = [*WHERE, "point"]
"""Columns that identify a task: a column of a table at one point, under the primary reading."""


class Ranking(NamedTuple):
    """The competitors of a study over the tasks that ``rank`` keeps.

    ranks       one row per method with numbers: the columns ``RANKS``, planned (tasks with a cell of it)
    cells       one row per task and method with numbers: the columns of the cells frame, task (its number),
                group (of ties in the task)
    tests       tests (``bench.statistics.paired``) within every task, with the task's number; then tests
                over tasks and over data sets, without a number
    titles      method -> title, of all competitors; ``unranked_titles``: titles of methods without numbers
    scores      measured means in percent [tasks, methods]; missing if there is none
    over_tasks  tests over tasks between methods that have all tasks; empty for fewer than ``LEAST`` tasks
    over_datasets  tests over data sets on a method's mean over the tasks of each, because these share items;
                empty for fewer than ``LEAST`` data sets, or if every task has its own data set
    """

    study: Study
    ranks: pd.DataFrame
    cells: pd.DataFrame
    tests: pd.DataFrame
    titles: dict[str, str]
    unranked_titles: list[str]
    baseline_title: str
    scores: pd.DataFrame
    task_count: int
    over_tasks: pd.DataFrame
    over_datasets: pd.DataFrame


def rank(
    study: Study, results: Results, cells: pd.DataFrame | None = None, guests: Collection[str] = ()
) -> Ranking | None:
    """Rank a study's competitors in some cells (None: all cells); None if no task has two competitors.

    A task is left out if it has fewer than half as many methods with numbers as the fullest task. Groups
    contain only methods that all tasks have; a task that has just begun would leave few of them.
    """
    titles, board = _board(study, results, results.cells if cells is None else cells, guests)
    planned = board["method"].value_counts()
    board = board[board["n"] > 0]
    counts = board.groupby("task")["method"].transform("size")
    board = board[(counts >= 2) & (counts >= counts.max() / 2)]
    if board.empty:
        return None
    rows, tests, groups = scores_of(results, board, study.average), [], []
    for number, task in parts_of(board, "task"):
        task_tests = compare(rows[rows["place"].isin(task["place"])], task["method"].tolist())
        tests.append(task_tests.assign(task=number))
        # A method with fewer runs than a test needs has no group: nothing could tell it from the best.
        tested = task[task["n"] >= LEAST_RUNS_IN_COMMON].sort_values("mean", ascending=False, kind="stable")
        groups.append(task["method"].map(tie_groups(tested["method"].tolist(), task_tests)))
    board = board.assign(group=pd.concat(groups).astype("Int64"))

    means = board.pivot(index="task", columns="method", values="mean")
    means = means[[method for method in titles if method in means]]
    complete, datasets = means.dropna(axis=1), board.groupby("task")["dataset"].first()
    if len(means) >= LEAST:
        tests.append(compare_tasks(complete))
    if LEAST <= datasets.nunique() < len(datasets):
        tests.append(compare_tasks(complete.groupby(datasets).mean(), "data set"))
    all_tests = pd.concat(tests, ignore_index=True)
    over_tasks, over_datasets = (all_tests[all_tests["unit"] == unit] for unit in ("task", "data set"))

    # Mean ranks with bootstrap intervals over tasks and runs. Methods that have all tasks come first.
    values = board[[*VALUE, "task", "method"]].merge(results.values[[*VALUE, "seed", "value"]], on=VALUE)
    runs = [part.pivot(index="seed", columns="method", values="value") for _, part in values.groupby("task")]
    intervals = rank_intervals([task[[name for name in means if name in task]] for task in runs])
    order = intervals.loc[list(means)].assign(partial=means.isna().any())
    order = order.sort_values(["partial", "rank"], kind="stable")
    group_of = dict(zip(board["method"], board["group"], strict=True))  # right for a single task
    if len(means) > 1:
        tested_methods = {*over_tasks["first"], *over_tasks["second"]}
        group_of = tie_groups([name for name in order.index if name in tested_methods], over_tasks)
    baseline = means.get(study.baseline, pd.Series(np.nan, means.index))
    ranks = order.assign(
        study=study.name,
        method=order.index,
        title=order.index.map(titles),
        group=order.index.map(group_of).astype("Int64"),
        tasks=means.count(),
        minus_baseline=means.sub(baseline, axis=0).mean(),
    )
    ranks = ranks[list(RANKS)].astype(RANKS).assign(planned=planned).reset_index(drop=True)
    unranked_titles = [title for method, title in titles.items() if method not in means]
    names = titles, unranked_titles, study.title_of(study.baseline)
    return Ranking(study, ranks, board, all_tests, *names, means, len(means), over_tasks, over_datasets)


def _board(
    study: Study, results: Results, cells: pd.DataFrame, guests: Collection[str]
) -> tuple[dict[str, str], pd.DataFrame]:
    """Return the titles of all competitors by method, and their cells with the number of the task.

    A task comes from the first table that has it, among tables that compare methods. A method is represented
    by its first line. Competitors are the study's own lines and the ``guests``, without the references. Of
    lines that show the same runs at the same stage, only the first competes.
    """
    documents = [experiment.name for experiment in study.experiments if experiment.competes]
    places = results.places
    places = places[(places["study"] == study.name) & places["document"].isin(documents)]
    places = places.assign(document_number=places["document"].map(documents.index))
    is_first = (cells["comparison_number"] == 0) & (cells["position"] == 0) & cells["usual"]
    in_order = ["document_number", "column_number", "inner", "line_number"]
    board = cells[is_first].merge(places[["place", "line_object", *in_order]], on="place")
    lines = places[places["usual"] & places["method"].isin(board["method"])]
    titles: dict[str, str] = {}
    shown = set()
    for place in rows_of(lines.sort_values(["document_number", "line_number"])):
        line = place.line_object
        is_rival = line.ranked and (line.is_own or line.method in guests)
        runs = line.runs, line.stage or study.primary.stage
        if is_rival and line.method not in study.references and runs not in shown:
            shown.add(runs)
            titles[line.method] = place.line
    methods = list(titles)
    ranked = np.array([line.ranked for line in board["line_object"]], bool)
    board = board[ranked & board["method"].isin(methods)]
    board = board.sort_values(in_order).drop_duplicates(["document", *TASK, "method"])
    first_document = board.groupby(TASK)["document_number"].transform("first")
    board = board[board["document_number"] == first_document]
    number, order = board.groupby(TASK, sort=False).ngroup(), board["method"].map(methods.index)
    return titles, board.assign(task=number, method_number=order).sort_values(["task", "method_number"])


def scores_of(results: Results, cells: pd.DataFrame, average: str) -> pd.DataFrame:
    """Return the scores of the cells' clients for paired tests: columns place and
    ``bench.statistics.paired.COLUMNS``.

    Runs with an unknown partition cannot be paired and are left out.
    """
    done = results.members[["place", "run", "seed", "partition_hash", "scenario", "is_done"]]
    done = done[done["place"].isin(cells["place"]) & done["is_done"] & (done["partition_hash"] != "")]
    parts = [pd.DataFrame(columns=["place", *COLUMNS, "run", "samples", "scenario"])]
    for (stage, rule), part in parts_of(cells, ["stage", "rule"]):
        runs, clients = part[["place", "method"]].merge(done, on="place"), results.clients_at(stage, rule)
        parts.append(runs.merge(clients[clients["run"].isin(runs["run"])], on="run"))
    rows = pd.concat(parts[1:] or parts).rename(columns={"partition_hash": "partition"})
    samples = {name: parse(name).samples for name in rows["scenario"].unique()}
    rows = rows.assign(
        part=rows["client"] // rows["scenario"].map(samples).astype(int),
        value=100.0 * rows["value"],
        weight=rows["samples"].astype(float) if average == "samples" else 1.0,
    )
    return rows.sort_values(["place", "seed", "client"], ignore_index=True)[["place", *COLUMNS]]
