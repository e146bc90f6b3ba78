"""From an experiment's cells to tables: lines by columns, points and measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bench.figures.panels import Figure
from bench.frames.stored_runs import rows_of
from bench.frames.verdicts import AGREEING, NOT_COMPARABLE
from bench.report.captions import caption_of, fine_print_of, notes, with_runs
from bench.report.document import Document, DocumentCells
from bench.report.grades import GRADES
from bench.report.table import Table, Value, listing, measured, pivot
from bench.studies.wording import signed, with_std

NUMBERS = ["line", "dataset", "scenario", "clients", "point", "measure", "stage", "rule", "n", "planned"]
NUMBERS += ["mean", "std", "low", "high", "s_d", "partitions", "difference", "low_difference"]
NUMBERS += ["high_difference", "margin", "tolerance", "verdict"]
"""Columns of the cells frame that a page shows of every measured cell under every reading."""

HEAD = ["column_number", "point_number", "position"]
"""What a number stands under: a federation, a point of the experiment's axis, and what is measured there."""


def places(means: pd.Series[float]) -> pd.Series[int]:
    """1 for the best, 2 for the second best, 0 for others; ties in two decimals share a place."""
    ranks = means.round(2).rank(ascending=False, method="dense")
    return ranks.where(ranks <= 2, 0).astype(int)


def _compared_seeds(cells: pd.DataFrame) -> tuple[int, ...]:
    """The seeds on which the cells of a column are compared; a cell with others has no place.

    They are those that most cells hold, and of equally frequent ones the more. Cells of one seed and
    cells that lost runs have no say beside others.
    """
    complete = cells[(cells["done_seeds"].map(len) > 1) & (cells["lost"] == 0)]
    counts = Counter((cells if complete.empty else complete)["done_seeds"])
    return min(counts, key=lambda seeds: (-counts[seeds], -len(seeds), seeds), default=())


def _values(shown: DocumentCells, cells: pd.DataFrame) -> list[Value]:
    """The values of cells, with the places of those that compete under one head."""
    measures = shown.results.measures
    lines_and_measures = zip(cells["line_object"], cells["measure_number"], strict=True)
    is_rival = [line.competes and measures[number].ranked for line, number in lines_and_measures]
    rivals = cells[np.array(is_rival, bool) & (cells["n"] > 0)]
    ranks: dict[Any, int] = {}
    seeds_by_head = {}
    for head, part in rivals.groupby(HEAD):
        seeds = seeds_by_head[head] = _compared_seeds(part)
        has_seeds = np.array([each == seeds for each in part["done_seeds"]], bool)
        ranks |= places(part.loc[has_seeds, "mean"]).to_dict()
    values = []
    for row in rows_of(cells):
        digits = measures[row.measure_number].digits
        seeds = seeds_by_head.get((row.column_number, row.point_number, row.position), row.done_seeds)
        note = f"(n={len(row.done_seeds)})" if row.n > 0 and row.done_seeds != seeds else ""
        value = measured(row.mean, row.std, digits, note, ranks.get(row.Index, 0))
        is_alone = row.n > 0 and pd.isna(row.printed)
        values.append(value if is_alone else _beside_published(value, row, digits))
    return values


def _beside_published(value: Value, row: Any, digits: int) -> Value:
    """The value of a cell with what is published of it, or why there is no number."""
    published = "-" if pd.isna(row.status) else row.status or "-"
    if pd.notna(row.published_mean):
        published = with_std(row.published_mean, row.published_std, digits)
    ends = "" if pd.isna(row.low_difference) else f"[{row.low_difference:+.2f}, {row.high_difference:+.2f}]"
    hints = [
        _count(len(row.done_seeds), "seed") if row.n > 0 else "",
        f"90 % interval {ends}" if ends else "",
        row.reason,
    ]
    return replace(
        value,
        published_text=published,
        difference_text="" if pd.isna(row.difference) else signed(row.difference, digits),
        interval_text=ends,
        verdict=row.verdict,
        hint="; ".join(filter(None, hints)),
    )


