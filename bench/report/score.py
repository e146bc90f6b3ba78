"""How much of each paper comes out, every published value once, and what placebos would score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import scipy  # its stats, slow to import, are loaded with the first test

from bench.frames.graded_cells import Results
from bench.frames.ranking import TASK, Ranking
from bench.frames.spread import SAME_CLIENTS, SPLIT
from bench.frames.verdicts import GRADES, NOT_COMPARABLE, STATES, graded
from bench.report.captions import LEGEND, statistic
from bench.report.document import Document, Score
from bench.report.table import Table, listing
from bench.statistics.paired import of_one
from bench.statistics.summary import LEAST_METHODS, kendall
from bench.studies.published import published
from bench.studies.settings import Column
from bench.studies.study import Study
from bench.studies.wording import enumeration

VALUE = ["paper", "printed"]
"""What names a published value."""

NO_TABLE = "no table here"
"""Stands for a published accuracy that no table of the study has."""

ALWAYS = [*GRADES, NOT_COMPARABLE, STATES["not_run"]]
"""Verdicts that a score names even where no cell has them."""

ORDER = [*GRADES, NOT_COMPARABLE, *STATES.values(), NO_TABLE]

PRINTED = ("score", "placebos", "clients", "signs")
"""Tables of the score that a terminal shows."""

OWN_RUNS = "the method's own"

MOST_NAMED_LEADERS = 3
"""Methods that are first together and are named; more are counted."""


def judged_once(study: Study, cells: pd.DataFrame, drawn_only: bool = False) -> pd.DataFrame:
    """The cells by which the published values are judged, a row a value, in the order of the tables, with
    printed_table, where the paper has the value.

    A value that several tables show is judged in the first of those that measured it, if possible in one
    where it is comparable, of these in one on the paper's own clients, which another draw cannot excuse;
    ``drawn_only`` leaves the latter out. A reduced experiment measures something else, and stands behind all
    whole ones; one that is apart judges in its own table alone.
    """
    apart, reduced = (
        [experiment.name for experiment in study.experiments if getattr(experiment, name)]
        for name in ("apart", "reduced")
    )
    is_value = cells["primary"] & cells["usual"] & cells["printed"].notna() & (cells["study"] == study.name)
    values = cells[is_value & ~cells["document"].isin(apart)]
    values = values[~is_on_papers_clients(values)] if drawn_only else values
    weight = np.select(
        [values["document"].isin(reduced), values["n"] == 0, ~values["verdict"].isin(GRADES)],
        [-1, 0, 1],
        2 + is_on_papers_clients(values),
    )
    values = values.assign(weight=weight, first=values.groupby(VALUE)["order"].transform("min"))
    best = values.sort_values("weight", ascending=False, kind="stable").drop_duplicates(VALUE)
    best = best.sort_values("first").drop(columns=["weight", "first"])
    targets = zip(best["paper"], best["printed"], strict=True)
    return best.assign(
        printed_table=[published(paper, study.published)[number].table for paper, number in targets]
    )


def is_on_papers_clients(cells: pd.DataFrame) -> pd.Series[bool]:
    """Whether the runs of cells are on the parts of the published ones."""
    return cells["s_d_source"].isin([SAME_CLIENTS, SPLIT])


def verdict_counts(study: Study, judged: pd.DataFrame, is_whole: bool = True) -> pd.DataFrame:
    """How many published values of each paper have each verdict: a row a paper, the columns ``ORDER``.

    ``is_whole`` False: filters leave cells out on purpose, so that nobody asks what has no table.
    """
    counts = counted(judged, ["paper"], "verdict", ORDER)
    for paper in counts.index if is_whole else ():
        known = set(judged.loc[judged["paper"] == paper, "printed"])
        values = enumerate(published(paper, study.published))
        counts.loc[paper, NO_TABLE] = sum(
            value.metric == "accuracy" and number not in known for number, value in values
        )
    return counts


def counted(data: pd.DataFrame, keys: list[str], verdict: str, order: Iterable[str]) -> pd.DataFrame:
    """Numbers of verdicts: a row a group in the order of the data, a column a verdict."""
    counts = data.groupby([*keys, verdict], sort=False).size().unstack(fill_value=0)
    return counts.reindex(columns=list(order), fill_value=0)


def scores(study: Study, counts: pd.DataFrame) -> tuple[Score, ...]:
    """The score of every paper, from ``verdict_counts``."""
    measured = [*GRADES, NOT_COMPARABLE]
    return tuple(
        Score(
            study.paper_title(str(paper)),
            tuple((name, int(row[name])) for name in measured if row[name]),
            int(row.sum()),
        )
        for paper, row in counts.iterrows()
    )


def placebos(study: Study, judged: pd.DataFrame) -> pd.DataFrame:
    """Grades of all graded cells, and those of the baseline's and the control's runs in the place of others':
    columns paper, runs, grade; a row a cell and runs.
    """
    own = judged[judged["verdict"].isin(GRADES)].reset_index(drop=True)
    parts = [own.assign(runs=OWN_RUNS, grade=own["verdict"])]
    for method, mean, name in (
        (study.baseline, "baseline_mean", "baseline"),
        (study.control, "control", "control"),
    ):
        others = own[(own[f"{name}_n"].fillna(0) > 1) & (own["method"] != method)]
        others = others.assign(n=others[f"{name}_n"], mean=others[mean], std=others[f"{name}_std"])
        parts.append(others.assign(runs=f"{study.title_of(method)}'s", grade=graded(others)["verdict"]))
    return pd.concat(parts).sort_index(kind="stable")[["paper", "runs", "grade"]].reset_index(drop=True)


def on_both(study: Study, cells: pd.DataFrame) -> pd.DataFrame:
    """Grades of values that were measured on the paper's own clients and on drawn ones: columns paper,
    clients, grade; two rows a value.
    """
    judged, drawn = judged_once(study, cells), judged_once(study, cells, drawn_only=True)
    own = judged[is_on_papers_clients(judged)]
    pairs = drawn[drawn["n"] > 0].merge(own[[*VALUE, "verdict"]], on=VALUE, suffixes=("", "_own"))
    grades = pairs.rename(columns={"verdict": "drawn", "verdict_own": "the paper's own"})
    rows = grades.melt("paper", ["drawn", "the paper's own"], "clients", "grade")
    return rows.sort_values(
        "paper", key=lambda papers: papers.map(list(judged["paper"]).index), kind="stable"
    )


def sign_tests(judged: pd.DataFrame) -> pd.DataFrame:
    """Whether graded cells of a data set lie to one side of the paper: by paper and data set the number of
    ``cells``, those ``below`` and ``above`` the published mean, the ``mean`` difference in points, and
    ``p`` of a two-sided binomial test, in which cells that differ by nothing do not count.
    """
    rows = judged[judged["verdict"].isin(GRADES)]
    rows = rows.assign(is_below=rows["difference"] < 0, is_above=rows["difference"] > 0)
    signs = rows.groupby(["paper", "dataset"], sort=False).agg(
        cells=("difference", "size"),
        below=("is_below", "sum"),
        above=("is_above", "sum"),
        mean=("difference", "mean"),
    )
    sides = zip(signs["below"].tolist(), signs["above"].tolist(), strict=True)
    return signs.assign(
        p=[
            scipy.stats.binomtest(below, below + above).pvalue if below + above else 1.0
            for below, above in sides
        ]
    )


def agreements(study: Study, results: Results, cells: pd.DataFrame) -> pd.DataFrame:
    """Kendall's tau of measured and published order in every column of the tables that compare methods, over
    its comparable methods: columns paper, table, beside, dataset, scenario, clients, point, methods and tau.

    Comparable is a cell that has a grade; of a reduced experiment every measured one. A method has one line,
    that which is ranked. Tau is missing for too few.
    """
    experiments = {experiment.name: experiment for experiment in study.experiments if experiment.competes}
    reduced = [name for name, experiment in experiments.items() if experiment.reduced]
    places = results.places[["place", "line_object", "column_number", "inner"]]
    compared = cells[
        cells["document"].isin(experiments)
        & cells["primary"]
        & (cells["position"] == 0)
        & cells["usual"]
        & (cells["verdict"].isin(GRADES) | cells["document"].isin(reduced))
        & (cells["n"] > 0)
        & cells["published_mean"].notna()
    ].merge(places, on="place")
    compared = compared[np.array([line.ranked for line in compared["line_object"]], bool)]
    compared = compared.assign(document_number=compared["document"].map(list(experiments).index))
    compared = compared.sort_values(["document_number", "comparison_number", "column_number", "inner"])
    rows = []
    for (document, number, *task), pairs in compared.groupby(
        ["document", "comparison_number", *TASK], sort=False
    ):
        comparison = experiments[str(document)].comparisons[int(str(number))]
        target = comparison.targets[0]
        tau = kendall(pairs["mean"].tolist(), pairs["published_mean"].tolist())
        rows.append((target.paper, target.table, comparison.label, *task, len(pairs), tau))
    names = ["paper", "table", "beside", *TASK, "methods", "tau"]
    return pd.DataFrame(rows, columns=names).astype({"tau": float})


def spread_note(study: Study, judged: pd.DataFrame) -> str:
    """How many compatible cells of each paper rest on the spread between partitions; empty without any."""
    compatible = judged[judged["verdict"] == "compatible"]
    counts = [
        f"{study.paper_title(str(paper))}: {part.sum()} of {len(part)}"
        for paper, part in compatible.groupby("paper", sort=False)["rests_on_spread"]
    ]
    if not counts:
        return ""
    text = "Compatible cells that would be above or below without the spread between partitions"
    return f"{text}: {'; '.join(counts)}."


def headline(ranking: Ranking | None, all_scores: Iterable[Score]) -> tuple[str, ...]:
    """Who is first, or that nobody can be told apart; how much of the published values was measured, and
    what came of them. What stands behind it is in the tables of ranks and of verdicts.
    """
    return tuple(filter(None, (_first_sentence(ranking), published_sentence(all_scores))))


def _first_sentence(ranking: Ranking | None) -> str:
    """Who has the best mean rank, and who cannot be told apart from them."""
    if ranking is None:
        return "No two methods were measured on the same clients yet, so that nobody has a rank."
    table = ranking.ranks
    best, test_count = table.iloc[0], table["group"].notna().sum()
    scope = f"{len(table)} methods over {ranking.task_count} federations"
    if 0 < test_count < len(table):
        scope = f"the {test_count} methods (of {len(table)}) measured in all {ranking.task_count} federations"
    number, interval = f"the best mean rank of {scope}, {best['rank']:.1f}", ""
    if pd.notna(best["low"]):
        interval = f" (95\N{NO-BREAK SPACE}% interval {best['low']:.1f} to {best['high']:.1f})"
    if ranking.task_count == 1:
        mean = ranking.scores[best["method"]].iloc[0]
        number = f"the highest mean of {len(table)} methods on one federation, {mean:.1f}\N{NO-BREAK SPACE}%"
        interval = ""
    leaders = table[table["group"] == 1]
    return f"{best['title']} has {number}{interval}{_rivals(ranking, leaders, test_count)}."


def _rivals(ranking: Ranking, leaders: pd.DataFrame, test_count: int) -> str:
    """How the first sentence ends: who else may be first, of those that the tests put into group 1."""
    others = leaders.iloc[1:]
    if leaders.empty:
        return "; there are too few results to test differences"
    if others.empty and test_count > 1:
        tests = best_over_datasets(ranking)
        text = ", and is significantly ahead of every other"
        if (tests["verdict"] != "better").any():
            return f"{text} over these, though not over the {tests['units'].iloc[0]} data sets"
        return text
    if others.empty:
        return ""
    if len(leaders) == test_count:
        return ", but none of the others can be told apart from it"
    if len(leaders) <= MOST_NAMED_LEADERS:
        return f", but cannot be told apart from {' and '.join(others['title'])}"
    text = f", but {len(others)} others cannot be told apart from it"
    has_baseline = ranking.study.baseline in set(others["method"])
    return f"{text}, {ranking.baseline_title} among them" if has_baseline else text


def best_over_datasets(ranking: Ranking) -> pd.DataFrame:
    """The best method against each other one, with data sets as units; none without such tests."""
    return of_one(ranking.ranks["method"].iloc[0], ranking.over_datasets)


def by_dataset(ranking: Ranking | None) -> str:
    """Who is worse than the best where federations of one data set count once; empty without such tests."""
    tests = pd.DataFrame() if ranking is None else best_over_datasets(ranking)
    if ranking is None or tests.empty:
        return ""
    titles = tests.loc[tests["verdict"] == "better", "second"].map(ranking.titles).tolist()
    who = "no method is" if not titles else f"{enumeration(titles)} {'is' if len(titles) == 1 else 'are'}"
    if len(titles) == len(tests) > 1:
        who = "every other method is"
    return (
        f"Federations of one data set share its items. With the {tests['units'].iloc[0]} data sets as units "
        f"(means over their federations), {who} significantly worse than {ranking.ranks['title'].iloc[0]}."
    )


def leaders(ranking: Ranking | None) -> str:
    """Who has the best mean rank on each data set, where that is not the same method on all."""
    if ranking is None:
        return ""
    datasets: dict[str, list[str]] = {}
    for dataset, part in ranking.cells.groupby("dataset", sort=False):
        means = part.pivot(index="task", columns="method", values="mean").dropna(axis=1)
        means = means[[method for method in ranking.titles if method in means]]
        if not means.empty:
            best = str(means.rank(axis=1, ascending=False).mean().idxmin())
            datasets.setdefault(best, []).append(ranking.study.title_of(str(dataset)))
    if len(datasets) < 2:
        return ""
    parts = [f"{ranking.titles[method]} on {enumeration(names)}" for method, names in datasets.items()]
    return f"Best mean rank by data set: {'; '.join(parts)}."


def published_sentence(all_scores: Iterable[Score]) -> str:
    """How many published values were measured, and how many of these agree."""
    known_scores = list(all_scores)
    if not known_scores:
        return ""
    counts: Counter[str] = sum((Counter(dict(score.counts)) for score in known_scores), Counter())
    published_count, measured_count = sum(score.published for score in known_scores), counts.total()
    if not counts:
        return f"Of {published_count:,} published values none is measured under its protocol yet."
    outcomes = {
        "agree with the published one": sum(score.agreeing for score in known_scores),
        "lie above it": counts["above"],
        "lie below it": counts["below"],
        "cannot be judged": counts["uninformative"] + counts["not comparable"],
    }
    parts = [f"{count:,} {words}" for words, count in outcomes.items() if count]
    subject = f"Of {published_count:,} published values {measured_count:,} are"
    if measured_count == published_count:
        subject = f"All {published_count:,} published values are"
    return f"{subject} measured, of which {enumeration(parts)}."


def agreement_by_paper(all_scores: Iterable[Score]) -> str:
    """Whose values those are that agree, for a reader without the papers' scores; nothing of one paper."""
    agreeing = Counter({score.title: score.agreeing for score in all_scores})
    if len(agreeing) < 2 or not agreeing.total():
        return ""
    parts = [f"{count:,} of {title}" for title, count in agreeing.most_common()]
    return f"The values that agree: {enumeration(parts)}."


