"""How much of each paper comes out, and whether its order of methods does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean

from bench.report.captions import LEGEND, circumstances
from bench.report.cells import Cell, Cells, Selection
from bench.report.experiment import Comparison
from bench.report.published import Published, published
from bench.report.results import Results
from bench.report.settings import Column
from bench.report.statistic import Records, Statistic, number, place, read_as
from bench.report.study import Study
from bench.report.table import Document, Entry, Summary, Table
from bench.report.verdicts import STATES
from bench.statistics.agreement import LEAST, kendall

COMPARED = ("reproduced", "above", "below")
"""Verdicts of cells that have a target."""

NO_TABLE = "no table here"
"""Stands for a published accuracy that no table of the study has."""

ORDER = (*COMPARED, "not comparable", *STATES.values(), NO_TABLE)
ALWAYS = (*COMPARED, "not comparable", STATES["not_run"])
"""Verdicts that a score names even where no cell has them."""

Judged = dict[Published, Cell]
"""Published value -> the cell set beside it."""


@dataclass(frozen=True)
class Agreement:
    """Kendall's tau of measured and published order of the methods of one column."""

    comparison: Comparison
    column: Column
    point: str
    methods: int
    tau: float | None


def judged(experiments: Iterable[Cells]) -> Judged:
    """Every published value beside its cell, once, under the primary reading and the usual setting.

    A value that several tables show is judged in the first of those that measured it: main tables come before
    experiments. A reduced experiment measures something else, and never stands in for a whole one.
    """
    found: Judged = {}
    for experiment in experiments:
        for cell in experiment.primary:
            if cell.target and not cell.line.setting:
                first = found.setdefault(cell.target, cell)
                if first.measured is None and cell.measured and not experiment.experiment.reduced:
                    found[cell.target] = cell
    return found


def agreements(tables: Iterable[Cells]) -> list[Agreement]:
    """Tau of every published column of the tables, over its comparable methods.

    Comparable is a cell whose verdict is reproduced, above or below; of a reduced experiment every measured
    one.
    """
    made = []
    for table in tables:
        cells = [
            cell for cell in table.primary if cell.measure is table.measures[0] and not cell.line.setting
        ]
        beside = [comparison for comparison in table.experiment.comparisons if comparison.targets]
        for comparison, column, point in product(beside, table.columns, table.experiment.points):
            pairs = [
                (cell.measured.mean, cell.target.mean)
                for cell in cells
                if (cell.comparison, cell.column, cell.point) == (comparison, column, point)
                and (cell.verdict in COMPARED or table.experiment.reduced)
                and cell.measured
                and cell.target
                and cell.target.mean is not None
            ]
            tau = kendall([pair[0] for pair in pairs], [pair[1] for pair in pairs])
            made.append(Agreement(comparison, column, point.label, len(pairs), tau))
    return made


def _counts(values: Judged, unshown: dict[str, int], paper: str, table: str = "") -> Counter[str]:
    """Verdicts of a paper's values, or of one of its tables."""
    counts = Counter(
        cell.verdict
        for value, cell in values.items()
        if value.paper == paper and (not table or value.table == table)
    )
    if not table and unshown[paper]:
        counts[NO_TABLE] = unshown[paper]
    return counts


def _unshown(paper: str, folder: Path, values: Judged, selection: Selection) -> int:
    """Published accuracies without a cell; a filtered report leaves cells out on purpose."""
    if selection != Selection():
        return 0
    return sum(value.metric == "accuracy" and value not in values for value in published(paper, folder))


def _score_table(papers: Sequence[str], counts: dict[str, Counter[str]], every: list[Agreement]) -> Table:
    """Verdicts by papers, as numbers and shares; below them Kendall's tau."""

    def entry(paper: str, verdict: str) -> Entry:
        total = counts[paper].total()
        return Entry(f"{counts[paper][verdict]} ({100 * counts[paper][verdict] / total:.1f} %)")

    verdicts = [name for name in ORDER if name in ALWAYS or any(counts[paper][name] for paper in papers)]
    taus = {
        paper: [
            each.tau for each in every if each.comparison.targets[0].paper == paper and each.tau is not None
        ]
        for paper in papers
    }
    rows = [
        ("published cells", tuple(Entry(str(counts[paper].total())) for paper in papers)),
        *((name, tuple(entry(paper, name) for paper in papers)) for name in verdicts),
        (
            "Kendall's tau, mean",
            tuple(Entry(f"{fmean(taus[paper]):+.2f}" if taus[paper] else "-") for paper in papers),
        ),
        ("columns with tau", tuple(Entry(str(len(taus[paper]))) for paper in papers)),
    ]
    return Table(
        "score", "Reproduction score", "Verdict", tuple(("", 1) for _ in papers), tuple(papers), tuple(rows)
    )


