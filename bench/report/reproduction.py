"""How much of each paper comes out, whether its order of methods does, and what placebos would score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from itertools import product

import pandas as pd
import scipy  # its stats, slow to import, are loaded with the first test

from bench.frames.graded_cells import Results
from bench.report.captions import LEGEND, rows_of_cells, statistic
from bench.report.document import Document
from bench.report.findings import Findings, JudgedCells, is_on_papers_clients, judged_cells
from bench.report.table import Table, listing
from bench.statistics.summary import LEAST_METHODS, kendall
from bench.studies.cells import Cell, Cells
from bench.studies.frame import frame
from bench.studies.settings import Column
from bench.studies.study import Study
from bench.studies.verdicts import (
    GRADES,
    NOT_COMPARABLE,
    POOLED,
    STATES,
    PartitionSpread,
    grade,
    weigh,
)
from bench.studies.wording import enumeration

NO_TABLE = "no table here"
"""Stands for a published accuracy that no table of the study has."""

ALWAYS = [*GRADES, NOT_COMPARABLE, STATES["not_run"]]
"""Verdicts that a score names even where no cell has them."""

ORDER = [*GRADES, NOT_COMPARABLE, *STATES.values(), NO_TABLE]

PRINTED = ("score", "placebos", "clients", "signs")
"""Tables of the score that a terminal shows."""


def _grades_on_both(values: JudgedCells, experiments: Sequence[Cells]) -> pd.DataFrame:
    """Grades of values that were measured on the paper's own clients and on drawn ones: columns paper,
    clients, grade; two rows a value.
    """
    drawn_cells = judged_cells(experiments, drawn_only=True)
    rows = [
        (value.paper, clients, judged_cell.verdict)
        for value, cell in values.items()
        if is_on_papers_clients(cell) and value in drawn_cells and drawn_cells[value].measured
        for clients, judged_cell in (("drawn", drawn_cells[value]), ("the paper's own", cell))
    ]
    return pd.DataFrame(rows, columns=["paper", "clients", "grade"])


def agreements(tables: Iterable[Cells]) -> pd.DataFrame:
    """Kendall's tau of measured and published order in every published column of the tables, over its
    comparable methods: columns paper, table, beside, dataset, scenario, clients, point, methods and tau.

    Comparable is a cell that has a grade; of a reduced experiment every measured one. A method has one line,
    that which is ranked. Tau is NaN for too few.
    """
    rows = []
    for table in tables:
        cells = [
            cell
            for cell in table.primary_cells
            if cell.measure is table.measures[0] and not cell.line.setting and cell.line.ranked
        ]
        comparisons = [comparison for comparison in table.experiment.comparisons if comparison.targets]
        for comparison, column, point in product(comparisons, table.columns, table.experiment.points):
            pairs = [
                (cell.measured.mean, cell.target.mean)
                for cell in cells
                if (cell.comparison, cell.column, cell.point) == (comparison, column, point)
                and (cell.verdict in GRADES or table.experiment.reduced)
                and cell.measured
                and cell.target
                and cell.target.mean is not None
            ]
            tau = kendall([pair[0] for pair in pairs], [pair[1] for pair in pairs])
            target = comparison.targets[0]
            names = {"paper": target.paper, "table": target.table, "beside": comparison.label}
            rows.append({**names, **asdict(column), "point": point.label, "methods": len(pairs), "tau": tau})
    return (
        pd.DataFrame(rows).astype({"tau": float})
        if rows
        else pd.DataFrame(columns=["paper", "tau", "methods"])
    )


def grade_in_place_of(cell: Cell, values: Sequence[float]) -> str:
    """The grade that these runs on a graded cell's clients would have in the place of its own."""
    target, evidence = cell.target, cell.evidence
    assert target is not None
    assert target.mean is not None
    assert evidence is not None
    other_evidence = weigh(
        target.mean, target.std, evidence.runs, values, cell.spread, evidence.margin, evidence.control
    )
    return grade(other_evidence, target.mean, len(values))


def rests_on_spread(cell: Cell) -> bool:
    """Whether a cell is compatible only because another draw of clients might explain the difference: without
    the spread between partitions it would be above or below.
    """
    if cell.verdict != "compatible" or cell.measured is None:
        return False
    alone = replace(cell, spread=PartitionSpread())
    return grade_in_place_of(alone, cell.measured.values) in ("above", "below")


