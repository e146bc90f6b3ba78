"""The ranking of a study's methods as a document: paired tests in every task, and ranks over tasks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas as pd

from bench.figures import style
from bench.figures.panels import Figure, Mark, Panel
from bench.frames.graded_cells import Results
from bench.frames.ranking import TASK, Ranking
from bench.frames.stored_runs import rows_of
from bench.report.captions import statistic
from bench.report.document import Document
from bench.report.score import by_dataset
from bench.report.table import Cell, Table, Value, listing, pivot
from bench.statistics.paired import ALPHA, REGION, common_ground, opposite
from bench.statistics.summary import DRAWS, LEAST, SEED
from bench.studies.settings import Column
from bench.studies.wording import gap, interval, number, signed

MARKS = {"better": ">", "worse": "<", "equivalent": "=", "undecided": "?", "no test": "-"}
"""Verdict on the row's method against the column's -> its mark."""


def ranking_table(ranking: Ranking) -> Table:
    """Every method with numbers, in the order of the ranking."""
    rows: list[tuple[str, dict[str, Cell]]] = [
        (
            row.title,
            {
                "Group": number(row.group, "d"),
                "Mean rank": Value(row.rank, rank=int(row.group is not pd.NA and row.group == 1)),
                "95 % interval": interval(row.low, row.high),
                "Tasks": f"{row.tasks}/{row.planned}",
                f"Minus {ranking.baseline_title}": gap(row.minus_baseline),
            },
        )
        for row in rows_of(ranking.ranks)
    ]
    return listing("ranking", "Ranking over tasks", "Method", rows)


def groups_table(ranking: Ranking) -> Table:
    """What every method measures in every task, with its group of ties there."""
    cells = ranking.cells
    places = cells["scenario"] + " " + cells["clients"].astype(str) + " " + cells["point"]
    means = zip(cells["mean"], cells["group"].astype(object).where(cells["group"].notna(), 0), strict=True)
    cells = cells.assign(
        heading=cells["dataset"].map(ranking.study.title_of),
        place=places.str.strip(),
    )
    values = [Value(mean, note=f"({group})" if group else "", rank=int(group == 1)) for mean, group in means]
    cells["cell"] = pd.Series(values, cells.index, dtype=object)
    body = pivot(cells, "method", "Method", ["task", "heading", "place"]).droplevel(0, axis=1)
    body = body.loc[ranking.ranks["method"]].rename(index=ranking.titles).fillna("-")
    title = "Measured, and group of ties in each task (1: not significantly worse than the best; none of a "
    return Table("groups", f"{title}single run)", body)


def pair_tables(ranking: Ranking) -> tuple[Table, ...]:
    """The paired tests over tasks and of each: every method against every other."""
    tables = []
    if not ranking.over_tasks.empty:
        methods = ranking.ranks.loc[ranking.ranks["group"].notna(), "method"].tolist()
        tables.append(_pair_table(ranking, "pairs", "over tasks", methods, ranking.over_tasks))
    for task, cells in ranking.cells.groupby("task"):
        place = cells[TASK].iloc[0]
        name = "_".join(map(str, filter(None, ("pairs", *place))))
        tests = ranking.tests[ranking.tests["task"] == task]
        tables.append(_pair_table(ranking, name, task_label(ranking, cells), list(cells["method"]), tests))
    return tuple(tables)


def _pair_table(ranking: Ranking, name: str, where: str, methods: list[str], tests: pd.DataFrame) -> Table:
    both = pd.concat([tests, opposite(tests)])
    results = zip(both["difference"], both["verdict"], strict=True)
    texts = ["-" if pd.isna(gain) else f"{signed(gain)} {MARKS[verdict]}" for gain, verdict in results]
    body = both.assign(cell=texts).pivot(index="first", columns="second", values="cell")
    body = body.reindex(index=methods, columns=methods).fillna("")
    body = body.rename(index=ranking.titles, columns=ranking.titles).rename_axis("Method")
    return Table(name, f"Row minus column in points, {where} ({_extent(tests)})", body)


def task_label(ranking: Ranking, cells: pd.DataFrame) -> str:
    """``Cora, non-overlapping, 10 clients``, with the point, of the cells of a task."""
    *where, point = cells[TASK].iloc[0]
    return ", ".join(filter(None, (ranking.study.column_title(Column(*where)), point)))


def _extent(tests: pd.DataFrame) -> str:
    """``55 tests over 10 clients``; the most units where pairs differ in them."""
    known = tests[tests["p"].notna()]
    if known.empty:
        return "no test"
    count = len(known)
    return f"{count} test{'s' if count > 1 else ''} over {known['units'].max()} {known['unit'].iloc[0]}s"


def _caption(ranking: Ranking) -> str:
    no_test = f"No test over tasks: fewer than {LEAST} of them, or than two methods that have them all."
    sentences = (
        f"{ranking.task_count} tasks; intervals by bootstrap over tasks and runs.",
        no_test if ranking.over_tasks.empty else "",
        "Group 1 holds the best method and all that are not significantly worse: only together they are "
        "first.",
        by_dataset(ranking),
    )
    return " ".join(filter(None, sentences))


def _fine_print(ranking: Ranking) -> tuple[str, ...]:
    by_task = ranking.tests.groupby("task")
    tests = "; ".join(
        f"{task_label(ranking, cells)}: {_extent(by_task.get_group(task))}"
        for task, cells in ranking.cells.groupby("task")
    )
    return (
        "Every rank is over the tasks that the method has, among the methods measured there, ties sharing "
        "their mean; nothing is imputed. Tasks: ranked of planned; methods that lack some stand last, in no "
        f"group. Interval: {DRAWS} draws, seed {SEED}. Minus {ranking.baseline_title}: mean difference in "
        "points over the tasks of both.",
        "Paired t test, two-sided, of the difference of two methods with the same seeds and clients, fixed "
        "before looking at numbers. Its unit is the client (mean over seeds) where all runs of a task share "
        "one partition; where clients are samples of one part of the graph (overlapping), which share test "
        "nodes, that part (mean over its clients and seeds); where there are several partitions, the "
        "partition (mean over clients, then over its seeds). Fewer than two units, or than two "
        "runs in common: no test. Holm's correction over all pairs of a task; for groups, by a rule that "
        "was set later, over the tests "
        f"against the leader of the group (multiple comparisons with the best). Over tasks, of the methods "
        f"that have all of them: {_extent(ranking.over_tasks)}; over data sets, of which each counts once: "
        f"{_extent(ranking.over_datasets)}. {tests}.",
        f"Better (>) or worse (<): corrected p below {ALPHA:g} and a mean difference of more than {REGION:g} "
        f"points. Equivalent (=): the 95 % interval lies within ±{REGION:g} points. Undecided (?): neither; "
        "with few units many are.",
    )


def _notes(ranking: Ranking) -> tuple[str, ...]:
    """Methods without numbers, and how many pairs have no test."""
    lines = []
    if ranking.unranked_titles:
        lines.append(f"without numbers in default settings, not ranked: {', '.join(ranking.unranked_titles)}")
    for task, cells in ranking.cells.groupby("task"):
        tests = ranking.tests[ranking.tests["task"] == task]
        missing = tests[tests["verdict"] == "no test"].to_dict("records")
        for reason, count in Counter(map(common_ground, missing)).items():
            pairs = f"{count} of {len(tests)} pairs of methods"
            lines.append(f"no test in {task_label(ranking, cells)} ({reason}): {pairs}")
    return tuple(lines)


def pairs_record(ranking: Ranking) -> pd.DataFrame:
    """The tests of every task, then those over tasks and over data sets, which have no place."""
    places = ranking.cells.drop_duplicates("task")[["task", *TASK]].astype({"clients": "Int64"})
    tests = ranking.tests.merge(places, on="task", how="left")
    for name in ("p", "p_holm"):
        tests[name] = ["" if pd.isna(value) else f"{value:.6g}" for value in tests[name]]
    columns = ["first", "second", "difference", "low", "high", "p", "p_holm", "unit", "units", "verdict"]
    return tests[[*TASK, *columns]]


def _figure(ranking: Ranking) -> Figure | None:
    """Ranks with their intervals; None of a single task."""
    study, count = ranking.study, ranking.task_count
    if count < 2:
        return None
    columns = ["method", "mean_rank", "low", "high", "group", "tasks"]
    data = ranking.ranks.rename(columns={"rank": "mean_rank"})[columns]
    looks = {method: style.look_of(method, study) for method in data["method"]}
    marks = tuple(Mark(method, ranking.titles[method], look) for method, look in looks.items())
    some = "" if (data["tasks"] == count).all() else "up to "
    caption = (
        f"Mean ranks over {some}{count} tasks with 95 % intervals, 1 is the best; methods of one group are "
        "not told apart by the paired tests."
    )
    heading = f"{study.title}: mean rank over {some}{count} tasks"
    panel = Panel("ranks", "", data, marks, {"task_count": count})
    return Figure(f"{study.name}_ranking_ranks", caption, (panel,), heading)


def ranking_document(ranking: Ranking, results: Results) -> Document:
    """The document of a study's ranking."""
    table, groups, figure = ranking_table(ranking), groups_table(ranking), _figure(ranking)
    columns = ["method", "group", "rank", "low", "high", "tasks", "planned", "minus_baseline"]
    records: dict[str, Any] = {"methods": ranking.ranks[columns], "pairs": pairs_record(ranking)}
    return statistic(
        ranking.study,
        "ranking",
        "Ranking of methods",
        "Mean ranks with intervals, methods that cannot be told apart, and paired tests of any two.",
        ranking.cells,
        results,
        caption=(_caption(ranking),),
        fine_print=_fine_print(ranking),
        notes=_notes(ranking),
        views=(table, groups),
        details=pair_tables(ranking),
        printed=(table,) if ranking.task_count > 1 else (groups,),
        figures=(figure,) if figure else (),
        records=records,
    )
