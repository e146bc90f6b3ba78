"""The ranking of a study's methods as a document: paired tests in every task, and ranks over tasks."""

from __future__ import annotations

import pandas as pd

from bench.figures import style
from bench.figures.panels import Figure, Mark, Panel
from bench.frames.graded_cells import Results
from bench.frames.ranking import TASK, Ranking
from bench.report.captions import with_runs
from bench.report.document import Document
from bench.report.table import Table, listing, measured, pivot
from bench.statistics.paired import ALPHA, REGION, of_one
from bench.statistics.summary import DRAWS, LEAST, SEED
from bench.studies.settings import Column
from bench.studies.wording import enumeration, gap, interval

MARKS = {"better": ">", "worse": "<", "equivalent": "=", "undecided": "?", "no test": "-"}
"""Verdict on the row's method against the column's -> its mark."""

VERDICTS = (
    f"Better (>) or worse (<): p below {ALPHA:g} and a mean difference of more than {REGION:g} points. "
    f"Equivalent (=): the 95 % interval lies within ±{REGION:g} points. Undecided (?): neither."
)

MOST_NAMED = 3
"""Methods that are first together and are named; more are counted."""


def first_sentence(ranking: Ranking | None) -> str:
    """Who has the best mean rank, and who cannot be told apart from them by the tests."""
    if ranking is None:
        return "No two methods were measured on the same clients yet, so that nobody has a rank."
    ranks = ranking.ranks
    best, tested = ranks.iloc[0], ranks["group"].notna().sum()
    others = ranks.loc[ranks["group"] == 1, "title"].tolist()[1:]
    if ranking.task_count == 1:
        mean = ranking.scores[best["method"]].iloc[0]
        text = f"the highest mean of {len(ranks)} methods on one federation, {mean:.1f}\N{NO-BREAK SPACE}%"
    else:
        scope = f"{len(ranks)} methods over {ranking.task_count} federations"
        ends = f"{best['low']:.1f} to {best['high']:.1f}"
        text = f"the best mean rank of {scope}, {best['rank']:.1f} (95\N{NO-BREAK SPACE}% interval {ends})"
    text = f"{best['title']} has {text}"
    if not tested:
        return f"{text}, but there are too few results to test differences."
    if others:
        names = enumeration(others) if len(others) < MOST_NAMED else f"{len(others)} others"
        return f"{text}, but the tests cannot tell it apart from {names}."
    tests = of_one(best["method"], ranking.over_datasets)
    less = (
        f", though not over the {tests['units'].iloc[0]} data sets"
        if (tests["verdict"] != "better").any()
        else ""
    )
    return f"{text}, and is significantly ahead of every other over these{less}."


def by_dataset(ranking: Ranking) -> str:
    """Who is worse than the best where federations of one data set count once; empty without such tests."""
    best = ranking.ranks.iloc[0]
    tests = of_one(best["method"], ranking.over_datasets)
    if tests.empty:
        return ""
    titles = tests.loc[tests["verdict"] == "better", "second"].map(ranking.titles).tolist()
    return (
        f"Federations of one data set share its items. With the {tests['units'].iloc[0]} data sets as units "
        f"(means over their federations), significantly worse than {best['title']}: "
        f"{enumeration(titles) if titles else 'no method'}."
    )


def leaders(ranking: Ranking | None) -> str:
    """Who has the best mean rank on each data set, of the methods that have all of its tasks, where that is
    not the same method on all.
    """
    if ranking is None:
        return ""
    datasets: dict[str, list[str]] = {}
    for dataset, part in ranking.cells.groupby("dataset", sort=False):
        means = part.pivot(index="task", columns="method", values="mean").dropna(axis=1)
        means = means[[method for method in ranking.titles if method in means]]
        if not means.empty:
            best = str(means.rank(axis=1, ascending=False).mean().idxmin())
            datasets.setdefault(best, []).append(ranking.study.title_of(str(dataset)))
    parts = [f"{ranking.titles[method]} on {enumeration(names)}" for method, names in datasets.items()]
    return f"Best mean rank by data set: {'; '.join(parts)}." if len(parts) > 1 else ""


def _ranking_table(ranking: Ranking) -> Table:
    """Every method with numbers, in the order of the ranking."""
    ranks = ranking.ranks
    rows = {
        "Method": ranks["title"],
        "Group": ranks["group"],
        "Mean rank": ranks["rank"],
        "95 % interval": list(map(interval, ranks["low"], ranks["high"])),
        "Tasks": ranks["tasks"].astype(str) + "/" + ranks["planned"].astype(str),
        f"Minus {ranking.baseline_title}": ranks["minus_baseline"].map(gap),
    }
    return listing("ranking", "Ranking over tasks", pd.DataFrame(rows).set_index("Method"))


def _groups_table(ranking: Ranking) -> Table:
    """What every method measures in every task, with its group of ties there."""
    cells, order = ranking.cells, ranking.ranks["method"].tolist()
    groups = cells["group"].fillna(0).astype(int)
    values = [
        measured(mean, note=f"({group})" if group else "", rank=int(group == 1))
        for mean, group in zip(cells["mean"], groups, strict=True)
    ]
    cells = cells.assign(
        cell=pd.Series(values, cells.index, dtype=object),
        heading=cells["dataset"].map(ranking.study.title_of),
        name=cells["scenario"] + " " + cells["clients"].astype(str) + " " + cells["point"],
        order=cells["method"].map(order.index),
        title=cells["method"].map(ranking.titles),
    )
    title = "Measured, and group of ties in each task (1: not significantly worse than the best; none of a "
    return Table("groups", f"{title}single run)", pivot(cells, "Method", ["order", "title"], ["task"]))


