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
from bench.report.table import Table, Value

WIDTH = 80
"""Columns of a terminal."""

LABEL_WIDTH = 20
"""Characters of a row's label that stay on one line."""

DETAILED = 4
"""Up to so many columns stand one by one beside the published values; more stand side by side with marks."""

LISTED = 3
"""Further lines of a kind that are printed; the report's files have all."""

ROOM = 24
"""Lines of the one short table of a study that are printed unasked."""

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
    """A table in parts that a terminal has room for, each under one heading, without the rows that have no
    number.

    With published values: each of few columns alone with everything beside its numbers; of many columns the
    means with the marks of their verdicts.
    """
    if any(value.published_text != "-" for _, row in table.rows for value in row):
        if table.body.shape[1] <= DETAILED:
            return [_one_column(_with_numbers(part)) for part in table.by_group(1)]
        table = replace(table, body=table.body.map(_with_mark, na_action="ignore"))
    return [_with_numbers(part) for group in table.by_group() for part in group.by_group(_room(group))]


def _room(table: Table) -> int:
    """How many columns of a table stand side by side without cutting a word or a number."""
    values = [value for _, row in table.rows for value in row]
    words = " ".join([*table.columns, *(value.mean_text for value in values)]).split()
    widest = max(map(len, [*words, *(value.text for value in values if value.std_text)]))
    label_width = min(LABEL_WIDTH, max(len(label) for label, _ in table.rows))
    return max(1, (WIDTH - 4 - label_width) // (widest + 3))


def _with_numbers(table: Table) -> Table:
    """A table without the rows that have no number; a table that would be empty as it is."""
    has_number = [any(value.text not in ("", "-") for value in row) for _, row in table.rows]
    return replace(table, body=table.body[has_number]) if any(has_number) else table


def _one_column(table: Table) -> Table:
    """A column of a table, with what stands beside its numbers in columns of their own."""
    values = table.body.iloc[:, 0]
    texts = {
        ("", "Measured"): values,
        ("", "Published"): [Value(value.published_text) for value in values],
        ("", "Diff."): [Value(value.difference_text or "-") for value in values],
        ("", "Verdict"): [Value(value.verdict or "-") for value in values],
    }
    return replace(table, title=table.headings[0], body=pd.DataFrame(texts, values.index))


def _with_mark(value: Value) -> Value:
    """A value for narrow places: the mean with the mark of its verdict, without its deviation."""
    note = value.std_text if value.std_text.startswith("(") else ""
    mark = grade_look(value.verdict).mark if value.verdict in GRADES else " "
    return Value(" ".join(filter(None, (value.mean_text, note, mark))), rank=value.rank)


def rich_table(table: Table) -> RichTable:
    """A table under one heading for rich; columns keep on one line where the terminal is wide enough."""
    title = ": ".join(filter(None, (table.title, table.groups[0][0])))
    rendered = RichTable(title=escape(title), title_justify="left", title_style="bold", padding=(0, 1))
    is_short = all(len(label) <= LABEL_WIDTH for label, _ in table.rows)
    rendered.add_column(table.stub, overflow="fold", no_wrap=is_short)
    for column in table.columns:
        rendered.add_column(escape(column), justify="right", overflow="fold")
    for label, values in table.rows:
        style = "dim" if label in table.references else None
        rendered.add_row(escape(label), *map(_styled, values), style=style)
    return rendered


def _styled(value: Value) -> Text:
    text = Text(value.text, grade_look(value.text).terminal)
    text.stylize({1: "bold", 2: "underline"}.get(value.rank, ""))
    return text


def show(document: Document, console: Console) -> None:
    """Print a document's tables and notes."""
    console.print(document.full_title, markup=False, style="bold")
    for view in document.views:
        for table in fitting(view):
            console.print(rich_table(table))
    marks = [] if document.is_statistic else [MARKS]
    _print_lines(console, *marks, *(f"- {note}" for note in document.notes))


def brief(report: Report, console: Console) -> None:
    """Print what every study comes to, and its table where there is one short one."""
    for study in report.parts:
        console.print(Text.assemble((study.title, "bold"), (f"  {study.runs:,} runs", "dim")))
        headline = 2 if study.scores else 1
        _print_lines(console, " ".join(study.sentences[:headline]))
        for score in study.scores:
            _print_score(score, console)
        _print_lines(console, *study.sentences[headline:])
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
    bar, counts, total = Text(), [], 0
    for name, count in score.counts:
        look = grade_look(name)
        total += count
        bar.append("█" * (round(BAR * total / score.published) - len(bar)), look.terminal)
        counts.append(Text(f"{look.symbol} {count} {name}", look.terminal))
    bar.append("░" * (BAR - len(bar)), "dim")
    console.print(bar.append(f" {score.title}: {score.measured} of {score.published}", "default"))
    console.print(Text("  ").join(counts))


def remarks(report: Report, console: Console) -> None:
    """Print what is not in the report's tables, and whose the runs are."""
    if report.unrun:
        _print_lines(console, f"Nothing run yet of {_first_names(report.unrun)}")
    if report.elsewhere:
        _print_lines(console, f"In no study's table: {_first_names(report.elsewhere)}")
    if report.shipped:
        _print_lines(console, f"{report.shipped:,} of these runs come with the suite; --own leaves them out")


def beside(report: Report, console: Console) -> None:
    """Print what lies beside the front page."""
    documents = report.documents
    figures = sum(len(document.figures) for document in documents)
    text = f"Beside it: {len(documents)} tables, {figures} figures, cells.csv"
    _print_lines(console, f"{text}; --print {documents[0].key} prints one")


def _first_names(names: Sequence[str]) -> str:
    rest_count = len(names) - LISTED
    return "; ".join(names[:LISTED]) + (f"; and {rest_count} more" if rest_count > 0 else "")


def _print_lines(console: Console, *lines: str) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False)
