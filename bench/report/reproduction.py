"""The document of a study's score: how much of each paper comes out."""

from __future__ import annotations

from typing import Any

import pandas as pd

from bench.frames.graded_cells import Results
from bench.frames.verdicts import GRADES, NOT_COMPARABLE
from bench.report.captions import LEGEND, statistic
from bench.report.document import Document
from bench.report.score import (
    ALWAYS,
    NO_TABLE,
    ORDER,
    OWN_RUNS,
    agreements,
    counted,
    judged_once,
    on_both,
    placebos,
    sign_tests,
    spread_note,
    verdict_counts,
)
from bench.report.table import Table, listing
from bench.statistics.summary import LEAST_METHODS
from bench.studies.settings import Column
from bench.studies.study import Study

PRINTED = ("score", "placebos", "clients", "signs")
"""Tables of the score that a terminal shows."""


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
        *filter(None, [spread_note(study, cells, judged)]),
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
