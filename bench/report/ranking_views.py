"""The ranking of a study's methods as a document: paired tests in every task, and ranks over tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import astuple

import numpy as np

from bench.report.captions import circumstances
from bench.report.cells import Cells, Selection
from bench.report.competitors import Task
from bench.report.figures import Figure
from bench.report.panels.ranks import RankPanel
from bench.report.ranking import Ranking, cell_groups, rank
from bench.report.results import Results
from bench.report.statistic import Records, Statistic, number, place, read_as
from bench.report.study import Study
from bench.report.table import Document, Entry, Summary, Table
from bench.report.wording import signed
from bench.statistics.bradley_terry import DRAWS, PRIOR, SEED
from bench.statistics.paired import ALPHA, REGION, Comparison
from bench.statistics.ranks import LEAST

MARKS = {"better": ">", "worse": "<", "equivalent": "=", "undecided": "?", "no test": "-"}
"""Verdict on the row's method against the column's -> its mark."""

FIRST = 4
"""Methods that a headline names."""

OPPOSITE = {"better": "worse", "worse": "better"}


def _signed(value: float) -> str:
    """Two decimals with a sign; what rounds to zero is +0.00."""
    return signed(round(value, 2) + 0.0)


def _ranking_rows(found: Ranking) -> list[tuple[str, tuple[Entry, ...]]]:
    rows: list[tuple[str, tuple[Entry, ...]]] = []
    for method in found.methods:
        group = found.groups.get(method)
        record = found.records.get(method)
        strength = found.strengths.get(method)
        interval = strength.interval if strength else None
        minus = found.minus_baseline(method)
        entries = (
            Entry(str(group) if group else "-"),
            Entry(f"{found.mean_ranks[method]:.2f}", 1 if group == 1 else 0),
            Entry(f"{found.scores[method].count()}/{found.planned[method]}"),
            Entry("/".join(map(str, record)) if record else "-"),
            Entry(_signed(strength.value) if strength else "-"),
            Entry(" to ".join(map(_signed, interval)) if interval else "-"),
            Entry("-" if minus is None else _signed(minus)),
        )
        rows.append((found.titles[method], entries))
    return rows


def ranking_table(study: Study, found: Ranking) -> Table:
    """Every method with numbers, best mean rank first."""
    alone = f"Minus {study.title_of(study.baseline)}"
    columns = ("Group", "Mean rank", "Tasks", "Win/tie/loss", "Strength", "95 % interval", alone)
    return Table(
        "ranking", "Ranking over tasks", "Method", (("", len(columns)),), columns, tuple(_ranking_rows(found))
    )


def _short(found: Ranking) -> Table:
    """The ranking in 80 columns."""
    columns = ("Group", "Mean rank (tasks)", "W/T/L", "Strength", "95 % interval")
    rows = tuple(
        (title, (group, Entry(f"{mean.text} ({tasks.text})", mean.place), record, strength, interval))
        for title, (group, mean, tasks, record, strength, interval, _) in _ranking_rows(found)
    )
    title = "Ranking over tasks; win/tie/loss and Bradley-Terry strength from paired tests"
    return Table("short", title, "Method", (("", len(columns)),), columns, rows)


def _groups_table(study: Study, found: Ranking) -> Table:
    made = {id(task): cell_groups(task) for task in found.tasks}
    rows = tuple(
        (
            found.titles[method],
            tuple(
                Entry(f"{task.means[method]:.2f} ({group})", 1 if group == 1 else 0)
                if (group := made[id(task)].get(method))
                else Entry("-")
                for task in found.tasks
            ),
        )
        for method in found.methods
    )
    return Table(
        "groups",
        "Measured, and group of ties in each task (1: not significantly worse than the best)",
        "Method",
        tuple((study.title_of(task.column.dataset), 1) for task in found.tasks),
        tuple(f"{task.column.scenario} {task.column.clients} {task.point}".strip() for task in found.tasks),
        rows,
    )


def _pair_entry(pair: Comparison, mirrored: bool) -> Entry:
    if pair.difference is None:
        return Entry("-")
    verdict = OPPOSITE.get(pair.verdict, pair.verdict) if mirrored else pair.verdict
    difference = -pair.difference if mirrored else pair.difference
    return Entry(f"{difference:+.2f} {MARKS[verdict]}")


def _pairs_table(study: Study, found: Ranking, task: Task) -> Table:
    made: dict[tuple[str, str], Entry] = {}
    for pair in task.comparisons:
        made[pair.first, pair.second] = _pair_entry(pair, mirrored=False)
        made[pair.second, pair.first] = _pair_entry(pair, mirrored=True)
    methods = list(task.means)
    where = task.column.described(study.title_of(task.column.dataset))
    where = ", ".join(filter(None, (where, task.point)))
    return Table(
        "_".join(map(str, filter(None, ("pairs", *astuple(task.column), task.point)))),
        f"Row minus column in points, {where} ({_tests(task)})",
        "Method",
        tuple(("", 1) for _ in methods),
        tuple(found.titles[method] for method in methods),
        tuple(
            (found.titles[row], tuple(made.get((row, column), Entry("")) for column in methods))
            for row in methods
        ),
    )


def _tests(task: Task) -> str:
    """``55 tests over 10 clients``; the most units where pairs differ in them."""
    made = [pair for pair in task.comparisons if pair.p is not None]
    if not made:
        return "no test"
    units = max(pair.units for pair in made)
    return f"{len(made)} test{'s' if len(made) > 1 else ''} over {units} {made[0].unit}s"


def tables(study: Study, found: Ranking) -> tuple[Table, ...]:
    """The ranking over tasks, the groups of ties in each, and the paired tests of each."""
    return (
        ranking_table(study, found),
        _groups_table(study, found),
        *(_pairs_table(study, found, task) for task in found.tasks),
    )


def _caption(study: Study, found: Ranking, results: Results) -> tuple[str, ...]:
    tests = "; ".join(f"{task.label(study)}: {_tests(task)}" for task in found.tasks)
    test = found.friedman
    overall = (
        f"Test over tasks: Friedman on the {test.tasks} tasks that all methods have, chi-squared "
        f"{test.statistic:.2f}, p {test.p:.2g}; then Nemenyi, critical difference of mean ranks "
        f"{test.critical_difference:.2f}. Group 1 holds the method of best mean rank on these tasks and all "
        "that are not significantly worse: only together they are first."
        if test
        else f"No test over tasks, so no groups: fewer than {LEAST} tasks (or methods) are complete."
    )
    cells = [cell.group for task in found.tasks for cell in task.cells.values() if cell.group]
    return (
        read_as(study, study.primary),
        f"Tasks: {len(found.tasks)}. Every rank is over the tasks that the method has, among the methods "
        "measured there, ties sharing their mean; nothing is imputed. Tasks: ranked of planned.",
        "Paired t test, two-sided, of the difference of two methods with the same seeds and clients, fixed "
        "before looking at numbers. Its unit is the client (mean over seeds) where all runs of a task share "
        "one partition; where clients are samples of one part of the graph (overlapping), which share test "
        "nodes, that part (mean over its clients and seeds); where there are several partitions, the "
        "partition (mean over clients, then over its seeds). Fewer than two units: no test. Holm's "
        "correction over all pairs of a task. " + tests + ".",
        f"Better (>) or worse (<): corrected p below {ALPHA:g} and a mean difference of more than {REGION:g} "
        f"points. Equivalent (=): the 95 % interval lies within ±{REGION:g} points. Undecided (?): neither. "
        "Equivalent and undecided count as ties: with few units many are, and then a tie says little.",
        overall,
        f"Strength: Bradley-Terry log odds of winning against the average method, from wins and ties (half "
        f"a win), every task of equal weight, with {PRIOR:g} of a task in which all tie; interval: bootstrap "
        f"over tasks, {DRAWS} draws, seed {SEED}.",
        f"Minus {study.title_of(study.baseline)}: mean difference in points over the tasks of both.",
        *circumstances(study, cells, results),
    )


def _notes(study: Study, found: Ranking) -> tuple[str, ...]:
    """Methods without numbers, and pairs without a test."""
    lines = []
    absent = [title for method, title in found.titles.items() if method not in found.scores]
    if absent:
        lines.append(f"without numbers, not ranked: {', '.join(absent)}")
    for task in found.tasks:
        lost: dict[str, list[str]] = defaultdict(list)
        for pair in task.comparisons:
            if pair.verdict == "no test":
                why = f"{pair.units} {pair.unit}" if pair.units else "no common seeds and partitions"
                lost[why].append(f"{found.titles[pair.first]} and {found.titles[pair.second]}")
        lines += [
            f"no test in {task.label(study)} ({why}): {'; '.join(pairs)}" for why, pairs in lost.items()
        ]
    return tuple(lines)


def _methods_record(found: Ranking) -> Iterator[dict[str, str]]:
    for method in found.methods:
        strength = found.strengths.get(method)
        low, high = (strength and strength.interval) or (None, None)
        wins, ties, losses = map(str, found.records.get(method, ("", "", "")))
        yield {
            "method": method,
            "group": str(found.groups.get(method, "")),
            "mean_rank": number(found.mean_ranks[method]),
            "tasks": str(found.scores[method].count()),
            "planned": str(found.planned[method]),
            "wins": wins,
            "ties": ties,
            "losses": losses,
            "strength": number(strength.value if strength else None),
            "low": number(low),
            "high": number(high),
            "minus_baseline": number(found.minus_baseline(method)),
        }


def _pairs_record(found: Ranking) -> Iterator[dict[str, str]]:
    for task in found.tasks:
        for pair in task.comparisons:
            low, high = pair.interval or (None, None)
            yield {
                **place(task.column),
                "point": task.point,
                "first": pair.first,
                "second": pair.second,
                "difference": number(pair.difference),
                "low": number(low),
                "high": number(high),
                "p": "" if pair.p is None else f"{pair.p:.6g}",
                "p_holm": "" if pair.corrected is None else f"{pair.corrected:.6g}",
                "unit": pair.unit,
                "units": str(pair.units),
                "verdict": pair.verdict,
            }


def _diagram(study: Study, found: Ranking, name: str) -> Figure | None:
    test = found.friedman
    if test is None:
        return None
    methods = [method for method in found.titles if method in test.ranks]
    panel = RankPanel(
        f"{study.title}: mean rank over {test.tasks} tasks",
        tuple(methods),
        tuple(found.titles[method] for method in methods),
        np.asarray(test.ranks[methods], np.float64),
        np.asarray(test.nemenyi.loc[methods, methods], np.float64),
        test.critical_difference,
        test.tasks,
    )
    caption = (
        f"Critical-difference diagram (Friedman p {test.p:.2g}, Nemenyi): mean ranks over the {test.tasks} "
        "tasks that all methods have, 1 is the best; methods under one bar do not differ significantly; CD: "
        "critical difference."
    )
    return Figure(name, f"{name}_critical_difference", caption, (panel,))


def _headline(found: Ranking) -> str:
    """The first ranks in a line; those of group 1 can only be called first together."""
    named = found.methods[:FIRST]
    ranks = ", ".join(f"{found.titles[method]} {found.mean_ranks[method]:.2f}" for method in named)
    among = f"mean ranks of {len(found.methods)} methods over {len(found.tasks)} tasks"
    ties = sum(group == 1 for group in found.groups.values())
    together = f"; {ties} are first together" if ties > 1 else ""
    return f"{among}: {ranks}{together}"


def _summary(found: Ranking, notes: tuple[str, ...], name: str) -> Summary:
    """One task has an order, but nothing to rank over."""
    if len(found.tasks) > 1:
        return Summary((_short(found),), None, notes, (_headline(found),))
    return Summary((), None, (f"one task: its paired tests are in {name}.md", *notes))


def ranking(
    study: Study, boards: Sequence[Cells], results: Results, selection: Selection
) -> Statistic | None:
    """The ranking of a study's methods over all its tasks; None where no task has two with numbers."""
    found = rank(study, boards, results, selection)
    if found is None:
        return None
    name = f"{study.name}_ranking"
    notes = _notes(study, found)
    document = Document(
        name=name,
        title=f"{study.title}: ranking of methods",
        caption=_caption(study, found, results),
        notes=notes,
        views=tables(study, found),
        details=(),
        summary=_summary(found, notes, name),
        primary=(),
        cells=tuple(cell for task in found.tasks for cell in task.cells.values()),
    )
    records = (
        Records(f"{name}_methods", tuple(_methods_record(found))),
        Records(f"{name}_pairs", tuple(_pairs_record(found))),
    )
    diagram = _diagram(study, found, name)
    return Statistic(document, records, (diagram,) if diagram else ())