def _headline(paper: str, counts: Counter[str]) -> str:
    """A paper's score in a line."""
    verdicts = (*COMPARED, "not comparable")
    measured = sum(counts[verdict] for verdict in verdicts)
    parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in verdicts)
    return f"{paper}: {measured} of {counts.total()} published cells measured: {parts}"


def _by_table(papers: Sequence[str], values: Judged, unshown: dict[str, int]) -> Table:
    """Numbers of verdicts by the papers' tables."""
    tables = list(dict.fromkeys((value.paper, value.table) for value in values))
    tables.sort(key=lambda each: papers.index(each[0]))
    counts = {each: _counts(values, unshown, *each) for each in tables}
    verdicts = [name for name in ORDER if name in ALWAYS or any(found[name] for found in counts.values())]
    columns = ("cells", *verdicts)
    rows = tuple(
        (
            f"{paper}, {table}",
            (
                Entry(str(counts[paper, table].total())),
                *(Entry(str(counts[paper, table][name])) for name in verdicts),
            ),
        )
        for paper, table in tables
    )
    return Table("tables", "Verdicts by table", "Table", (("", len(columns)),), columns, rows)


def _tau_table(study: Study, every: Sequence[Agreement]) -> Table:
    """Tau of every column with an order to compare."""
    rows = tuple(
        (
            ", ".join(
                part
                for part in (
                    each.comparison.label,
                    each.column.described(study.title_of(each.column.dataset)),
                    each.point,
                )
                if part
            ),
            (Entry(str(each.methods)), Entry("-" if each.tau is None else f"{each.tau:+.2f}")),
        )
        for each in every
        if each.methods >= LEAST
    )
    return Table("tau", "Order of methods", "Column", (("", 2),), ("Methods", "Kendall's tau"), rows)


def reproduction(
    study: Study, experiments: Sequence[Cells], results: Results, selection: Selection
) -> Statistic | None:
    """The score of a study's papers; None for fewer than two published cells."""
    values = judged(experiments)
    if len(values) < 2:
        return None
    papers = list(dict.fromkeys(value.paper for value in values))
    unshown = {paper: _unshown(paper, study.published, values, selection) for paper in papers}
    counts = {paper: _counts(values, unshown, paper) for paper in papers}
    every = agreements([each for each in experiments if each.experiment.competes or each.experiment.reduced])
    score = _score_table(papers, counts, every)
    views = (score, _by_table(papers, values, unshown), _tau_table(study, every))
    filtered = "" if selection == Selection() else " Only the cells that the report's filters leave."
    caption = (
        read_as(study, study.primary) + " Experiments are read as their own tables say.",
        "Every published value once, beside the runs in the usual setting; shares of all of a paper's "
        f"published cells.{filtered}",
        LEGEND,
        "Kendall's tau-b of measured and published order of the methods whose cells are reproduced, above or "
        f"below, in every column of the main tables with at least {LEAST} of them: 1 the same order, -1 the "
        "opposite. Its mean counts every column alike.",
        *circumstances(study, [cell.group for cell in values.values() if cell.group], results),
    )
    name = f"{study.name}_reproduction"
    document = Document(
        name=name,
        title=f"{study.title}: reproduction score",
        caption=caption,
        notes=(),
        views=tuple(view for view in views if view.rows),
        details=(),
        summary=Summary((score,), None, (), tuple(_headline(paper, counts[paper]) for paper in papers)),
        primary=(),
        cells=tuple(values.values()),
    )
    counted = tuple(
        {"paper": paper, "verdict": verdict, "cells": str(counts[paper][verdict])}
        for paper in papers
        for verdict in ORDER
        if verdict in ALWAYS or counts[paper][verdict]
    )
    ordered = tuple(
        {
            "paper": each.comparison.targets[0].paper,
            "table": each.comparison.targets[0].table,
            **place(each.column),
            "point": each.point,
            "methods": str(each.methods),
            "tau": number(each.tau),
        }
        for each in every
    )
    records = (Records(f"{name}_score", counted), Records(f"{name}_tau", ordered))
    return Statistic(document, records)
