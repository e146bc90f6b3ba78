"""The document of a ranking of methods: paired tests in every task, and ranks over tasks."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from bench.figures import style
from bench.figures.panels import Figure
from bench.frames.graded_cells import Results
from bench.frames.ranking import TASK, Ranking
from bench.report.captions import with_runs
from bench.report.document import Document, listing
from bench.statistics.paired import ALPHA, REGION, of_one
from bench.statistics.summary import LEAST
from bench.studies.settings import Column
from bench.studies.wording import enumeration, interval, reading_text, signed

MOST_NAMED = 3
"""If this many methods or more are tied with the best, a sentence counts them; fewer are named."""


def first_sentence(ranking: Ranking | None) -> str:
    """A sentence: the method with the best mean rank, and the methods that the tests cannot tell apart."""
    if ranking is None:
        return "No two methods were measured on the same clients yet, so that nobody has a rank."
    ranks = ranking.ranks
    best, tested = ranks.iloc[0], ranks["group"].notna().sum()
    others = ranks.loc[ranks["group"] == 1, "title"].tolist()[1:]
    if ranking.task_count == 1:
        mean = ranking.scores[best["method"]].iloc[0]
        text = f"the highest mean of {len(ranks)} methods on one federation, {mean:.1f}\N{NO-BREAK SPACE}%"
    else:
        text = f"the best mean rank of {len(ranks)} methods over {ranking.task_count} federations, "
        text += f"{best['rank']:.1f} (95\N{NO-BREAK SPACE}% interval {best['low']:.1f} to {best['high']:.1f})"
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


def task_label(ranking: Ranking, cells: pd.DataFrame) -> str:
    """The label of a task from its cells: ``Cora, non-overlapping, 10 clients``, then the point, if any."""
    *where, point = cells[TASK].iloc[0]
    return ", ".join(filter(None, (ranking.study.column_title(Column(*where)), point)))


def pairs_record(ranking: Ranking) -> pd.DataFrame:
    """The tests of every task, then the tests over tasks and over data sets (empty place columns)."""
    places = ranking.cells.drop_duplicates("task")[["task", *TASK]].astype({"clients": "Int64"})
    tests = ranking.tests.merge(places, on="task", how="left")
    tests[["p", "p_holm"]] = tests[["p", "p_holm"]].map("{:.6g}".format, na_action="ignore")
    columns = ["first", "second", "difference", "low", "high", "p", "p_holm", "unit", "units", "verdict"]
    return tests[[*TASK, *columns]]


def _figure(ranking: Ranking) -> Figure:
    """The figure of mean ranks with their intervals."""
    study, data = ranking.study, ranking.ranks.rename(columns={"rank": "mean_rank"}).assign(panel="")
    looks = {
        method: replace(style.look_of(method, study), label=title)
        for method, title in zip(data["method"], data["title"], strict=True)
    }
    tasks = f"{'' if (data['tasks'] == ranking.task_count).all() else 'up to '}{ranking.task_count} tasks"
    caption = (
        f"Mean ranks over {tasks} with 95 % intervals, 1 is the best; methods of one group are not told "
        "apart by the paired tests."
    )
    title, columns = f"{study.title}: mean rank over {tasks}", ["mean_rank", "low", "high", "group", "tasks"]
    data = data[["panel", "method", *columns]]
    return Figure(f"{study.name}_ranking_ranks", "ranks", title, caption, data, looks)


def ranking_document(ranking: Ranking, results: Results) -> Document:
    """The document of a study's ranking."""
    ranks = ranking.ranks
    rows = {
        "Method": ranks["title"],
        "Group": ranks["group"],
        "Mean rank": ranks["rank"],
        "95 % interval": list(map(interval, ranks["low"], ranks["high"])),
        "Tasks": ranks["tasks"].astype(str) + "/" + ranks["planned"].astype(str),
        f"Minus {ranking.baseline_title}": ranks["minus_baseline"].map(signed),
    }
    columns = ["method", "group", "rank", "low", "high", "tasks", "planned", "minus_baseline"]
    missing = ", ".join(ranking.unranked_titles)
    document = Document(
        ranking.study,
        "ranking",
        "Ranking of methods",
        "Mean ranks with intervals, methods that cannot be told apart, and paired tests of any two.",
        caption=(
            f"Test accuracy in percent; {reading_text(ranking.study.primary)}.",
            f"{ranking.task_count} tasks; intervals by bootstrap over tasks and runs. Group 1 holds the best "
            "method and all that are not significantly worse. pairs.csv has all tests.",
        ),
        views=(listing("ranking", "Ranking over tasks", pd.DataFrame(rows).set_index("Method")),),
        cells=ranking.cells,
        notes=(f"without numbers in default settings, not ranked: {missing}",) if missing else (),
        fine_print=(
            "A rank is over the tasks that the method has, among the methods measured there; nothing is "
            "imputed. Methods that lack tasks stand last, in no group. Paired t test, two-sided, of two "
            "methods with the same seeds and clients; its unit is the client, the part of the graph where "
            "clients are samples of one, the partition where there are several, the task, or the data set. "
            "Holm's correction over all pairs of a task; for groups over the tests against the group's "
            f"leader. No test over fewer than {LEAST} tasks. Better or worse: corrected p below {ALPHA:g}, "
            f"mean difference of more than {REGION:g} points. Equivalent: the 95 % interval lies within "
            f"±{REGION:g} points. Undecided: neither.",
        ),
        figures=(_figure(ranking),) if ranking.task_count > 1 else (),
        records={"methods": ranks[columns], "pairs": pairs_record(ranking)},
    )
    return with_runs(document, results)