def _spread_note(study: Study, values: JudgedCells) -> str:
    """How many compatible cells of each paper rest on the spread between partitions, and on how much of it
    that was measured elsewhere; empty without any.
    """
    notes = []
    for paper in dict.fromkeys(value.paper for value in values):
        compatible_cells = [
            cell for value, cell in values.items() if value.paper == paper and cell.verdict == "compatible"
        ]
        cells = [cell for cell in compatible_cells if rests_on_spread(cell)]
        foreign_cells = [
            cell
            for cell in cells
            if cell.spread.source == POOLED and cell.column.dataset not in cell.spread.pooled_over
        ]
        sources = sorted({study.title_of(name) for cell in foreign_cells for name in cell.spread.pooled_over})
        pooled_text = f", {len(foreign_cells)} of them by that of {enumeration(sources)}" if sources else ""
        if compatible_cells:
            title = study.paper_title(paper)
            notes.append(f"{title}: {len(cells)} of {len(compatible_cells)}{pooled_text}")
    if not notes:
        return ""
    return (
        "Compatible cells that would be above or below without the spread between partitions, and how many "
        f"of these have that of other data sets, pooled: {'; '.join(notes)}."
    )


def _placebos(study: Study, values: JudgedCells) -> pd.DataFrame:
    """Grades of all graded cells, and those of the baseline's and the control's runs in the place of others':
    columns paper, runs, grade; a row a cell.
    """
    rows = []
    for value, cell in values.items():
        if cell.verdict not in GRADES:
            continue
        rows.append((value.paper, "the method's own", cell.verdict))
        context = cell.stage, cell.rule, cell.average
        baseline = cell.baseline and cell.results.aggregate(cell.baseline, *context)
        for method, aggregate in ((study.baseline, baseline), (study.control, cell.control)):
            if aggregate and aggregate.n > 1 and method != cell.line.runs:
                rows.append(
                    (value.paper, f"{study.title_of(method)}'s", grade_in_place_of(cell, aggregate.values))
                )
    return pd.DataFrame(rows, columns=["paper", "runs", "grade"])


def _counts(data: pd.DataFrame, keys: list[str], verdict: str, order: Iterable[str]) -> pd.DataFrame:
    """Numbers of verdicts: a row a group in the order of the data, a column a verdict."""
    counts = data.groupby([*keys, verdict], sort=False).size().unstack(fill_value=0)
    return counts.reindex(columns=list(order), fill_value=0)


def sign_tests(data: pd.DataFrame) -> pd.DataFrame:
    """Whether graded cells of a data set lie to one side of the paper: by paper and data set the number of
    ``cells``, those ``below`` and ``above`` the published mean, the ``mean`` difference in points, and
    ``p`` of a two-sided binomial test, in which cells that differ by nothing do not count.
    """
    graded_rows = data[data["verdict"].isin(GRADES)]
    signs = graded_rows.groupby(["paper", "dataset"], sort=False).agg(
        cells=("difference", "size"),
        below=("difference", lambda values: int((values < 0).sum())),
        above=("difference", lambda values: int((values > 0).sum())),
        mean=("difference", "mean"),
    )
    sides = zip(signs["below"], signs["above"], strict=True)
    return signs.assign(
        p=[
            scipy.stats.binomtest(int(low), int(low + high)).pvalue if low + high else 1.0
            for low, high in sides
        ]
    )


def _table(study: Study, name: str, title: str, stub: str, data: pd.DataFrame) -> Table:
    """A frame of numbers or texts as a table; its index names the rows, a paper first where it has levels."""
    if data.index.nlevels > 1:
        data = data.rename(study.paper_title, level=0)
    labels = [", ".join(map(str, row)) if isinstance(row, tuple) else str(row) for row in data.index]
    rows = data.rename(columns=str).astype(str).to_dict("records")
    return listing(name, title, stub, zip(labels, rows, strict=True))


def _score(counts: pd.DataFrame, placebos: pd.DataFrame, taus: pd.DataFrame) -> pd.DataFrame:
    """A column a paper: its published cells by verdict, what placebos reproduce, and Kendall's tau."""
    score = {}
    for paper in counts.index:
        verdicts = counts.loc[paper]
        total = int(verdicts.sum())
        known_taus = taus.loc[taus["paper"] == paper, "tau"].dropna()
        paper_placebos = placebos[placebos["paper"] == paper]
        score[paper] = {
            "published cells": str(total),
            **{str(name): f"{n} ({100 * n / total:.1f} %)" for name, n in verdicts.items()},
            **{
                f"placebo: reproduced by {runs} runs": f"{(part == 'reproduced').sum()} of {len(part)}"
                for runs, part in paper_placebos.groupby("runs", sort=False)["grade"]
                if runs != "the method's own"
            },
            "Kendall's tau, mean": f"{known_taus.mean():+.2f}" if len(known_taus) else "-",
            "columns with tau": str(len(known_taus)),
        }
    return pd.DataFrame(score).fillna("-")


