"""From an experiment's cells to tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, product
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

from bench.grids.experiment import Line, Point
from bench.grids.grid import PARTITION_SEED
from bench.pages.grades import GRADES, grade_look
from bench.report.captions import caption, fine_print
from bench.report.document import Document
from bench.report.notes import notes, place_of
from bench.report.table import LABEL_WIDTH, NOWHERE, Entry, Row, SideNote, Table, listing
from bench.studies.cells import Cell, Cells
from bench.studies.experiment import Comparison
from bench.studies.frame import frame
from bench.studies.measures import Measure
from bench.studies.settings import Column
from bench.studies.verdicts import AGREEING, NOT_COMPARABLE
from bench.studies.wording import interval, number, published_text, signed, with_std

if TYPE_CHECKING:
    from bench.figures.panels import Figure

Name = TypeVar("Name", bound=Hashable)

WIDTH = 6
"""Columns of a measured number with its published one side by side."""

DETAILED = 4
"""Up to so many columns a terminal shows one by one with everything; more as one overview."""

TERMINAL = 80
"""Columns of a terminal."""

Head = tuple[Column, Point | None, Measure]
"""A column of a table: a federation, a point of the experiment's axis, where not every point has a row of its
own, and what is measured there.
"""


def places(values: Mapping[Name, float]) -> dict[Name, int]:
    """1 for the best, 2 for the second best, as printed with two decimals; ties share a place."""
    rounded_values = {name: round(value, 2) for name, value in values.items()}
    order = sorted(set(rounded_values.values()), reverse=True)[:2]
    return {name: order.index(value) + 1 for name, value in rounded_values.items() if value in order}


def compared_seeds(cells: Iterable[Cell]) -> tuple[int, ...]:
    """The seeds on which the cells of a column are compared; a cell with others has no place.

    They are those that most cells hold, and of equally frequent ones the more. Cells of one seed and
    cells that lost runs have no say beside others.
    """
    measured_cells = [cell for cell in cells if cell.measured]
    complete_cells = [cell for cell in measured_cells if len(cell.seeds) > 1 and not cell.lost_runs]
    counts = Counter(cell.seeds for cell in complete_cells or measured_cells)
    return min(counts, key=lambda seeds: (-counts[seeds], -len(seeds), seeds), default=())


def _entries(cells: Mapping[Line, Cell]) -> dict[Line, Entry]:
    """A column's entries: what its cells measure, with their places, and what stands beside that."""
    competing_cells = {line: cell for line, cell in cells.items() if line.competes and cell.measure.ranked}
    seeds = compared_seeds(competing_cells.values())
    ranks = places(
        {
            line: cell.measured.mean
            for line, cell in competing_cells.items()
            if cell.measured and cell.seeds == seeds
        }
    )
    entries = {}
    for line, cell in cells.items():
        text = "-"
        if cell.measured:
            text = with_std(cell.measured.mean, cell.measured.std, cell.measure.digits)
            text += f" (n={len(cell.seeds)})" if seeds and cell.seeds != seeds else ""
        entries[line] = Entry(text, ranks.get(line, 0), _side_note(cell))
    return entries


def _side_note(cell: Cell) -> SideNote | None:
    """What is said of a cell besides its number; nothing of one that was neither published nor lost."""
    if cell.target is None and cell.measured:
        return None
    difference = "" if cell.difference is None else signed(cell.difference, cell.measure.digits)
    seeds = f"{len(cell.seeds)} seed{'' if len(cell.seeds) == 1 else 's'}" if cell.measured else ""
    evidence = cell.evidence
    interval = f"[{evidence.low:+.2f}, {evidence.high:+.2f}]" if evidence else ""
    hint = "; ".join(filter(None, (seeds, interval and f"90 % interval {interval}", cell.reason)))
    published = published_text(cell.target, cell.measure.digits)
    return SideNote(published, difference, cell.verdict, interval, hint)


