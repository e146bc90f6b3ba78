"""The ranking of a study's methods as a document: paired tests in every task, and ranks over tasks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, astuple

import pandas as pd

from bench.figures import style
from bench.figures.panels import Figure, Mark, Panel
from bench.frames.graded_cells import Results
from bench.report.captions import rows_of_cells, statistic
from bench.report.document import Document
from bench.report.findings import by_dataset
from bench.report.table import Entry, Table, listing, pivot
from bench.statistics.paired import ALPHA, REGION, PairedTest
from bench.statistics.summary import DRAWS, LEAST, SEED
from bench.studies.ranking import Ranking, Task, cell_groups
from bench.studies.wording import gap, interval, number, signed

MARKS = {"better": ">", "worse": "<", "equivalent": "=", "undecided": "?", "no test": "-"}
"""Verdict on the row's method against the column's -> its mark."""


def ranking_table(ranking: Ranking) -> Table:
    """Every method with numbers, in the order of the ranking."""
    rows = []
    for row in ranking.table.to_dict("records"):
        minus_baseline = row["minus_baseline"]
        entries: dict[str, Entry | str] = {
            "Group": number(row["group"], "d"),
            "Mean rank": Entry(f"{row['rank']:.2f}", 1 if row["group"] == 1 else 0),
            "95 % interval": interval(row["low"], row["high"]),
            "Tasks": f"{row['tasks']}/{ranking.planned_tasks[row['method']]}",
            f"Minus {ranking.baseline_title}": "-" if pd.isna(minus_baseline) else gap(minus_baseline),
        }
        rows.append((row["title"], entries))
    return listing("ranking", "Ranking over tasks", "Method", rows)


def _mean_and_group(mean: float, group: int | None) -> Entry:
    return Entry(f"{mean:.2f}" if group is None else f"{mean:.2f} ({group})", 1 if group == 1 else 0)


def _groups_table(ranking: Ranking) -> Table:
    groups = {id(task): cell_groups(task) for task in ranking.tasks}
    return pivot(
        "groups",
        "Measured, and group of ties in each task (1: not significantly worse than the best; "
        "none of a single run)",
        "Method",
        {method: ranking.titles[method] for method in ranking.methods},
        {
            id(task): (
                ranking.study.title_of(task.column.dataset),
                (f"{task.column.scenario} {task.column.clients} {task.point}".strip(),),
            )
            for task in ranking.tasks
        },
        {
            (method, id(task)): (_mean_and_group(mean, groups[id(task)].get(method)),)
            for task in ranking.tasks
            for method, mean in task.means.items()
        },
        filler=Entry("-"),
    )


def _pairs_table(
    name: str, title: str, ranking: Ranking, methods: Sequence[str], comparisons: Sequence[PairedTest]
) -> Table:
    """Every method of a task, or over tasks, against every other."""
    titles = {method: ranking.titles[method] for method in methods}
    return pivot(
        name,
        f"{title} ({_tests(comparisons)})",
        "Method",
        titles,
        {method: ("", (title,)) for method, title in titles.items()},
        {
            (pair.first, pair.second): (
                Entry("-" if pair.difference is None else f"{signed(pair.difference)} {MARKS[pair.verdict]}"),
            )
            for comparison in comparisons
            for pair in (comparison, comparison.opposite())
        },
        filler=Entry(""),
    )


def _task_pairs(ranking: Ranking, task: Task) -> Table:
    return _pairs_table(
        "_".join(map(str, filter(None, ("pairs", *astuple(task.column), task.point)))),
        f"Row minus column in points, {task.label(ranking.study)}",
        ranking,
        list(task.means),
        task.comparisons,
    )


def _tests(comparisons: Sequence[PairedTest]) -> str:
    """``55 tests over 10 clients``; the most units where pairs differ in them."""
    tests = [pair for pair in comparisons if pair.p is not None]
    if not tests:
        return "no test"
    units = max(pair.units for pair in tests)
    return f"{len(tests)} test{'s' if len(tests) > 1 else ''} over {units} {tests[0].unit}s"


def tables(ranking: Ranking) -> tuple[Table, ...]:
    """The ranking over tasks, and the groups of ties in each."""
    return ranking_table(ranking), _groups_table(ranking)


def pair_tables(ranking: Ranking) -> tuple[Table, ...]:
    """The paired tests over tasks and of each."""
    views = []
    if ranking.comparisons:
        tested_methods = [method for method in ranking.methods if method in ranking.groups]
        title = "Row minus column in points, over tasks"
        views.append(_pairs_table("pairs", title, ranking, tested_methods, ranking.comparisons))
    return (*views, *(_task_pairs(ranking, task) for task in ranking.tasks))


def _caption(ranking: Ranking) -> str:
    no_test = f"No test over tasks: fewer than {LEAST} of them, or than two methods that have them all."
    sentences = (
        f"{len(ranking.tasks)} tasks; intervals by bootstrap over tasks and runs.",
        "" if ranking.comparisons else no_test,
        "Group 1 holds the best method and all that are not significantly worse: only together they are "
        "first.",
        by_dataset(ranking),
    )
    return " ".join(filter(None, sentences))


def _fine_print(ranking: Ranking) -> tuple[str, ...]:
    tests = "; ".join(f"{task.label(ranking.study)}: {_tests(task.comparisons)}" for task in ranking.tasks)
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
        f"that have all of them: {_tests(ranking.comparisons)}; over data sets, of which each counts once: "
        f"{_tests(ranking.dataset_comparisons)}. {tests}.",
        f"Better (>) or worse (<): corrected p below {ALPHA:g} and a mean difference of more than {REGION:g} "
        f"points. Equivalent (=): the 95 % interval lies within ±{REGION:g} points. Undecided (?): neither; "
        "with few units many are.",
    )


def _notes(ranking: Ranking) -> tuple[str, ...]:
    """Methods without numbers, and pairs without a test."""
    lines = []
    if ranking.unranked_titles:
        lines.append(f"without numbers in default settings, not ranked: {', '.join(ranking.unranked_titles)}")
    for task in ranking.tasks:
        gaps: dict[str, list[PairedTest]] = defaultdict(list)
        for pair in task.comparisons:
            if pair.verdict == "no test":
                gaps[pair.common_ground].append(pair)
        lines += [
            f"no test in {task.label(ranking.study)} ({reason}): {_without_test(ranking, task, pairs)}"
            for reason, pairs in gaps.items()
        ]
    return tuple(lines)


def _without_test(ranking: Ranking, task: Task, pairs: Sequence[PairedTest]) -> str:
    """The pairs of a task that have no test; a method that has none with any other goes by its name alone."""
    if len(pairs) == len(task.comparisons) > 1:
        return "any two methods"
    counts = Counter(method for pair in pairs for method in (pair.first, pair.second))
    alone = [method for method in task.means if counts[method] == len(task.means) - 1 > 1]
    return "; ".join(
        [f"{ranking.titles[method]} and any other" for method in alone]
        + [
            f"{ranking.titles[pair.first]} and {ranking.titles[pair.second]}"
            for pair in pairs
            if not {pair.first, pair.second} & set(alone)
        ]
    )


def pairs_record(ranking: Ranking) -> pd.DataFrame:
    """The tests of every task, then those over tasks and over data sets, which have no place."""
    empty_place: dict[str, str | int] = dict.fromkeys(("dataset", "scenario", "clients"), "")
    tests = [(asdict(task.column), task.point, pair) for task in ranking.tasks for pair in task.comparisons]
    tests += [(empty_place, "", pair) for pair in (*ranking.comparisons, *ranking.dataset_comparisons)]
    return pd.DataFrame(
        [
            {
                **place,
                "point": point,
                "first": pair.first,
                "second": pair.second,
                "difference": pair.difference,
                **dict(zip(("low", "high"), pair.interval or (None, None), strict=True)),
                "p": "" if pair.p is None else f"{pair.p:.6g}",
                "p_holm": "" if pair.corrected is None else f"{pair.corrected:.6g}",
                "unit": pair.unit,
                "units": pair.units,
                "verdict": pair.verdict,
            }
            for place, point, pair in tests
        ]
    )


def _figure(ranking: Ranking) -> Figure | None:
    """Ranks with their intervals; None of a single task."""
    study = ranking.study
    if len(ranking.tasks) < 2:
        return None
    columns = ["method", "mean_rank", "low", "high", "group", "tasks"]
    data = ranking.table.rename(columns={"rank": "mean_rank"})[columns]
    looks = {method: style.look_of(method, study) for method in data["method"]}
    marks = tuple(Mark(method, ranking.titles[method], look) for method, look in looks.items())
    count = len(ranking.tasks)
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
    views = tables(ranking)
    figure = _figure(ranking)
    columns = ["method", "group", "rank", "low", "high", "tasks", "planned", "minus_baseline"]
    methods = ranking.table.assign(planned=ranking.table["method"].map(ranking.planned_tasks))[columns]
    return statistic(
        ranking.study,
        "ranking",
        "Ranking of methods",
        "Mean ranks with intervals, methods that cannot be told apart, and paired tests of any two.",
        rows_of_cells([cell for task in ranking.tasks for cell in task.cells.values()], results),
        results,
        caption=(_caption(ranking),),
        fine_print=_fine_print(ranking),
        notes=_notes(ranking),
        views=views,
        details=pair_tables(ranking),
        printed=views[:1] if len(ranking.tasks) > 1 else views[1:],
        figures=(figure,) if figure else (),
        records={"methods": methods, "pairs": pairs_record(ranking)},
    )
