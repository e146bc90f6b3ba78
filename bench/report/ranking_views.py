"""The ranking of a study's methods as a document: paired tests in every task, and ranks over tasks; and where
one method stands among them, the summary of ``bench compare``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass

import pandas as pd

from bench.figures import style
from bench.figures.layout import Figure, Mark
from bench.figures.plots import Ranks
from bench.report.captions import statistic
from bench.report.document import Document
from bench.report.table import Entry, Table, listing, pivot
from bench.statistics.paired import ALPHA, REGION, PairedTest, Verdict, of_one
from bench.statistics.summary import DRAWS, LEAST, SEED
from bench.studies.cells import Cell
from bench.studies.groups import Aggregate, Group
from bench.studies.measures import BELOW_BASELINE
from bench.studies.ranking import Ranking, Task, cell_groups
from bench.studies.wording import gap, interval, number, ranges, signed, with_std

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


def _groups_table(ranking: Ranking) -> Table:
    groups = {id(task): cell_groups(task) for task in ranking.tasks}
    return pivot(
        "groups",
        "Measured, and group of ties in each task (1: not significantly worse than the best)",
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
            (method, id(task)): (Entry(f"{task.means[method]:.2f} ({group})", 1 if group == 1 else 0),)
            for task in ranking.tasks
            for method, group in groups[id(task)].items()
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
    over_tasks = (
        ""
        if ranking.comparisons
        else f"No test over tasks: fewer than {LEAST} of them, or than two methods that have them all. "
    )
    return (
        f"{len(ranking.tasks)} tasks; intervals by bootstrap over tasks and runs. {over_tasks}Group 1 holds "
        "the best method and all that are not significantly worse: only together they are first."
    )


def _fine_print(ranking: Ranking) -> tuple[str, ...]:
    tests = "; ".join(f"{task.label(ranking.study)}: {_tests(task.comparisons)}" for task in ranking.tasks)
    return (
        "Every rank is over the tasks that the method has, among the methods measured there, ties sharing "
        "their mean; nothing is imputed. Tasks: ranked of planned; methods that lack some stand last. "
        f"Interval: {DRAWS} draws, seed {SEED}. Minus {ranking.baseline_title}: mean difference in "
        "points over the tasks of both.",
        "Paired t test, two-sided, of the difference of two methods with the same seeds and clients, fixed "
        "before looking at numbers. Its unit is the client (mean over seeds) where all runs of a task share "
        "one partition; where clients are samples of one part of the graph (overlapping), which share test "
        "nodes, that part (mean over its clients and seeds); where there are several partitions, the "
        "partition (mean over clients, then over its seeds). Fewer than two units: no test. Holm's "
        "correction over all pairs of a task; for groups, by a rule that was set later, over the tests "
        f"against the leader of the group (multiple comparisons with the best). Over tasks, of the methods "
        f"that have all of them: {_tests(ranking.comparisons)}. {tests}.",
        f"Better (>) or worse (<): corrected p below {ALPHA:g} and a mean difference of more than {REGION:g} "
        f"points. Equivalent (=): the 95 % interval lies within ±{REGION:g} points. Undecided (?): neither; "
        "with few units many are.",
    )


def _notes(ranking: Ranking) -> tuple[str, ...]:
    """Methods without numbers, and pairs without a test."""
    lines = []
    if ranking.unranked_titles:
        lines.append(f"without numbers, not ranked: {', '.join(ranking.unranked_titles)}")
    for task in ranking.tasks:
        gaps: dict[str, list[str]] = defaultdict(list)
        for pair in task.comparisons:
            if pair.verdict == "no test":
                reason = f"{pair.units} {pair.unit}" if pair.units else "no common seeds and partitions"
                gaps[reason].append(f"{ranking.titles[pair.first]} and {ranking.titles[pair.second]}")
        lines += [
            f"no test in {task.label(ranking.study)} ({reason}): {'; '.join(pairs)}"
            for reason, pairs in gaps.items()
        ]
    return tuple(lines)


def pairs_record(ranking: Ranking) -> pd.DataFrame:
    """The tests of every task, then those over tasks, which have no place."""
    empty_place: dict[str, str | int] = dict.fromkeys(("dataset", "scenario", "clients"), "")
    tests = [(asdict(task.column), task.point, pair) for task in ranking.tasks for pair in task.comparisons]
    tests += [(empty_place, "", pair) for pair in ranking.comparisons]
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
    return Figure(
        f"{study.name}_ranking_ranks", caption, (Ranks("", data, marks, task_count=count),), heading
    )


def ranking_document(ranking: Ranking) -> Document:
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
        [cell for task in ranking.tasks for cell in task.cells.values()],
        caption=(_caption(ranking),),
        fine_print=_fine_print(ranking),
        notes=_notes(ranking),
        views=views,
        details=pair_tables(ranking),
        printed=views[:1] if len(ranking.tasks) > 1 else views[1:],
        figures=(figure,) if figure else (),
        records={"methods": methods, "pairs": pairs_record(ranking)},
    )


@dataclass(frozen=True, eq=False)
class Standing:
    """A method in one task. ``pairs`` are its comparisons with every other method, itself first, corrected
    over these alone.

    ``clients_below`` is the mean number of clients below the baseline, where there is one.
    """

    task: Task
    cell: Cell
    accuracy: Aggregate
    group: Group
    pairs: dict[str, PairedTest]
    clients_below: float | None

    @property
    def rank(self) -> int:
        """Its place by mean accuracy; equal means share the better one."""
        return self.places[self.cell.method]

    @property
    def places(self) -> dict[str, int]:
        """Every method's place, the best first."""
        means = self.task.means
        ranks = {method: 1 + sum(other > mean for other in means.values()) for method, mean in means.items()}
        return dict(sorted(ranks.items(), key=lambda item: item[1]))

    @property
    def best_other(self) -> str:
        """The other method of highest mean."""
        return max(self.pairs, key=lambda method: self.task.means[method])

    def common_seeds(self, other_method: str) -> tuple[int, ...]:
        """The seeds of both methods, on which they are compared."""
        other_seeds = set(self.task.cells[other_method].seeds)
        return tuple(seed for seed in self.cell.seeds if seed in other_seeds)

    @property
    def tests(self) -> int:
        """Number of methods that it was tested against."""
        return sum(pair.verdict != "no test" for pair in self.pairs.values())

    def against(self, verdict: Verdict) -> list[str]:
        """The methods of which the test says that it is better, worse, ... than they are."""
        return [method for method, pair in self.pairs.items() if pair.verdict == verdict]


