"""From an experiment's cells to tables: lines by columns, points and measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from bench.frames.stored_runs import rows_of
from bench.frames.verdicts import AGREEING, NOT_COMPARABLE
from bench.grids.experiment import Line
from bench.grids.grid import PARTITION_SEED
from bench.report.captions import caption_and_fine_print, notes
from bench.report.document import Document, DocumentCells
from bench.report.grades import GRADES, grade_look
from bench.report.table import LABEL_WIDTH, Cell, Table, Value, listing, text_of
from bench.studies.measures import Measure
from bench.studies.settings import Column
from bench.studies.wording import interval, number

if TYPE_CHECKING:
    from bench.figures.panels import Figure

Name = TypeVar("Name", bound=Hashable)

WIDTH = 6
"""Columns of a measured number side by side on a terminal."""

DETAILED = 4
"""Up to so many columns a terminal shows one by one with everything; more as one overview."""

TERMINAL = 80
"""Columns of a terminal."""

HEAD = ["column_number", "point_number", "position"]
"""What a number stands under: a federation, a point of the experiment's axis, and what is measured there."""


def places(values: Mapping[Name, float]) -> dict[Name, int]:
    """1 for the best, 2 for the second best, as printed with two decimals; ties share a place."""
    rounded_values = {name: round(value, 2) for name, value in values.items()}
    order = sorted(set(rounded_values.values()), reverse=True)[:2]
    return {name: order.index(value) + 1 for name, value in rounded_values.items() if value in order}


def compared_seeds(cells: pd.DataFrame) -> tuple[int, ...]:
    """The seeds on which the cells of a column are compared; a cell with others has no place.

    They are those that most cells hold, and of equally frequent ones the more. Cells of one seed and
    cells that lost runs have no say beside others.
    """
    measured = cells[cells["n"] > 0]
    complete = measured[(measured["done_seeds"].map(len) > 1) & (measured["lost"] == 0)]
    counts = Counter((measured if complete.empty else complete)["done_seeds"])
    return min(counts, key=lambda seeds: (-counts[seeds], -len(seeds), seeds), default=())


def _values(cells: pd.DataFrame, measures: Sequence[Measure]) -> list[Value]:
    """The values of cells, with the places of those that compete under one head."""
    ranks: dict[Any, int] = {}
    seeds_of_heads = {}
    cells = cells.assign(competes=[line.competes for line in cells["line_object"]])
    for head, part in cells.groupby(HEAD):
        measure = measures[part["measure_number"].iloc[0]]
        rivals = part[part["competes"] & measure.ranked]
        seeds = seeds_of_heads[head] = compared_seeds(rivals)
        has_seeds = np.array([each == seeds for each in rivals["done_seeds"]], bool)
        ranks |= places(rivals.loc[has_seeds & (rivals["n"] > 0), "mean"].to_dict())
    values = []
    for row in rows_of(cells):
        seeds = seeds_of_heads[row.column_number, row.point_number, row.position]
        has_others = row.n > 0 and seeds and row.done_seeds != seeds
        note = f"(n={len(row.done_seeds)})" if has_others else ""
        value = Value(row.mean, row.std, measures[row.measure_number].digits, note, ranks.get(row.Index, 0))
        values.append(value if row.n > 0 and pd.isna(row.printed) else _beside_published(value, row))
    return values


def _beside_published(value: Value, row: Any) -> Value:
    """The value of a cell with what is published of it, or why there is no number."""
    beside = replace(
        value,
        published=row.published_mean,
        published_std=row.published_std,
        status="" if pd.isna(row.status) else row.status,
        difference=row.difference,
        low=row.low_difference,
        high=row.high_difference,
        verdict=row.verdict,
    )
    seeds = _count(len(row.done_seeds), "seed") if row.n > 0 else ""
    interval_text = beside.interval_text and f"90 % interval {beside.interval_text}"
    return replace(beside, hint="; ".join(filter(None, (seeds, interval_text, row.reason))))


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
    values = _values(cells, shown.results.measures)
    cells = cells.assign(value=pd.Series(values, cells.index, dtype=object))
    cells = cells[has_content.loc[cells.index].groupby(cells["line_number"]).transform("any")]
    body = cells.pivot(index=row_key, columns=head_key, values="value").sort_index().sort_index(axis=1)
    heads = cells.sort_values(head_key).drop_duplicates(head_key)
    body.columns = pd.MultiIndex.from_tuples(_heads(shown, heads, by_point), names=["group", "column"])
    rows = cells.sort_values(row_key).drop_duplicates(row_key)
    stub = f"Method, {experiment.axis}" if by_point and experiment.axis else "Method"
    stub = stub if shown.by_method else stub.replace("Method", "Variant")
    labels = rows["line"] + ", " + rows["point"] if by_point else rows["line"]
    body.index = pd.Index(labels, name=stub, dtype=object)
    is_reference = [_is_reference(shown, line) for line in rows["line_object"]]
    references = frozenset(rows.loc[is_reference, "line"])
    return Table(name, title, body, references, len(experiment.points) if by_point else 0)


