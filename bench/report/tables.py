"""Make tables from an experiment's cells: rows are lines; columns are federations, points and measures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from bench.figures.panels import Figure
from bench.frames.graded_cells import DocumentCells, values_of
from bench.frames.stored_runs import rows_of
from bench.frames.verdicts import AGREEING, NOT_COMPARABLE
from bench.report.captions import count, notes, with_runs, words_of
from bench.report.document import MARKS, Document, Table, Value, measured
from bench.studies.measures import MEASURES
from bench.studies.wording import signed, with_std

HEAD = ["column_number", "point_number", "position"]
"""The keys of a table's column: federation, point of the experiment's axis, and measure."""


def _values(shown: DocumentCells, cells: pd.DataFrame) -> list[Value]:
    """The values of cells with ranks. Competing cells of a column are ranked if they have its usual number of
    seeds: the most frequent number above one, else one. Means equal in two decimals share a rank.
    """
    measures = shown.results.measures
    is_ranked = cells["measure_number"].map(lambda number: measures[number].ranked)
    is_rival = is_ranked & cells["line_object"].map(lambda line: line.competes) & (cells["n"] > 0)
    counts = cells["done_seeds"].map(len)
    heads = [cells[name] for name in HEAD]
    usual_counts = counts.where(is_rival & (counts > 1)).groupby(heads).transform(lambda n: n.mode().max())
    usual_counts = usual_counts.fillna(counts.where(is_rival).groupby(heads).transform("max")).fillna(counts)
    means = cells["mean"].round(2).where(is_rival & (counts == usual_counts))
    ranks = means.groupby(heads).rank(ascending=False, method="dense")
    ranks = ranks.where(ranks <= 2, 0).astype(int)
    values = []
    for row, rank, seeds in zip(rows_of(cells), ranks, usual_counts, strict=True):
        digits, number = measures[row.measure_number].digits, len(row.done_seeds)
        note = f"(n={number})" if row.n > 0 and number != seeds else ""
        value = measured(row.mean, row.std, digits, note, rank)
        is_alone = row.n > 0 and pd.isna(row.printed)
        values.append(value if is_alone else _beside_published(value, row, digits))
    return values


def _beside_published(value: Value, row: Any, digits: int) -> Value:
    """Add the published value, or the reason for a missing number, to the value of a cell."""
    published = "-" if pd.isna(row.status) else row.status or "-"
    if pd.notna(row.published_mean):
        published = with_std(row.published_mean, row.published_std, digits)
    hints = [count(len(row.done_seeds), "seed") if row.n > 0 else "", row.reason]
    if pd.notna(row.low_difference):
        hints.insert(1, f"90 % interval [{row.low_difference:+.2f}, {row.high_difference:+.2f}]")
    return replace(
        value,
        published_text=published,
        difference_text="" if pd.isna(row.difference) else signed(row.difference, digits),
        verdict=row.verdict,
        hint="; ".join(filter(None, hints)),
    )


def _table(shown: DocumentCells, name: str, title: str, cells: pd.DataFrame) -> Table:
    """A table of lines by federation, point and measure. Lines without a run or published value are left out.

    ``cells`` are the primary cells of one comparison.
    """
    experiment = shown.experiment
    has_content = (cells["runs"] > 0) | cells["printed"].notna()
    cells = cells[has_content.groupby([cells[key] for key in HEAD]).transform("any")]
    cells = cells.assign(cell=pd.Series(_values(shown, cells), cells.index, dtype=object))
    cells = cells[has_content.loc[cells.index].groupby(cells["line_number"]).transform("any")]
    heading, names = cells["data_title"], cells["federation"]
    has_measures = cells["measure_number"].nunique() > 1
    if has_measures or len(experiment.points) > 1:
        heading, names = heading + ", " + names, cells["point"]
    if has_measures:
        titles = cells["measure_number"].map(lambda number: shown.results.measures[number].title)
        names = (names + " " + titles).str.strip()
    body = _body(cells.assign(heading=heading, name=names), HEAD)
    fixed = (shown.study.baseline, *shown.study.references)
    lines = cells.drop_duplicates("line_number")
    is_reference = [not line.ranked or line.method in fixed for line in lines["line_object"]]
    references = frozenset(lines.loc[is_reference, "line"]) if experiment.competes else frozenset[str]()
    return Table(name, title, body, references)


def _body(cells: pd.DataFrame, order: list[str]) -> pd.DataFrame:
    """The body of a table. Each row of ``cells`` has a ``cell``, and the ``heading`` and ``name`` of its
    column. Columns are sorted by ``order``, a list of columns of ``cells``.
    """
    body = cells.pivot(index=["line_number", "line"], columns=[*order, "heading", "name"], values="cell")
    body = body.sort_index().sort_index(axis=1)
    return body.droplevel("line_number").droplevel(list(order), axis=1).rename_axis("Method")


def views(shown: DocumentCells) -> list[Table]:
    """Tables of measured values: one for each comparison with numbers, and always for the first."""
    tables = []
    cells = shown.cells[shown.cells["primary"] & shown.cells["is_run_column"]]
    for number, (label, targets) in enumerate(shown.experiment.comparisons.items()):
        beside = cells[cells["comparison_number"] == number]
        if (beside["n"] > 0).any() or (number == 0 and len(beside)):
            title = f"Measured beside {label}" if targets else "Measured"
            tables.append(_table(shown, f"measured_{number}", title, beside))
    return tables


def _below_baseline(shown: DocumentCells) -> Table | None:
    """Clients below the baseline, by line; None if the table is not main or has fewer than two methods."""
    cells = shown.cells[(shown.cells["comparison_number"] == 0) & (shown.cells["position"] == 0)]
    cells = cells[(cells["n"] > 0) & cells["usual"]].sort_values("column_number", kind="stable")
    if cells["line_number"].nunique() < 2 or not shown.experiment.main:
        return None
    below = values_of(shown.results, cells, MEASURES["below_local"]).groupby("place")["value"].mean()
    cells = cells.assign(
        heading=cells["data_title"],
        name=cells["federation"],
        cell=cells["place"].map(below).map(measured),
    )
    title = f"Clients below {shown.study.title_of(shown.study.baseline)}, mean over seeds"
    return Table("below", title, _body(cells, ["column_number"]))


def verdict_map(shown: DocumentCells, view: Table) -> Table | None:
    """The lines in usual settings that have verdicts; None if no cell is comparable."""
    usual_lines = shown.cells.loc[shown.cells["usual"], "line"]
    body = view.body[view.body.index.isin(usual_lines)].dropna(axis=1, how="all")
    verdicts = body.map(lambda value: value.verdict, na_action="ignore")
    is_graded = verdicts.isin([*MARKS])
    if not (is_graded & (verdicts != NOT_COMPARABLE)).any(axis=None):
        return None
    return replace(view, title=shown.experiment.title, body=body[is_graded.any(axis=1)])


def document_of(shown: DocumentCells, figures: tuple[Figure, ...] = ()) -> Document:
    """The document of an experiment with the given figures."""
    known = shown.cells[shown.cells["primary"] & (shown.cells["n"] > 0)]
    lines, federations = known["line_number"].nunique(), known["column_number"].nunique()
    summary = f"{len(known):,} numbers of {count(lines, 'line')} on {count(federations, 'federation')}"
    targets = known[known["printed"].notna() & known["usual"]]
    targets = targets.drop_duplicates(["paper", "printed"], keep="last")
    if len(targets):
        agree = targets["verdict"].isin(AGREEING).sum()
        summary += f"; {agree} of {count(len(targets), 'published value')} agree"
    caption, fine_print = words_of(shown)
    tables, below = views(shown), _below_baseline(shown)
    document = Document(
        shown.study,
        shown.experiment.name,
        shown.experiment.title,
        f"{summary}.",
        caption,
        (*tables, *([below] if below else [])),
        shown.cells,
        is_statistic=False,
        notes=notes(shown),
        fine_print=fine_print,
        figures=figures,
        verdicts=verdict_map(shown, tables[0]) if shown.experiment.competes and tables else None,
    )
    return with_runs(document, shown.results)
