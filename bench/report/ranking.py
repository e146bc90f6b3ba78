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
from bench.studies.wording import enumeration, interval, signed

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
    text += ", and is significantly ahead of every other over these"
    if (tests["verdict"] != "better").any():
        text += f", though not over the {tests['units'].iloc[0]} data sets"
    return f"{text}."


def _ranking_table(ranking: Ranking) -> Table:
    """Every method with numbers, in the order of the ranking."""
    ranks = ranking.ranks
    rows = {
        "Method": ranks["title"],
        "Group": ranks["group"],
        "Mean rank": ranks["rank"],
        "95 % interval": list(map(interval, ranks["low"], ranks["high"])),
        "Tasks": ranks["tasks"].astype(str) + "/" + ranks["planned"].astype(str),
        f"Minus {ranking.baseline_title}": ranks["minus_baseline"].map(signed),
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
    missing = ", ".join(ranking.unranked_titles)
    document = Document(
        ranking.study,
        "ranking",
        "Ranking of methods",
        "Mean ranks with intervals, methods that cannot be told apart, and paired tests of any two.",
        caption=(
            f"{ranking.task_count} tasks; intervals by bootstrap over tasks and runs. Group 1 holds the best "
            "method and all that are not significantly worse: only together they are first. pairs.csv has "
            "the tests of every task, over tasks and over data sets.",
        ),
        views=(*([_ranking_table(ranking)] if has_ranks else []), _groups_table(ranking)),
        cells=ranking.cells,
        notes=(f"without numbers in default settings, not ranked: {missing}",) if missing else (),
        fine_print=(
            "Every rank is over the tasks that the method has, among the methods measured there; nothing is "
            "imputed. Tasks: ranked of planned; methods that lack some stand last, in no group. Interval: "
            f"{DRAWS} draws, seed {SEED}. Minus {ranking.baseline_title}: mean difference in points.",
            "Paired t test, two-sided, of two methods with the same seeds and clients. Its unit is the "
            "client; the part of the graph where clients are samples of one; the partition where there are "
            "several; the task, or the data set. Holm's correction over all pairs of a task; for groups over "
            f"the tests against the leader of the group. No test over fewer than {LEAST} tasks.",
            f"Better or worse: corrected p below {ALPHA:g} and a mean difference of more than {REGION:g} "
            f"points. Equivalent: the 95 % interval lies within ±{REGION:g} points. Undecided: neither.",
        ),
        figures=(_figure(ranking),) if has_ranks else (),
        records={"methods": ranking.ranks[columns], "pairs": pairs_record(ranking)},
    )
    return with_runs(document, results)