def _table(cells: Cells, name: str, title: str, columns: Iterable[Column], comparison: Comparison) -> Table:
    """Lines by columns, points and measures; lines of which nothing was run or published are left out.

    Where points and measures are several, every point of a line has a row of its own; what the points are
    stands over them.
    """
    points, measures = cells.experiment.points, cells.primary_measures
    by_point = len(points) > 1 and len(measures) > 1
    entries: dict[tuple[tuple[Line, Point | None], Head], Entry] = {}
    lines_with_content: set[Line] = set()
    for column, point, measure in product(columns, points, measures):
        column_cells = {
            line: cell
            for line in cells.lines
            if (cell := cells.at(column, line, point, measure, comparison)) is not None
        }
        lines = {line for line, cell in column_cells.items() if cell.group or cell.target}
        row_point, head_point = (point, None) if by_point else (None, point)
        for line, entry in _entries(column_cells).items() if lines else ():
            entries[(line, row_point), (column, head_point, measure)] = entry
        lines_with_content |= lines
    shown_lines = [line for line in cells.lines if line in lines_with_content]
    heads = list(dict.fromkeys(head for _, head in entries))
    rows: list[Row] = []
    for line, row_point in product(shown_lines, points if by_point else [None]):
        row = tuple(entries.get(((line, row_point), head), NOWHERE) for head in heads)
        if any(entry is not NOWHERE for entry in row):
            title_of = cells.study.line_title(line)
            rows.append((f"{title_of}, {row_point.label}" if row_point else title_of, row))
    stub = "Method" if cells.by_method or cells.experiment.main else "Variant"
    return Table(
        name,
        title,
        f"{stub}, {cells.experiment.axis}" if by_point and cells.experiment.axis else stub,
        *_headings(cells, heads),
        tuple(rows),
        frozenset(cells.study.line_title(line) for line in shown_lines if _is_reference(cells, line)),
        len(points) if by_point else 0,
    )


def _is_reference(cells: Cells, line: Line) -> bool:
    """Whether a line is there to compare with: the baseline, or one that has no rank."""
    return cells.experiment.competes and (
        not line.ranked or line.method in (cells.study.baseline, *cells.study.references)
    )


def _headings(cells: Cells, heads: Sequence[Head]) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
    """Groups of columns and the columns' names: federations under data sets, or points and measures under
    federations where those are several.
    """
    study = cells.study
    is_varied = [
        len(cells.experiment.points) > 1 and any(point for _, point, _ in heads),
        len({part[2] for part in heads}) > 1,
    ]
    if any(is_varied):
        groups = groupby(heads, lambda part: study.column_title(part[0]))
        names = [
            " ".join(filter(None, (point.label if point else "", measure.title if is_varied[1] else "")))
            for _, point, measure in heads
        ]
    else:
        groups = groupby(heads, lambda part: study.title_of(part[0].dataset))
        names = [place_of(cells, column) for column, _, _ in heads]
    return tuple((heading, len(list(part))) for heading, part in groups), tuple(names)


def views(cells: Cells) -> tuple[Table, ...]:
    """What was run beside the first published table."""
    comparison = cells.experiment.comparisons[0]
    target_names = ", ".join(target.label or target.table for target in comparison.targets)
    title = f"Measured beside {target_names}" if target_names else "Measured"
    table = _table(cells, "measured", title, cells.run_columns, comparison)
    return (table,) if table.rows else ()


def details(cells: Cells) -> tuple[Table, ...]:
    """Further published tables beside the same runs, what is published and not run, and every number."""
    first_comparison, *other_comparisons = cells.experiment.comparisons
    tables = []
    for comparison in other_comparisons:
        columns = [
            column
            for column in cells.run_columns
            if any(cell.column == column and cell.comparison is comparison for cell in cells)
        ]
        name = comparison.label.lower().replace(" ", "_")
        title = f"Measured beside {comparison.label}"
        tables.append(_table(cells, name, title, columns, comparison))
    published_columns = {cell.column for cell in cells if cell.target and cell.comparison is first_comparison}
    idle_columns = [
        column for column in cells.columns if column in published_columns and column not in cells.run_columns
    ]
    tables.append(_table(cells, "not_run", "Published, and not run yet", idle_columns, first_comparison))
    tables.append(every_number(cells))
    return tuple(table for table in tables if table.rows)


def every_number(cells: Cells) -> Table:
    """Every measured cell under every reading with its seeds, intervals and what its grade rests on."""
    rows = frame(cells).query("n > 0")
    title = "Every number: all readings, seeds, intervals and margins"
    return listing("every_number", title, "Line", map(_number_row, rows.to_dict("records")))


def _number_row(row: Mapping[Hashable, Any]) -> tuple[str, dict[str, str]]:
    """A row of the frame as text."""
    place = f"{row['dataset']} {row['scenario']} {row['clients']}"
    texts = {
        "Where": f"{place}, {row['point']}" if row["point"] else place,
        "Measure": f"{row['table']}: {row['measure']}",
        "Stage, rule": f"{row['stage']}, {row['rule']}",
        "Seeds": f"{row['n']} of {row['planned']}" if row["n"] < row["planned"] else str(row["n"]),
        "Measured": with_std(row["mean"], row["std"] if pd.notna(row["std"]) else None),
        "95 % interval": interval(row["low"], row["high"]),
        "s_d": number(row["s_d"]),
        "Partitions": number(row["partitions"], "d"),
        "Difference": number(row["difference"], "+.2f"),
        "90 % interval of it": interval(row["low_difference"], row["high_difference"], "+.2f"),
        "Margin": number(row["margin"]),
        "Tolerance": number(row["tolerance"]),
        "Verdict": row["verdict"],
    }
    return row["line"], texts


