"""A report on a terminal of 80 columns: what each study comes to, and where everything lies."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from bench.report.document import Document, Report, Score
from bench.report.grades import GRADES, MARKS, grade_look
from bench.report.table import Cell, Table, Value, rank_of
from bench.report.table import text_of as text_of_cell

WIDTH = 80
"""Columns of a terminal."""

LABEL_WIDTH = 20
"""Characters of a row's label that stay on one line."""

DETAILED = 4
"""Up to so many columns stand one by one beside the published values; more stand side by side with marks."""

ROOM = 24
"""Lines that a report's only table may take to be printed without being asked for."""

LISTED = 3
"""Further lines of a kind that are printed; the report's files have all."""

BAR = 40
"""Characters of a bar of verdicts."""

Shown = TypeVar("Shown", Document, Report)


def text_of(show: Callable[[Shown, Console], None], shown: Shown, colours: bool = False) -> str:
    """What is shown of a document or report, with the escapes of a terminal's colours if they are wanted."""
    file = io.StringIO()
    system: Literal["standard"] | None = "standard" if colours else None
    show(shown, Console(file=file, width=WIDTH, force_terminal=colours, color_system=system, highlight=False))
    return file.getvalue()


def fitting(table: Table) -> list[Table]:
    """A table in parts that a terminal has room for, without the rows that have no number.

    With published values: each of few columns alone with everything beside its numbers; of many columns the
    means with the marks of their verdicts.
    """
    values = [value for value in table.body.to_numpy().flat if isinstance(value, Value)]
    if any(value.published_text != "-" for value in values):
        if table.body.shape[1] <= DETAILED:
            return [_one_column(_with_numbers(part)) for part in table.by_group(1)]
        table = replace(table, body=table.body.map(_with_mark))
    return [_with_numbers(part) for group in table.by_group() for part in group.by_group(_room(group))]