def task_label(ranking: Ranking, cells: pd.DataFrame) -> str:
    """``Cora, non-overlapping, 10 clients``, with the point, of the cells of a task."""
    *where, point = cells[TASK].iloc[0]
    return ", ".join(filter(None, (ranking.study.column_title(Column(*where)), point)))


def _extent(tests: pd.DataFrame) -> str:
    """``55 tests over 10 clients``; the most units where pairs differ in them."""
    known = tests[tests["p"].notna()]
    if known.empty:
        return "no test"
    return f"{len(known)} tests over {known['units'].max()} {known['unit'].iloc[0]}s"


def _notes(ranking: Ranking) -> tuple[str, ...]:
    """Methods without numbers, and how many pairs have no test."""
    notes = []
    if ranking.unranked_titles:
        notes.append(f"without numbers in default settings, not ranked: {', '.join(ranking.unranked_titles)}")
    for task, cells in ranking.cells.groupby("task"):
        is_missing = ranking.tests.loc[ranking.tests["task"] == task, "verdict"] == "no test"
        if is_missing.any():
            place = task_label(ranking, cells)
            notes.append(f"no test in {place}: {is_missing.sum()} of {len(is_missing)} pairs of methods")
    return tuple(notes)


def pairs_record(ranking: Ranking) -> pd.DataFrame:
    """The tests of every task, then those over tasks and over data sets, which have no place."""
    places = ranking.cells.drop_duplicates("task")[["task", *TASK]].astype({"clients": "Int64"})
    tests = ranking.tests.merge(places, on="task", how="left")
    for name in ("p", "p_holm"):
        tests[name] = ["" if pd.isna(value) else f"{value:.6g}" for value in tests[name]]
    columns = ["first", "second", "difference", "low", "high", "p", "p_holm", "unit", "units", "verdict"]
    return tests[[*TASK, *columns]]


def _figure(ranking: Ranking) -> Figure:
    """Ranks with their intervals."""
    study, count = ranking.study, ranking.task_count
    columns = ["method", "mean_rank", "low", "high", "group", "tasks"]
    data = ranking.ranks.rename(columns={"rank": "mean_rank"})[columns]
    marks = tuple(
        Mark(method, ranking.titles[method], style.look_of(method, study)) for method in data["method"]
    )
    tasks = f"{'' if (data['tasks'] == count).all() else 'up to '}{count} tasks"
    caption = (
        f"Mean ranks over {tasks} with 95 % intervals, 1 is the best; methods of one group are not told "
        "apart by the paired tests."
    )
    panel = Panel("ranks", "", data, marks)
    return Figure(f"{study.name}_ranking_ranks", caption, (panel,), f"{study.title}: mean rank over {tasks}")


def ranking_document(ranking: Ranking, results: Results) -> Document:
    """The document of a study's ranking; of a single task without ranks."""
    columns = ["method", "group", "rank", "low", "high", "tasks", "planned", "minus_baseline"]
    has_ranks = ranking.task_count > 1
    pairs = pairs_record(ranking)
    over_tasks = pairs[pairs["unit"] == "task"].drop(columns=TASK).set_index("first")
    no_test = f" No test over tasks: fewer than {LEAST} of them, or than two methods that have them all."
    caption = (
        f"{ranking.task_count} tasks; intervals by bootstrap over tasks and runs."
        f"{no_test if over_tasks.empty else ''} Group 1 holds the best method and all that are not "
        f"significantly worse: only together they are first. {by_dataset(ranking)}"
    )
    fine_print = (
        "Every rank is over the tasks that the method has, among the methods measured there; nothing is "
        "imputed. Tasks: ranked of planned; methods that lack some stand last, in no group. Interval: "
        f"{DRAWS} draws, seed {SEED}. Minus {ranking.baseline_title}: mean difference in points.",
        "Paired t test, two-sided, of two methods with the same seeds and clients. Its unit is the client; "
        "the part of the graph where clients are samples of one; the partition where there are several; the "
        "task, or the data set. Holm's correction over all pairs of a task; for groups over the tests "
        f"against the leader of the group. Over tasks: {_extent(ranking.over_tasks)}; over data sets: "
        f"{_extent(ranking.over_datasets)}.",
        f"{VERDICTS} p is corrected.",
    )
    document = Document(
        ranking.study,
        "ranking",
        "Ranking of methods",
        "Mean ranks with intervals, methods that cannot be told apart, and paired tests of any two.",
        caption=(caption.strip(),),
        views=(*([_ranking_table(ranking)] if has_ranks else []), _groups_table(ranking)),
        cells=ranking.cells,
        details=(listing("pairs", "Tests over tasks", over_tasks),) if len(over_tasks) else (),
        notes=_notes(ranking),
        fine_print=fine_print,
        figures=(_figure(ranking),) if has_ranks else (),
        records={"methods": ranking.ranks[columns], "pairs": pairs},
    )
    return with_runs(document, results)