def standings(ranking: Ranking, method: str) -> list[Standing]:
    """The method in every task that it has numbers of."""
    all_standings = []
    for task in ranking.tasks:
        cell = task.cells.get(method)
        if cell and cell.measured and cell.group:
            pairs = {pair.second: pair for pair in of_one(method, task.comparisons)}
            below_counts = BELOW_BASELINE.of(cell.reading)
            mean_below = Aggregate(below_counts).mean if below_counts else None
            all_standings.append(Standing(task, cell, cell.measured, cell.group, pairs, mean_below))
    return all_standings


def standings_table(ranking: Ranking, all_standings: list[Standing], title: str) -> Table:
    """One row a task, in 80 columns; the data set is named where there are several.

    Better / worse count the methods that it is significantly better and worse than, of those it was tested
    against; Below the clients below the baseline; s and MB what a run takes and exchanges.
    """
    below_heading = f"Below\n{ranking.baseline_title}"
    are_several = len({standing.task.column.dataset for standing in all_standings}) > 1
    rows = []
    for standing in all_standings:
        column, group = standing.task.column, standing.group
        better_count, worse_count = len(standing.against("better")), len(standing.against("worse"))
        texts = {
            "Test": with_std(standing.accuracy.mean, standing.accuracy.std),
            "Place": f"{standing.rank}/{len(standing.task.means)}",
            "Better /\nworse": f"{better_count}/{worse_count} of {standing.tests}",
            below_heading: number(standing.clients_below, ".1f"),
            "s": f"{group.seconds:.1f}",
            "MB": f"{group.megabytes:.0f}",
        }
        dataset = ranking.study.title_of(column.dataset) if are_several else ""
        place = " ".join(filter(None, (dataset, column.scenario, str(column.clients), standing.task.point)))
        rows.append((place, texts))
    return listing("standing", title, "Task", rows)