def _room(table: Table) -> int:
    """How many columns of a table stand side by side without cutting a word or a number."""
    words = [[name] for name in table.columns]
    for _, cells in table.rows:
        for column, cell in zip(words, cells, strict=True):
            column += [cell.text] if isinstance(cell, Value) else text_of_cell(cell).split()
    widths = [max(map(len, column)) + 3 for column in words]
    room = WIDTH - 4 - min(LABEL_WIDTH, max((len(label) for label, _ in table.rows), default=0))
    return len(widths) if sum(widths) <= room else max(1, room // max(widths))


def _with_numbers(table: Table) -> Table:
    """A table without the rows that have no number; a table that would be empty as it is."""
    has_number = table.body.map(lambda cell: text_of_cell(cell).strip() not in ("", "-")).any(axis=1)
    return replace(table, body=table.body[has_number]) if has_number.any() else table


def _one_column(table: Table) -> Table:
    """A column of a table, with what stands beside its numbers in columns of their own."""
    values = table.body.iloc[:, 0]
    texts = {
        ("", "Measured"): values,
        ("", "Published"): values.map(lambda value: value.published_text),
        ("", "Diff."): values.map(lambda value: value.difference_text or "-"),
        ("", "Verdict"): values.map(lambda value: value.verdict or "-"),
    }
    return replace(table, title=table.headings[0], body=pd.DataFrame(texts, dtype=object))


def _with_mark(value: Cell) -> Cell:
    """A value for narrow places: the mean with the mark of its verdict, without its deviation."""
    if not isinstance(value, Value):
        return value
    note = value.std_text if value.std_text.startswith("(") else ""
    mark = grade_look(value.verdict).mark if value.verdict in GRADES else " "
    return Value(" ".join(filter(None, (value.mean_text, note, mark))), rank=value.rank)


def rich_table(table: Table) -> RichTable:
    """A table for rich; columns keep on one line where the terminal is wide enough."""
    headings = [heading for heading, span in table.groups for _ in range(span)]
    title = table.title
    if len(table.groups) == 1 < len(headings):  # said once, not over every column
        title, headings = f"{title}: {headings[0]}" if headings[0] else title, [""] * len(headings)
    rendered = RichTable(title=escape(title), title_justify="left", title_style="bold", padding=(0, 1))
    longest_label = max((len(label) for label, _ in table.rows), default=0)
    rendered.add_column(table.stub, overflow="fold", no_wrap=longest_label <= LABEL_WIDTH)
    for heading, column in zip(headings, table.columns, strict=True):
        head = escape(f"{heading}\n{column}" if heading else column)
        rendered.add_column(head, justify="right", overflow="fold")
    for label, values in table.rows:
        style = "dim" if label in table.references else None
        rendered.add_row(escape(label), *map(_markup, values), style=style)
    return rendered


def _markup(cell: Cell) -> str:
    text = escape(text_of_cell(cell))
    markup = {1: f"[bold]{text}[/]", 2: f"[underline]{text}[/]"}.get(rank_of(cell), text)
    look = GRADES.get(text)
    return f"[{look.terminal}]{markup}[/]" if look else markup


def show(document: Document, console: Console) -> None:
    """Print a document's tables and notes."""
    if not document.views:
        _line(console, f"{document.full_title}: nothing run yet")
        return
    console.print(document.full_title, markup=False, highlight=False, style="bold")
    for view in document.views:
        for table in fitting(view):
            console.print(rich_table(table))
    if not document.is_statistic:
        _line(console, MARKS)
    for note in document.notes:
        _line(console, f"- {note}")


def brief(report: Report, console: Console) -> None:
    """Print what every study comes to, and its table where there is one short one."""
    for study in report.parts:
        console.print(Text.assemble((study.title, "bold"), (f"  {study.runs:,} runs", "dim")))
        headline = 2 if study.scores else 1
        _line(console, " ".join(study.sentences[:headline]))
        for score in study.scores:
            _print_score(score, console)
        for sentence in study.sentences[headline:]:
            _line(console, sentence)
        short_tables = [tables for document in study.documents if (tables := _short_tables(document))]
        for table in short_tables[0] if len(short_tables) == 1 else ():
            console.print(rich_table(table))
        console.print()


def _short_tables(document: Document) -> list[Table]:
    """The tables of a document that is no statistic, where they need little room."""
    tables = [] if document.is_statistic else [table for view in document.views for table in fitting(view)]
    lines = sum(len(table.rows) + 4 for table in tables) + len(document.notes)
    return tables if lines <= ROOM else []


def _print_score(score: Score, console: Console) -> None:
    """Print a bar of the verdicts on a paper's measured values, and their numbers."""
    bar, total = Text(), 0
    for name, count in score.counts:
        total += count
        bar.append("█" * (round(BAR * total / score.published) - len(bar)), grade_look(name).terminal)
    bar.append("░" * (BAR - len(bar)), "dim")
    console.print(bar.append(f" {score.title}: {score.measured} of {score.published}", "default"))
    counts = [
        Text(f"{grade_look(name).symbol} {count} {name}", grade_look(name).terminal)
        for name, count in score.counts
    ]
    console.print(Text("  ").join(counts) if counts else Text("none measured under its protocol", "dim"))


def remarks(report: Report, console: Console) -> None:
    """Print what is not in the report's tables, and whose the runs are."""
    if report.unrun:
        _line(console, f"Nothing run yet of {_first_names(report.unrun)}")
    if report.elsewhere:
        _line(console, f"In no study's table: {_first_names(report.elsewhere)}")
    if report.shipped:
        _line(console, f"{report.shipped:,} of these runs come with the suite; --own leaves them out")


def beside(report: Report, console: Console) -> None:
    """Print what lies beside the front page."""
    names = [document.key for document in report.documents]
    figures = sum(len(document.figures) for document in report.documents)
    contents_text = f"Beside it: {len(names)} tables, {figures} figures, cells.csv"
    _line(console, f"{contents_text}; --print {names[0]} prints one")


def _first_names(names: Sequence[str]) -> str:
    rest_count = len(names) - LISTED
    return "; ".join(names[:LISTED]) + (f"; and {rest_count} more" if rest_count > 0 else "")


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False)
