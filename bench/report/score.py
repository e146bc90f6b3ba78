"""The reproduction score of each paper, with every published value once, and the score of placebos."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from bench.frames.graded_cells import Results
from bench.frames.ranking import TASK, Ranking
from bench.frames.spread import SAME_CLIENTS, SPLIT
from bench.frames.verdicts import AGREEING, GRADES, NOT_COMPARABLE, STATES, graded
from bench.report.captions import LEGEND
from bench.report.document import Document, listing
from bench.report.ranking import first_sentence
from bench.statistics.summary import LEAST_METHODS, kendall
from bench.studies.published import published
from bench.studies.study import Study
from bench.studies.wording import enumeration, reading_text, signed

VALUE = ["paper", "printed"]
"""The columns that identify a published value."""

NO_TABLE = "no table here"
"""The state of a published accuracy that no table of the study has."""

MEASURED = [*GRADES, NOT_COMPARABLE]
"""Verdicts on measured cells, best first."""

ORDER = [*MEASURED, *STATES.values(), NO_TABLE]


def judged_once(study: Study, cells: pd.DataFrame) -> pd.DataFrame:
    """Select one cell for each published value, in the order of the tables.

    If several tables show a value, the order of preference is: a comparable cell on the paper's own clients
    (another draw of clients explains no difference), another comparable cell, a measured cell, a cell without
    runs, a cell of a reduced experiment (it measures something else). The first table wins a tie. Experiments
    with ``apart`` are left out: their cells judge in their own table only.
    """
    apart = [experiment.name for experiment in study.experiments if experiment.apart]
    reduced = [experiment.name for experiment in study.experiments if experiment.reduced]
    is_value = cells["primary"] & cells["usual"] & cells["printed"].notna() & (cells["study"] == study.name)
    values = cells[is_value & ~cells["document"].isin(apart)]
    weight = np.select(
        [values["document"].isin(reduced), values["n"] == 0, ~values["verdict"].isin(GRADES)],
        [-1, 0, 1],
        2 + values["s_d_source"].isin([SAME_CLIENTS, SPLIT]),
    )
    values = values.assign(weight=weight, first=values.groupby(VALUE)["order"].transform("min"))
    best = values.sort_values("weight", ascending=False, kind="stable").drop_duplicates(VALUE)
    return best.sort_values("first").drop(columns=["weight", "first"])


def counted(data: pd.DataFrame, keys: list[str], verdict: str, order: Iterable[str]) -> pd.DataFrame:
    """Count verdicts: a row for each group in the order of the data, a column for each verdict."""
    counts = data.groupby([*keys, verdict], sort=False).size().unstack(fill_value=0)
    return counts.reindex(columns=list(order), fill_value=0)


def verdict_counts(study: Study, judged: pd.DataFrame, is_whole: bool = True) -> pd.DataFrame:
    """Count the published values by paper and verdict: a row for each paper, the columns ``ORDER``.

    ``is_whole`` False means that filters leave cells out. Then values without a table are not counted.
    """
    counts = counted(judged, ["paper"], "verdict", ORDER)
    for paper in counts.index if is_whole else ():
        values = enumerate(published(paper, study.published))
        accuracies = {number for number, value in values if value.metric == "accuracy"}
        counts.loc[paper, NO_TABLE] = len(
            accuracies.difference(judged.loc[judged["paper"] == paper, "printed"])
        )
    return counts


def headline(ranking: Ranking | None, counts: pd.DataFrame) -> list[str]:
    """Sentences on the best method and, from ``verdict_counts``, on the number of published values that were
    measured and their verdicts.
    """
    total, verdicts = int(counts.to_numpy().sum()), counts.sum()
    measured = int(verdicts[MEASURED].sum())
    if not total:
        return [first_sentence(ranking)]
    start = f"All {total:,}" if measured == total else f"Of {total:,}"
    number = "" if measured == total else f" {measured:,}" if measured else " none"
    outcomes = {
        "agree with the published one": verdicts[[*AGREEING]].sum(),
        "lie above it": verdicts["above"],
        "lie below it": verdicts["below"],
        "cannot be judged": verdicts["uninformative"] + verdicts[NOT_COMPARABLE],
    }
    parts = [f"{count:,} {words}" for words, count in outcomes.items() if count]
    end = f", of which {enumeration(parts)}" if parts else " yet"
    text = f"{start} published values{number} are measured under their protocol{end}."
    return [first_sentence(ranking), text]


def placebos(study: Study, judged: pd.DataFrame) -> pd.DataFrame:
    """Grade every graded cell by its own runs, and again with the baseline's and the control's runs in place
    of its own: columns paper, runs and grade, a row for each cell and source of runs.
    """
    own = judged[judged["verdict"].isin(GRADES)].reset_index(drop=True)
    parts = [own.assign(runs="the method's own", grade=own["verdict"])]
    for method, mean, name in (
        (study.baseline, "baseline_mean", "baseline"),
        (study.control, "control", "control"),
    ):
        others = own[(own[f"{name}_n"].fillna(0) > 1) & (own["method"] != method)]
        others = others.assign(n=others[f"{name}_n"], mean=others[mean], std=others[f"{name}_std"])
        parts.append(others.assign(runs=f"{study.title_of(method)}'s", grade=graded(others)["verdict"]))
    return pd.concat(parts).sort_index(kind="stable")[["paper", "runs", "grade"]].reset_index(drop=True)


def agreements(study: Study, results: Results, cells: pd.DataFrame) -> pd.DataFrame:
    """Kendall's tau of measured and published order, in every column of the tables that compare methods.
    Columns: paper, table, dataset, scenario, clients, point, methods (their number) and tau.

    Tau uses cells with a grade, and every measured cell in reduced experiments. Only the ranked line of a
    method counts. Tau is NaN for too few methods.
    """
    is_shown = cells["primary"] & (cells["position"] == 0) & cells["usual"] & (cells["n"] > 0)
    shown = cells[is_shown & cells["published_mean"].notna()]
    shown = shown.merge(results.places[["place", "line_object", "column_number", "inner"]], on="place")
    shown = shown[shown["line_object"].map(lambda line: line.ranked).astype(bool)]
    shown = shown.sort_values(["comparison_number", "column_number", "inner"])
    rows = []
    for experiment in study.experiments:
        is_comparable = experiment.competes & (shown["verdict"].isin(GRADES) | bool(experiment.reduced))
        compared = shown[is_comparable & (shown["document"] == experiment.name)]
        targets = list(experiment.comparisons.values())
        for (number, *task), pairs in compared.groupby(["comparison_number", *TASK], sort=False):
            tau = kendall(pairs["mean"].tolist(), pairs["published_mean"].tolist())
            rows.append((*targets[int(str(number))][0], *task, len(pairs), tau))
    return pd.DataFrame(rows, columns=["paper", "table", *TASK, "methods", "tau"]).astype({"tau": float})


def reproduction(
    study: Study, results: Results, cells: pd.DataFrame, judged: pd.DataFrame, counts: pd.DataFrame
) -> Document | None:
    """The document of the reproduction score, from ``judged_once`` and ``verdict_counts``; None for fewer
    than two published cells.
    """
    if len(judged) < 2:
        return None
    counts = counts[[name for name in ORDER if name in (*MEASURED, STATES["not_run"]) or counts[name].any()]]
    grades, taus = placebos(study, judged), agreements(study, results, cells)
    by_paper = counts.assign(
        **{
            "published cells": counts.sum(axis=1),
            "compatible by the spread between partitions": judged.groupby("paper")["rests_on_spread"].sum(),
            "Kendall's tau, mean": taus.groupby("paper")["tau"].mean().map(signed),
        }
    )
    score = by_paper.rename(study.paper_title).T.rename_axis("Verdict")
    views = [listing("score", "Reproduction score", score)]
    if len(grades):
        by_runs = counted(grades, ["paper", "runs"], "grade", GRADES)
        labels = [f"{study.paper_title(paper)}, {runs}" for paper, runs in by_runs.index]
        title = "Grades with other methods' runs in place of the method's own"
        views.append(listing("placebos", title, by_runs.set_axis(pd.Index(labels, name="Values"))))
    return Document(
        study,
        "reproduction",
        "Reproduction score",
        "How many published values come out, and what placebos would score.",
        caption=(f"Every published value once, beside the usual runs; {reading_text(study.primary)}.",),
        views=tuple(views),
        cells=judged,
        fine_print=(
            LEGEND,
            f"Placebos: what {study.title_of(study.baseline)} and {study.title_of(study.control)} would "
            "score beside the published values of the other methods that have a grade. Kendall's tau-b of "
            "measured and published order of the methods with a grade, in columns with at least "
            f"{LEAST_METHODS} of them; tau.csv has every column.",
        ),
        records={
            "score": counts.rename_axis(columns="verdict").reset_index().melt("paper", value_name="cells"),
            "placebos": grades.value_counts(sort=False).rename("cells").reset_index(),
            "tau": taus,
        },
    )