def _table(shown: DocumentCells, name: str, title: str, cells: pd.DataFrame) -> Table:
    """Lines by columns, points and measures; lines of which nothing was run or published are left out.

    ``cells`` are primary ones beside one comparison. Where points and measures are several, every point of a
    line has a row of its own; what the points are stands over them.
    """
    experiment, titles = shown.experiment, [measure.title for measure in shown.results.measures]
    by_point = len(experiment.points) > 1 and cells["position"].nunique() > 1
    has_content = (cells["runs"] > 0) | cells["printed"].notna()
    cells = cells[has_content.groupby([cells[key] for key in HEAD]).transform("any")]
    cells = cells.assign(cell=pd.Series(_values(shown, cells), cells.index, dtype=object))
    cells = cells[has_content.loc[cells.index].groupby(cells["line_number"]).transform("any")]

    has_points = len(experiment.points) > 1 and not by_point
    has_measures = cells["measure_number"].nunique() > 1
    federations = cells["federation"]
    if has_points or has_measures:
        points = cells["point"] if has_points else ""
        measures = cells["measure_number"].map(titles.__getitem__) if has_measures else ""
        cells = cells.assign(heading=cells["data_title"] + ", " + federations, name=points + " " + measures)
    else:
        cells = cells.assign(heading=cells["data_title"], name=federations)
    cells["name"] = cells["name"].str.strip()

    lines = cells.drop_duplicates("line_number")
    stub = "Method" if experiment.main or lines["method"].is_unique else "Variant"
    if by_point:
        stub = ", ".join(filter(None, (stub, experiment.axis)))
        cells = cells.assign(label=cells["line"] + ", " + cells["point"])
        body = pivot(cells, stub, ["line_number", "point_number", "label"], ["column_number", "position"])
    else:
        body = pivot(cells, stub, ["line_number", "line"], HEAD)
    fixed = (shown.study.baseline, *shown.study.references)
    is_reference = [not line.ranked or line.method in fixed for line in lines["line_object"]]
    references = frozenset(lines.loc[is_reference, "line"]) if experiment.competes else frozenset[str]()
    return Table(name, title, body, references)


def views(shown: DocumentCells, cells: pd.DataFrame) -> tuple[Table, ...]:
    """What was run beside the first published table, of these cells."""
    targets = shown.experiment.comparisons[0].targets
    target_names = ", ".join(target.label or target.table for target in targets)
    title = f"Measured beside {target_names}" if target_names else "Measured"
    cells = cells[cells["primary"] & cells["is_run_column"] & (cells["comparison_number"] == 0)]
    return (_table(shown, "measured", title, cells),) if len(cells) else ()


def _details(shown: DocumentCells) -> tuple[Table, ...]:
    """Further published tables beside the same runs, what is published and not run, and every number."""
    primary = shown.cells[shown.cells["primary"]]
    tables = []
    for number, comparison in enumerate(shown.experiment.comparisons):
        beside = primary[primary["is_run_column"] & (primary["comparison_number"] == number)]
        if number > 0 and len(beside):
            name, title = comparison.label.lower().replace(" ", "_"), f"Measured beside {comparison.label}"
            tables.append(_table(shown, name, title, beside))
    idle = primary[(primary["comparison_number"] == 0) & ~primary["is_run_column"]]
    idle = idle[idle["printed"].notna().groupby(idle["column_number"]).transform("any")]
    if len(idle):
        tables.append(_table(shown, "not_run", "Published, and not run yet", idle))
    numbers = shown.cells.loc[shown.cells["n"] > 0, NUMBERS].set_index("line")
    if len(numbers):
        title = "Every number: all readings, seeds, intervals and margins"
        tables.append(listing("every_number", title, numbers))
    return tuple(tables)


def verdict_map(shown: DocumentCells) -> Table | None:
    """The lines of the usual settings that have verdicts; None where nothing is comparable."""
    for table in views(shown, shown.cells[shown.cells["usual"]]):
        verdicts = table.body.map(lambda value: value.verdict, na_action="ignore")
        is_graded = verdicts.isin([*GRADES])
        if (is_graded & (verdicts != NOT_COMPARABLE)).any(axis=None):
            return replace(table, title=shown.experiment.title, body=table.body[is_graded.any(axis=1)])
    return None


def _summary(shown: DocumentCells) -> str:
    """What a table holds, in numbers."""
    known = shown.cells[shown.cells["primary"] & (shown.cells["n"] > 0)]
    lines, federations = known["line_number"].nunique(), known["column_number"].nunique()
    text = f"{len(known):,} numbers of {_count(lines, 'line')} on {_count(federations, 'federation')}"
    targets = known[known["printed"].notna() & known["usual"]]
    targets = targets.drop_duplicates(["paper", "printed"], keep="last")
    if len(targets):
        agree = targets["verdict"].isin(AGREEING).sum()
        text += f"; {agree} of {_count(len(targets), 'published value')} agree"
    return f"{text}."


def _count(number_of_things: int, noun: str) -> str:
    return f"{number_of_things} {noun}{'' if number_of_things == 1 else 's'}"


def document_of(shown: DocumentCells, figures: Iterable[Figure] = ()) -> Document:
    """Everything about one experiment, of which these are the figures."""
    document = Document(
        shown.study,
        shown.experiment.name,
        shown.experiment.title,
        _summary(shown),
        caption_of(shown),
        views(shown, shown.cells),
        shown.cells,
        is_statistic=False,
        details=_details(shown),
        notes=notes(shown),
        fine_print=fine_print_of(shown),
        figures=tuple(figures),
    )
    return with_runs(document, shown.results)
