"""From an experiment's cells to tables: lines by columns, points and measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bench.frames.stored_runs import rows_of
from bench.frames.verdicts import AGREEING, NOT_COMPARABLE
from bench.report.captions import caption_of, fine_print_of, notes
from bench.report.document import Document, DocumentCells
from bench.report.grades import GRADES
from bench.report.table import Table, Value, listing, measured
from bench.studies.measures import Measure
from bench.studies.settings import Column
from bench.studies.wording import signed, with_std

if TYPE_CHECKING:
    from bench.figures.panels import Figure

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


READ = ["measure_number", "n", "lost", "done_seeds", "mean", "std", "printed", "status", "published_mean"]
READ += ["published_std", "difference", "low_difference", "high_difference", "verdict", "reason"]
"""Columns of cells that become a value."""


def compared_seeds(cells: pd.DataFrame) -> tuple[int, ...]:
    """The seeds on which the cells of a column are compared; a cell with others has no place.

    They are those that most cells hold, and of equally frequent ones the more. Cells of one seed and
    cells that lost runs have no say beside others.
    """
    known = cells[cells["n"] > 0]
    complete = known[(known["done_seeds"].map(len) > 1) & (known["lost"] == 0)]
    counts = Counter((known if complete.empty else complete)["done_seeds"])
    return min(counts, key=lambda seeds: (-counts[seeds], -len(seeds), seeds), default=())


def _values(cells: pd.DataFrame, measures: Sequence[Measure]) -> pd.Series[Any]:
    """The values of cells, with the places of those that compete under one head."""
    cells = cells[[*HEAD, *READ]].assign(competes=[line.competes for line in cells["line_object"]])
    ranks: dict[Any, int] = {}
    seeds_of_heads: dict[Any, tuple[int, ...]] = {}
    for head, part in cells.groupby(HEAD):
        rivals = part[part["competes"] & measures[part["measure_number"].iloc[0]].ranked]
        seeds = seeds_of_heads[head] = compared_seeds(rivals)
        has_seeds = np.array([each == seeds for each in rivals["done_seeds"]], bool)
        ranks |= places(rivals.loc[has_seeds & (rivals["n"] > 0), "mean"]).to_dict()
    values = []
    for row in rows_of(cells):
        seeds = seeds_of_heads[row.column_number, row.point_number, row.position]
        digits = measures[row.measure_number].digits
        note = f"(n={len(row.done_seeds)})" if row.n > 0 and seeds and row.done_seeds != seeds else ""
        value = measured(row.mean, row.std, digits, note, ranks.get(row.Index, 0))
        is_alone = row.n > 0 and pd.isna(row.printed)
        values.append(value if is_alone else _beside_published(value, row, digits))
    return pd.Series(values, cells.index, dtype=object)


def _beside_published(value: Value, row: Any, digits: int) -> Value:
    """The value of a cell with what is published of it, or why there is no number."""
    status = "-" if pd.isna(row.status) else row.status or "-"
    published = (
        status if pd.isna(row.published_mean) else with_std(row.published_mean, row.published_std, digits)
    )
    ends = "" if pd.isna(row.low_difference) else f"[{row.low_difference:+.2f}, {row.high_difference:+.2f}]"
    seeds = _count(len(row.done_seeds), "seed") if row.n > 0 else ""
    hints = (seeds, f"90 % interval {ends}" if ends else "", row.reason)
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
    experiment = shown.experiment
    by_point = len(experiment.points) > 1 and cells["position"].nunique() > 1
    row_key = ["line_number", "point_number"] if by_point else ["line_number"]
    head_key = ["column_number", "position"] if by_point else HEAD

    has_content = (cells["runs"] > 0) | cells["printed"].notna()
    cells = cells[has_content.groupby([cells[key] for key in HEAD]).transform("any")]
    cells = cells.assign(value=_values(cells, shown.results.measures))
    cells = cells[has_content.loc[cells.index].groupby(cells["line_number"]).transform("any")]
    body = cells.pivot(index=row_key, columns=head_key, values="value").sort_index().sort_index(axis=1)
    heads = cells.sort_values(head_key).drop_duplicates(head_key)
    body.columns = pd.MultiIndex.from_tuples(_heads(shown, heads, by_point), names=["group", "column"])
    rows = cells.sort_values(row_key).drop_duplicates(row_key)
    labels = rows["line"] + ", " + rows["point"] if by_point else rows["line"]
    stub = "Method" if shown.by_method else "Variant"
    stub = f"{stub}, {experiment.axis}" if by_point and experiment.axis else stub
    body.index = pd.Index(labels, name=stub, dtype=object)
    fixed = (shown.study.baseline, *shown.study.references)
    is_reference = [not line.ranked or line.method in fixed for line in rows["line_object"]]
    references = frozenset(rows.loc[is_reference, "line"]) if experiment.competes else frozenset[str]()
    return Table(name, title, body, references, len(experiment.points) if by_point else 0)


def _heads(shown: DocumentCells, heads: pd.DataFrame, by_point: bool) -> list[tuple[str, str]]:
    """Groups of columns and the columns' names: federations under data sets, or points and measures under
    federations where those are several.
    """
    study = shown.study
    has_points = len(shown.experiment.points) > 1 and not by_point
    has_measures = heads["measure_number"].nunique() > 1
    pairs = []
    for head in rows_of(heads):
        column = Column(head.dataset, head.scenario, head.clients)
        if has_points or has_measures:
            measure = shown.results.measures[head.measure_number].title if has_measures else ""
            name = " ".join(filter(None, (head.point if has_points else "", measure)))
            pairs.append((study.column_title(column), name))
        else:
            pairs.append((study.title_of(column.dataset), shown.place_of(column)))
    return pairs


def views(shown: DocumentCells, cells: pd.DataFrame) -> tuple[Table, ...]:
    """What was run beside the first published table, of these cells."""
    targets = shown.experiment.comparisons[0].targets
    target_names = ", ".join(target.label or target.table for target in targets)
    title = f"Measured beside {target_names}" if target_names else "Measured"
    cells = cells[cells["primary"] & cells["is_run_column"] & (cells["comparison_number"] == 0)]
    return (_table(shown, "measured", title, cells),) if len(cells) else ()


def details(shown: DocumentCells) -> tuple[Table, ...]:
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
        verdicts = table.body.map(lambda value: value.verdict if isinstance(value, Value) else "")
        is_graded = verdicts.isin([*GRADES])
        if (is_graded & (verdicts != NOT_COMPARABLE)).any(axis=None):
            return replace(table, title=shown.experiment.title, body=table.body[is_graded.any(axis=1)])
    return None


def _summary(shown: DocumentCells) -> str:
    """What a table holds, in numbers."""
    known = shown.cells[shown.cells["primary"] & (shown.cells["n"] > 0)]
    if known.empty:
        return "Nothing run yet."
    lines, federations = known["line_number"].nunique(), known["column_number"].nunique()
    text = f"{len(known):,} numbers of {_count(lines, 'line')} on {_count(federations, 'federation')}"
    targets = known[known["printed"].notna() & known["usual"]]
    targets = targets.drop_duplicates(["paper", "printed"], keep="last")
    agree = targets["verdict"].isin(AGREEING).sum()
    return (
        f"{text}; {agree} of {_count(len(targets), 'published value')} agree." if len(targets) else f"{text}."
    )


def _count(number_of_things: int, noun: str) -> str:
    return f"{number_of_things} {noun}{'' if number_of_things == 1 else 's'}"


def document_of(shown: DocumentCells, figures: Iterable[Figure] = ()) -> Document:
    """Everything about one experiment, of which these are the figures."""
    return Document(
        shown.study,
        shown.experiment.name,
        shown.experiment.title,
        _summary(shown),
        caption_of(shown),
        views(shown, shown.cells),
        shown.cells,
        is_statistic=False,
        details=details(shown),
        notes=notes(shown),
        fine_print=fine_print_of(shown),
        figures=tuple(figures),
    )