def reproduction(study: Study, results: Results, cells: pd.DataFrame, is_whole: bool) -> Document | None:
    """The score of a study's papers; None for fewer than two published cells."""
    judged = judged_once(study, cells)
    if len(judged) < 2:
        return None
    counts = verdict_counts(study, judged, is_whole)
    counts = counts[[name for name in ORDER if name in ALWAYS or counts[name].any()]]
    grades, taus = placebos(study, judged), agreements(study, results, cells)
    signs = sign_tests(judged)
    rounded_signs = signs.rename(study.title_of, level="dataset").assign(
        mean=[f"{value:+.2f}" for value in signs["mean"]], p=[f"{value:.2g}" for value in signs["p"]]
    )
    views: tuple[Table, ...] = (
        _table(study, "score", "Reproduction score", "Verdict", _score(study, counts, grades, taus)),
        _table(study, "tables", "Verdicts by table", "Table", _by_table(study, judged, counts)),
        _table(
            study,
            "placebos",
            "Grades with other methods' runs in place of the method's own",
            "Runs",
            counted(grades, ["paper", "runs"], "grade", GRADES),
        ),
        _table(
            study,
            "clients",
            "Values measured on drawn clients and on the paper's own, of which the latter count",
            "Clients",
            counted(on_both(study, cells), ["paper", "clients"], "grade", [*GRADES, NOT_COMPARABLE]),
        ),
        _table(study, "signs", "Which side of the published value cells lie on", "Data set", rounded_signs),
        _table(study, "tau", "Order of methods", "Column", _tau_table(study, taus)),
    )
    views = tuple(view for view in views if view.rows)
    filter_note = "" if is_whole else " Only the cells that the report's filters leave."
    fine_print = (
        "Experiments are read as their own tables say.",
        LEGEND,
        f"Placebos: what {study.title_of(study.baseline)} and {study.title_of(study.control)} would score "
        "beside the published values of the other methods that have a grade. Sign tests are two-sided, over "
        "cells with a grade, which share clients and are not independent.",
        "Kendall's tau-b of measured and published order of the methods whose cells have a grade (of a "
        f"reduced protocol: that were measured), in every column with at least {LEAST_METHODS} of them, in "
        "tables that rank methods: 1 the same order, -1 the opposite. Its mean counts every column alike.",
        *filter(None, [spread_note(study, judged)]),
    )
    return statistic(
        study,
        "reproduction",
        "Reproduction score",
        "How many published values come out, on which side the others lie, and what placebos would score.",
        judged,
        results,
        (
            "Every published value once, beside the runs in the usual setting; shares of all of a paper's "
            f"published cells.{filter_note}",
        ),
        fine_print,
        views=views,
        printed=tuple(view for view in views if view.name in PRINTED),
        records={
            "score": counts.rename_axis(columns="verdict").reset_index().melt("paper", value_name="cells"),
            "placebos": grades.value_counts(sort=False).rename("cells").reset_index(),
            "signs": signs.reset_index(),
            "tau": taus.drop(columns="beside"),
        },
    )