def _with_lines(cells: Cells, is_wanted: Callable[[Line], bool]) -> Cells:
    return replace(
        cells,
        lines=tuple(line for line in cells.lines if is_wanted(line)),
        by_key={key: cell for key, cell in cells.by_key.items() if is_wanted(cell.line)},
    )


def _on_its_own_partition(line: Line) -> bool:
    """Not for lines that differ in the partition alone; they give s_d, and stand in the files."""
    return {part.partition("=")[0] for part in line.setting.split(";")} != {PARTITION_SEED}


def verdict_map(cells: Cells) -> Table | None:
    """The lines of the usual settings that have verdicts; None where nothing is comparable."""
    for table in views(_with_lines(cells, lambda line: not line.setting)):
        rows = tuple(row for row in table.rows if any(map(_is_graded, row[1])))
        verdicts = {entry.beside.verdict for _, row in rows for entry in row if entry.beside}
        if verdicts & (GRADES.keys() - {NOT_COMPARABLE}):
            return replace(table, title=cells.experiment.title, rows=rows)
    return None


def _is_graded(entry: Entry) -> bool:
    return entry.beside is not None and entry.beside.verdict in GRADES


def _overview(table: Table) -> Table:
    """A table for narrow places: means without deviations, each with the mark of its verdict."""

    def with_mark(entry: Entry) -> Entry:
        mark = grade_look(entry.beside.verdict).mark if entry.beside and _is_graded(entry) else " "
        return replace(entry, text=f"{entry.text.partition(' ±')[0]} {mark}", beside=None)

    rows = [(label, tuple(map(with_mark, entries))) for label, entries in table.rows]
    return replace(table, rows=tuple(rows))


def _columns_side_by_side(table: Table) -> int:
    """How many columns a terminal of 80 has room for without cutting a word of their headings or a number."""
    texts = [word for heading in table.headings for word in heading.split()]
    texts += [entry.text for _, entries in table.rows for entry in entries]
    label_width = min(max((len(label) for label, _ in table.rows), default=0), LABEL_WIDTH)
    return max(1, min(WIDTH, (TERMINAL - label_width - 4) // (max(map(len, texts), default=0) + 3)))


def _without_empty_rows(table: Table) -> Table:
    """A table without the rows that have no number; a table that would be empty as it is."""
    rows = tuple(row for row in table.rows if any(entry.text.strip() not in ("", "-") for entry in row[1]))
    return replace(table, rows=rows) if rows else table


def printed_tables(cells: Cells) -> tuple[Table, ...]:
    """What a terminal shows of a table: each of few columns beside the published numbers, if there are any,
    or all side by side; many without deviations and with the verdicts' marks.
    """
    tables = views(_with_lines(cells, _on_its_own_partition))
    if sum(len(table.columns) for table in tables) > DETAILED:
        tables = tuple(map(_overview, tables))
    elif any(comparison.targets for comparison in cells.experiment.comparisons):
        return tuple(table.column_table(number) for table in tables for number in range(len(table.columns)))
    blocks = (block for table in tables for block in table.blocks(_columns_side_by_side(table)))
    return tuple(map(_without_empty_rows, blocks))


def _summary(cells: Cells) -> str:
    """What a table holds, in numbers."""
    measured_cells = [cell for cell in cells.primary_cells if cell.measured]
    if not measured_cells:
        return "Nothing run yet."
    by_method = cells.by_method or cells.experiment.main
    subjects: set[Hashable] = {cell.method if by_method else cell.line for cell in measured_cells}
    columns = {cell.column for cell in measured_cells}
    subject_text = _count(len(subjects), "method" if by_method else "variant")
    text = f"{len(measured_cells):,} numbers of {subject_text} on {_count(len(columns), 'federation')}"
    targets = {cell.target: cell for cell in measured_cells if cell.target and not cell.line.setting}
    agree = sum(cell.verdict in AGREEING for cell in targets.values())
    return f"{text}; {agree} of {_count(len(targets), 'published value')} agree." if targets else f"{text}."


def _count(number_of_things: int, noun: str) -> str:
    return f"{number_of_things} {noun}{'' if number_of_things == 1 else 's'}"


def document(cells: Cells, figures: Iterable[Figure] = ()) -> Document:
    """Everything about one experiment, of which these are the figures."""
    study, experiment = cells.study, cells.experiment
    return Document(
        study,
        experiment.name,
        experiment.title,
        summary=_summary(cells),
        caption=caption(cells),
        notes=notes(cells),
        views=views(cells),
        details=details(cells),
        printed=printed_tables(cells) if cells.run_columns else (),
        primary_cells=tuple(cells.primary_cells),
        cells=tuple(cells),
        fine_print=fine_print(cells),
        figures=tuple(figures),
    )