def _tau_table(study: Study, taus: pd.DataFrame) -> pd.DataFrame:
    """Tau of every column with an order to compare."""
    shown_taus = taus[taus["methods"] >= LEAST_METHODS]
    names = shown_taus[["beside", "dataset", "scenario", "clients", "point"]].itertuples(
        index=False, name=None
    )
    index = [
        ", ".join(filter(None, (comparison, study.column_title(Column(*column)), point)))
        for comparison, *column, point in names
    ]
    tau = ["-" if math.isnan(value) else f"{value:+.2f}" for value in shown_taus["tau"]]
    return pd.DataFrame({"Methods": shown_taus["methods"].tolist(), "Kendall's tau": tau}, index)


def reproduction(findings: Findings, results: Results) -> Document | None:
    """The score of a study's papers; None for fewer than two published cells."""
    study, experiments, values = findings.study, findings.experiments, findings.judged
    if len(values) < 2:
        return None
    data = frame(values.values()).assign(
        paper=[value.paper for value in values],
        printed=[value.table for value in values],
    )
    counts = _counts(data, ["paper"], "verdict", ORDER)
    counts[NO_TABLE] = pd.Series({paper: len(rest) for paper, rest in findings.without_table.items()})
    counts = counts[[name for name in ORDER if name in ALWAYS or counts[name].any()]]
    placebos = _placebos(study, values)
    taus = agreements(cells for cells in experiments if cells.experiment.competes)
    signs = sign_tests(data)
    score = _score(counts, placebos, taus).rename(columns=study.paper_title)
    by_table = _counts(data, ["paper", "printed"], "verdict", counts.columns.drop(NO_TABLE, errors="ignore"))
    by_table.insert(0, "cells", by_table.sum(axis=1))
    rounded_signs = signs.rename(study.title_of, level="dataset").assign(
        mean=[f"{value:+.2f}" for value in signs["mean"]], p=[f"{value:.2g}" for value in signs["p"]]
    )
    views: tuple[Table, ...] = (
        _table(study, "score", "Reproduction score", "Verdict", score),
        _table(study, "tables", "Verdicts by table", "Table", by_table),
        _table(
            study,
            "placebos",
            "Grades with other methods' runs in place of the method's own",
            "Runs",
            _counts(placebos, ["paper", "runs"], "grade", GRADES),
        ),
        _table(
            study,
            "clients",
            "Values measured on drawn clients and on the paper's own, of which the latter count",
            "Clients",
            _counts(
                _grades_on_both(values, experiments), ["paper", "clients"], "grade", [*GRADES, NOT_COMPARABLE]
            ),
        ),
        _table(study, "signs", "Which side of the published value cells lie on", "Data set", rounded_signs),
        _table(study, "tau", "Order of methods", "Column", _tau_table(study, taus)),
    )
    views = tuple(view for view in views if view.rows)
    filter_note = "" if findings.is_whole else " Only the cells that the report's filters leave."
    caption = (
        "Every published value once, beside the runs in the usual setting; shares of all of a paper's "
        f"published cells.{filter_note}",
    )
    fine_print = (
        "Experiments are read as their own tables say.",
        LEGEND,
        f"Placebos: what {study.title_of(study.baseline)} and {study.title_of(study.control)} would score "
        "beside the published values of the other methods that have a grade. Sign tests are two-sided, over "
        "cells with a grade, which share clients and are not independent.",
        "Kendall's tau-b of measured and published order of the methods whose cells have a grade (of a "
        f"reduced protocol: that were measured), in every column with at least {LEAST_METHODS} of them, in "
        "tables that rank methods: 1 the same order, -1 the opposite. Its mean counts every column alike.",
        *filter(None, [_spread_note(study, values)]),
    )
    long_counts = counts.rename_axis(columns="verdict").reset_index().melt("paper", value_name="cells")
    return statistic(
        study,
        "reproduction",
        "Reproduction score",
        "How many published values come out, on which side the others lie, and what placebos would score.",
        rows_of_cells(values.values(), results),
        results,
        caption,
        fine_print,
        views=views,
        printed=tuple(view for view in views if view.name in PRINTED),
        records={
            "score": long_counts,
            "placebos": placebos.value_counts(sort=False).rename("cells").reset_index(),
            "signs": signs.reset_index(),
            "tau": taus.drop(columns="beside", errors="ignore"),
        },
    )