def others_table(ranking: Ranking, method: str, standing: Standing) -> Table:
    """The method among all others of a task, the best first, in 80 columns.

    Ahead by is what the method has over each of them on the seeds and clients of both, with its verdict.
    """
    rows = []
    for other_method, place in standing.places.items():
        cell, pair = standing.task.cells[other_method], standing.pairs.get(other_method)
        assert cell.measured
        texts = {
            "Place": str(place),
            "Test": with_std(cell.measured.mean, cell.measured.std),
            "Seeds": ranges(cell.seeds),
            "Ahead by,\nsame seeds": "-" if pair is None or pair.difference is None else gap(pair.difference),
            "Verdict": pair.verdict if pair else "-",
        }
        rows.append((ranking.titles[other_method], texts))
    title = f"{standing.task.label(ranking.study)}: {ranking.titles[method]} among the others"
    return listing("others", title, "Method", rows)


def standing_sentences(ranking: Ranking, method: str, all_standings: list[Standing]) -> list[str]:
    """What the method has over the best other one, and who it is significantly better and worse than, by
    task; and its place and the tests over several tasks.
    """
    lines = []
    for standing in all_standings:
        place = standing.task.label(ranking.study)
        lines.append(f"{place}: {_against_best(standing, ranking)}.")
        lines += _significant(place, standing.pairs.values(), ranking)
    if len(all_standings) > 1:
        tasks_text = f"Over {len(all_standings)} tasks"
        lines.append(f"{tasks_text}: {_overall(ranking, method)}.")
        lines += _significant(tasks_text, of_one(method, ranking.comparisons), ranking)
    return lines


def _significant(place: str, pairs: Collection[PairedTest], ranking: Ranking) -> Iterator[str]:
    """The methods that the first of these pairs is significantly better and worse than; nothing of none."""
    verdicts: tuple[Verdict, ...] = ("better", "worse")
    for verdict in verdicts:
        if titles := [ranking.titles[pair.second] for pair in pairs if pair.verdict == verdict]:
            yield f"{place}: significantly {verdict} than {', '.join(titles)}."


def _against_best(standing: Standing, ranking: Ranking) -> str:
    pair, rival = (
        standing.pairs[standing.best_other],
        f"{ranking.titles[standing.best_other]}, the best other",
    )
    if pair.difference is None:
        return f"no seeds and partitions in common with {rival}: no test"
    seeds = standing.common_seeds(standing.best_other)
    text = f"{gap(pair.difference)} points against {rival}"
    if seeds != standing.cell.seeds or seeds != standing.task.cells[standing.best_other].seeds:
        text += f", on the seeds of both, {ranges(seeds)}"
    if pair.interval is None or pair.p is None or pair.corrected is None:
        return f"{text} ({pair.units} {pair.unit}): no test"
    low, high = map(gap, pair.interval)
    count = f" over {standing.tests} comparisons" if standing.tests > 1 else ""
    test_text = f"95 % interval {low} to {high}, p {pair.p:.2g}, corrected{count} {pair.corrected:.2g}"
    return f"{text} ({test_text}, {pair.units} {pair.unit}s): {pair.verdict}"


def _overall(ranking: Ranking, method: str) -> str:
    row = ranking.table.set_index("method").loc[method]
    text = (
        f"mean rank {row['rank']:.2f} of {len(ranking.methods)} "
        f"(95 % interval {row['low']:.2f} to {row['high']:.2f})"
    )
    return f"{text}, group of ties {ranking.groups[method]}" if method in ranking.groups else text
