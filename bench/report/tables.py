"""From an experiment's cells to tables: lines by columns, points and measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bench.figures.panels import Figure
from bench.frames.graded_cells import Results, values_of
from bench.frames.stored_runs import WHERE, rows_of
from bench.frames.verdicts import AGREEING, NOT_COMPARABLE
from bench.report.captions import count, notes, with_runs, words_of
from bench.report.document import Document, DocumentCells
from bench.report.grades import GRADES
from bench.report.table import Table, Value, measured, pivot
from bench.statistics.summary import bottom_tenth
from bench.studies.measures import MEASURES, Measure
from bench.studies.wording import signed, with_std

HEAD = ["column_number", "point_number", "position"]
"""What a number stands under: a federation, a point of the experiment's axis, and what is measured there."""

WORST = Measure(
    "worst_client",
    "Worst client",
    "accuracy of the worst client",
    lambda members: 100.0 * members.clients.groupby("member")["value"].min(),
)
BOTTOM = Measure(
    "bottom_tenth",
    "Bottom 10 %",
    "mean over the worst tenth of the clients, one at least",
    lambda members: (
        100.0
        * members.clients.groupby("member")["value"].agg(lambda values: bottom_tenth(values.to_numpy(float)))
    ),
)
BELOW_BASELINE = MEASURES["below_local"]
SPREAD = (MEASURES["std_over_clients"], WORST, BOTTOM, BELOW_BASELINE)
"""One number a run, from its clients; tables show the mean over seeds."""


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
        count(len(row.done_seeds), "seed") if row.n > 0 else "",
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
    experiment = shown.experiment
    has_points = len(experiment.points) > 1
    by_point = has_points and cells["position"].nunique() > 1
    has_content = (cells["runs"] > 0) | cells["printed"].notna()
    cells = cells[has_content.groupby([cells[key] for key in HEAD]).transform("any")]
    cells = cells.assign(cell=pd.Series(_values(shown, cells), cells.index, dtype=object))
    cells = cells[has_content.loc[cells.index].groupby(cells["line_number"]).transform("any")]

    has_measures = cells["measure_number"].nunique() > 1
    cells = cells.assign(heading=cells["data_title"], name=cells["federation"])
    if has_measures or (has_points and not by_point):
        names = pd.Series("", cells.index) if by_point else cells["point"]
        if has_measures:
            titles = [shown.results.measures[number].title for number in cells["measure_number"]]
            names = names + " " + titles
        cells["heading"] += ", " + cells["federation"]
        cells["name"] = names.str.strip()

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
    """Further published tables beside the same runs, and what is published and not run."""
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
    return tuple(tables)


def verdict_map(shown: DocumentCells) -> Table | None:
    """The lines of the usual settings that have verdicts; None where nothing is comparable."""
    for table in views(shown, shown.cells[shown.cells["usual"]]):
        verdicts = table.body.map(lambda value: value.verdict, na_action="ignore")
        is_graded = verdicts.isin([*GRADES])
        if (is_graded & (verdicts != NOT_COMPARABLE)).any(axis=None):
            return replace(table, title=shown.experiment.title, body=table.body[is_graded.any(axis=1)])
    return None


def document_of(shown: DocumentCells, figures: Iterable[Figure] = ()) -> Document:
    """Everything about one experiment, of which these are the figures."""
    known = shown.cells[shown.cells["primary"] & (shown.cells["n"] > 0)]
    lines, federations = known["line_number"].nunique(), known["column_number"].nunique()
    summary = f"{len(known):,} numbers of {count(lines, 'line')} on {count(federations, 'federation')}"
    targets = known[known["printed"].notna() & known["usual"]]
    targets = targets.drop_duplicates(["paper", "printed"], keep="last")
    if len(targets):
        agree = targets["verdict"].isin(AGREEING).sum()
        summary += f"; {agree} of {count(len(targets), 'published value')} agree"
    caption, fine_print = words_of(shown)
    document = Document(
        shown.study,
        shown.experiment.name,
        shown.experiment.title,
        f"{summary}.",
        caption,
        views(shown, shown.cells),
        shown.cells,
        is_statistic=False,
        details=_details(shown),
        notes=notes(shown),
        fine_print=fine_print,
        figures=tuple(figures),
    )
    return with_runs(document, shown.results)


def with_spread(cells: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The cells with each measure of ``SPREAD``, a column by its name: the mean over seeds."""
    values = {measure.name: values_of(results, cells, measure) for measure in SPREAD}
    means = {name: rows.groupby("place")["value"].mean() for name, rows in values.items()}
    return cells.join(pd.DataFrame(means), on="place")


def spread_document(shown: DocumentCells) -> Document | None:
    """Who is hurt, and how sure the means of a main table are; None for fewer than two methods with
    numbers.
    """
    baseline = shown.study.title_of(shown.study.baseline)
    cells = shown.cells[(shown.cells["comparison_number"] == 0) & (shown.cells["position"] == 0)]
    cells = cells[(cells["n"] > 0) & cells["usual"]].sort_values("column_number", kind="stable")
    if cells["line_number"].nunique() < 2:
        return None
    cells = with_spread(cells, shown.results)
    below = cells.assign(
        heading=cells["data_title"],
        name="of " + cells["clients"].astype(str),
        cell=cells[BELOW_BASELINE.name].map(measured),
    )
    body = pivot(below, "Method", ["line_number", "line"], ["column_number"])
    numbers = ["n", "mean", "std", "low", "high", *(measure.name for measure in SPREAD)]
    document = Document(
        shown.study,
        f"{shown.experiment.name}_spread",
        f"{shown.experiment.title}, spread over clients and seeds",
        f"How many clients do worse than under {baseline}; numbers.csv has the worst clients and intervals.",
        caption=(),
        cells=cells,
        fine_print=(
            f"{BELOW_BASELINE.name}: {BELOW_BASELINE.meaning}; {WORST.name}: {WORST.meaning}; {BOTTOM.name}: "
            f"{BOTTOM.meaning}; low to high: Student's 95 % interval of the mean over seeds, which holds the "
            "spread of training alone where all seeds share one partition.",
        ),
        views=(Table("below", f"Clients below {baseline}, mean over seeds", body),),
        records={"numbers": cells[[*WHERE, "method", *numbers]]},
    )
    return with_runs(document, shown.results)