def _is_reference(shown: DocumentCells, line: Line) -> bool:
    """Whether a line is there to compare with: the baseline, or one that has no rank."""
    study = shown.study
    return shown.experiment.competes and (
        not line.ranked or line.method in (study.baseline, *study.references)
    )


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
    return () if cells.empty else _with_rows([_table(shown, "measured", title, cells)])


def _with_rows(tables: Iterable[Table]) -> tuple[Table, ...]:
    return tuple(table for table in tables if len(table.body))


def details(shown: DocumentCells) -> tuple[Table, ...]:
    """Further published tables beside the same runs, what is published and not run, and every number."""
    primary = shown.cells[shown.cells["primary"]]
    tables = []
    for place, comparison in list(enumerate(shown.experiment.comparisons))[1:]:
        name, title = comparison.label.lower().replace(" ", "_"), f"Measured beside {comparison.label}"
        is_beside = primary["is_run_column"] & (primary["comparison_number"] == place)
        tables.append((name, title, primary[is_beside]))
    first = primary[primary["comparison_number"] == 0]
    printed = first.loc[first["printed"].notna(), "column_number"]
    idle = first[first["column_number"].isin(printed) & ~first["is_run_column"]]
    tables.append(("not_run", "Published, and not run yet", idle))
    return _with_rows([*(_table(shown, *table) for table in tables if len(table[2])), every_number(shown)])


def every_number(shown: DocumentCells) -> Table:
    """Every measured cell under every reading with its seeds, intervals and what its grade rests on."""
    title = "Every number: all readings, seeds, intervals and margins"
    rows = map(_number_row, shown.cells[shown.cells["n"] > 0].to_dict("records"))
    return listing("every_number", title, "Line", rows)


def _number_row(row: Mapping[Hashable, Any]) -> tuple[str, dict[str, Cell]]:
    """A row of the frame as text."""
    place = f"{row['dataset']} {row['scenario']} {row['clients']}"
    return row["line"], {
        "Where": f"{place}, {row['point']}" if row["point"] else place,
        "Measure": f"{row['table']}: {row['measure']}",
        "Stage, rule": f"{row['stage']}, {row['rule']}",
        "Seeds": f"{row['n']} of {row['planned']}" if row["n"] < row["planned"] else str(row["n"]),
        "Measured": Value(row["mean"], row["std"]),
        "95 % interval": interval(row["low"], row["high"]),
        "s_d": number(row["s_d"]),
        "Partitions": number(row["partitions"], "d"),
        "Difference": number(row["difference"], "+.2f"),
        "90 % interval of it": interval(row["low_difference"], row["high_difference"], "+.2f"),
        "Margin": number(row["margin"]),
        "Tolerance": number(row["tolerance"]),
        "Verdict": row["verdict"],
    }


def verdict_map(shown: DocumentCells) -> Table | None:
    """The lines of the usual settings that have verdicts; None where nothing is comparable."""
    for table in views(shown, shown.cells[shown.cells["usual"]]):
        is_graded = table.body.map(_is_graded)
        verdicts = {value.verdict for value in table.body.to_numpy().flat if _is_graded(value)}
        if verdicts - {NOT_COMPARABLE}:
            return replace(table, title=shown.experiment.title, body=table.body[is_graded.any(axis=1)])
    return None


def _is_graded(value: Cell) -> bool:
    return isinstance(value, Value) and value.verdict in GRADES