def _table(study: Study, name: str, title: str, stub: str, data: pd.DataFrame) -> Table:
    """A frame of numbers or texts as a table; its index names the rows, a paper first where it has levels."""
    if data.index.nlevels > 1:
        data = data.rename(study.paper_title, level=0)
    labels = [", ".join(map(str, row)) if isinstance(row, tuple) else str(row) for row in data.index]
    rows = data.rename(columns=str).astype(str).to_dict("records")
    return listing(name, title, stub, zip(labels, rows, strict=True))


def _score(study: Study, counts: pd.DataFrame, grades: pd.DataFrame, taus: pd.DataFrame) -> pd.DataFrame:
    """A column a paper: its published cells by verdict, what placebos reproduce, and Kendall's tau."""
    score = {}
    for paper, verdicts in counts.iterrows():
        total = int(verdicts.sum())
        rows: dict[str, Any] = {"published cells": str(total)}
        rows |= {str(name): f"{n} ({100 * n / total:.1f} %)" for name, n in verdicts.items()}
        of_paper = grades[(grades["paper"] == paper) & (grades["runs"] != OWN_RUNS)]
        for runs, part in of_paper.groupby("runs", sort=False)["grade"]:
            rows[f"placebo: reproduced by {runs} runs"] = f"{(part == 'reproduced').sum()} of {len(part)}"
        known_taus = taus.loc[taus["paper"] == paper, "tau"].dropna()
        rows["Kendall's tau, mean"] = f"{known_taus.mean():+.2f}" if len(known_taus) else "-"
        rows["columns with tau"] = str(len(known_taus))
        score[study.paper_title(str(paper))] = rows
    return pd.DataFrame(score).fillna("-")


def _by_table(study: Study, judged: pd.DataFrame, counts: pd.DataFrame) -> pd.DataFrame:
    """Verdicts of each printed table."""
    verdicts = counts.columns.drop(NO_TABLE, errors="ignore")
    by_table = counted(judged, ["paper", "printed_table"], "verdict", verdicts)
    by_table.insert(0, "cells", by_table.sum(axis=1))
    return by_table


def _tau_table(study: Study, taus: pd.DataFrame) -> pd.DataFrame:
    """Tau of every column with an order to compare."""
    shown = taus[taus["methods"] >= LEAST_METHODS]
    names = shown[["beside", "dataset", "scenario", "clients", "point"]].itertuples(index=False, name=None)
    index = [
        ", ".join(filter(None, (comparison, study.column_title(Column(*column)), point)))
        for comparison, *column, point in names
    ]
    tau = ["-" if pd.isna(value) else f"{value:+.2f}" for value in shown["tau"]]
    return pd.DataFrame({"Methods": shown["methods"].tolist(), "Kendall's tau": tau}, index)