def printed_tables(shown: DocumentCells, tables: tuple[Table, ...]) -> tuple[Table, ...]:
    """What a terminal shows of the ``tables`` that ``views`` gives: each of few columns beside the published
    numbers, if there are any, or all side by side; many without deviations and with the verdicts' marks.
    """
    # Lines that differ in the partition alone give s_d, and stand in the files.
    keys = shown.cells["line_object"].map(
        lambda line: {part.partition("=")[0] for part in line.setting.split(";")}
    )
    if (keys == {PARTITION_SEED}).any():
        tables = views(shown, shown.cells[keys != {PARTITION_SEED}])
    if sum(len(table.columns) for table in tables) > DETAILED:
        tables = tuple(replace(table, body=table.body.map(_with_mark), has_marks=True) for table in tables)
    elif any(comparison.targets for comparison in shown.experiment.comparisons):
        return tuple(_one_column(table, number) for table in tables for number in range(len(table.columns)))
    blocks = [block for table in tables for block in table.blocks(_columns_side_by_side(table))]
    return tuple(map(_without_empty_rows, blocks))


def _one_column(table: Table, number: int) -> Table:
    """A column of a table, with what stands beside its numbers in columns of their own."""
    values = table.body.iloc[:, number].dropna()
    texts = {
        "Measured": values,
        "Published": values.map(lambda value: value.published_text),
        "Diff.": values.map(lambda value: value.difference_text or "-"),
        "Verdict": values.map(lambda value: value.verdict or "-"),
    }
    return replace(table, title=table.headings[number], body=pd.DataFrame(texts, dtype=object))


def _with_mark(value: Cell) -> Cell:
    """A value for narrow places: the mean without its deviation, with the mark of its verdict."""
    if not isinstance(value, Value):
        return value
    mark = grade_look(value.verdict).mark if _is_graded(value) else " "
    note = f"{value.note} {mark}" if value.note and isnan(value.std) else mark
    return Value(value.mean, digits=value.digits, note=note, rank=value.rank)


def _columns_side_by_side(table: Table) -> int:
    """How many columns a terminal of 80 has room for without cutting a word of their headings or a number."""
    texts = [word for heading in table.headings for word in heading.split()]
    texts += [text_of(cell) for _, cells in table.rows for cell in cells]
    label_width = min(max((len(label) for label, _ in table.rows), default=0), LABEL_WIDTH)
    return max(1, min(WIDTH, (TERMINAL - label_width - 4) // (max(map(len, texts), default=0) + 3)))


def _without_empty_rows(table: Table) -> Table:
    """A table without the rows that have no number; a table that would be empty as it is."""
    has_number = table.body.map(lambda value: isinstance(value, Value) and not isnan(value.mean)).any(axis=1)
    return replace(table, body=table.body[has_number]) if has_number.any() else table


def _summary(shown: DocumentCells) -> str:
    """What a table holds, in numbers."""
    measured = shown.cells[shown.cells["primary"] & (shown.cells["n"] > 0)]
    if measured.empty:
        return "Nothing run yet."
    subjects = measured["method" if shown.by_method else "line_number"].nunique()
    noun = "method" if shown.by_method else "variant"
    federations = _count(measured["column_number"].nunique(), "federation")
    text = f"{len(measured):,} numbers of {_count(subjects, noun)} on {federations}"
    targets = measured[measured["printed"].notna() & measured["usual"]].drop_duplicates(
        ["paper", "printed"], keep="last"
    )
    agree = targets["verdict"].isin(AGREEING).sum()
    return (
        f"{text}; {agree} of {_count(len(targets), 'published value')} agree." if len(targets) else f"{text}."
    )


def _count(number_of_things: int, noun: str) -> str:
    return f"{number_of_things} {noun}{'' if number_of_things == 1 else 's'}"


def document_of(shown: DocumentCells, figures: Iterable[Figure] = ()) -> Document:
    """Everything about one experiment, of which these are the figures."""
    caption, fine_print = caption_and_fine_print(shown)
    tables = views(shown, shown.cells)
    return Document(
        shown.study,
        shown.experiment.name,
        shown.experiment.title,
        summary=_summary(shown),
        caption=caption,
        notes=notes(shown),
        views=tables,
        details=details(shown),
        printed=printed_tables(shown, tables) if shown.is_run else (),
        cells=shown.cells,
        is_statistic=False,
        fine_print=fine_print,
        figures=tuple(figures),
    )
