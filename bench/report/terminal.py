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
from bench.report.grades import grade_look
from bench.report.table import Table, Value

WIDTH = 80
"""Columns of a terminal."""

LABEL_WIDTH = 20
"""Characters of a row's label that stay on one line."""

LISTED = 3
"""Further lines of a kind that are printed; the report's files have all."""

ROOM = 24
"""Rows of the one short table of a study that are printed unasked."""

BAR = 40
"""Characters of a bar of verdicts."""

Shown = TypeVar("Shown", Document, Report)


def text_of(show: Callable[[Shown, Console], None], shown: Shown, colours: bool = False) -> str:
    """What is shown of a document or report, with the escapes of a terminal's colours if they are wanted."""
    system: Literal["standard"] | None = "standard" if colours else None
    console = Console(
        file=io.StringIO(), width=WIDTH, force_terminal=colours, color_system=system, highlight=False
    )
    with console.capture() as capture:
        show(shown, console)
    return capture.get()


def fitting(table: Table) -> list[Table]:
    """A table in parts that a terminal has room for, each under one heading, without the rows that have no
    number: with published values a part for every column, with everything beside its numbers.
    """
    if any(value.published_text != "-" for _, row in table.rows for value in row):
        return [_beside_published(part) for part in table.by_group(1)]
    return [part for group in table.by_group() for part in group.by_group(_room(group))]


def _room(table: Table) -> int:
    """How many columns of a table stand side by side without cutting a word or a number."""
    values = [value for _, row in table.rows for value in row]
    words = " ".join([*table.columns, *(value.mean_text for value in values)]).split()
    widest = max(map(len, [*words, *(value.text for value in values if value.std_text)]))
    label_width = min(LABEL_WIDTH, max(len(label) for label, _ in table.rows))
    return max(1, (WIDTH - 4 - label_width) // (widest + 3))


def _beside_published(table: Table) -> Table:
    """A column of a table, with what stands beside its numbers in columns of their own."""
    values = [values[0] for _, values in table.rows]
    texts = {
        ("", "Measured"): values,
        ("", "Published"): [Value(value.published_text) for value in values],
        ("", "Diff."): [Value(value.difference_text or "-") for value in values],
        ("", "Verdict"): [Value(value.verdict or "-") for value in values],
    }
    body = pd.DataFrame(texts, table.body.index)
    has_number = [value.text != "-" for value in values]
    return replace(table, title=table.headings[0], body=body[has_number] if any(has_number) else body)


def rich_table(table: Table) -> RichTable:
    """A table under one heading for rich."""
    title = ": ".join(filter(None, (table.title, table.groups[0][0])))
    rendered = RichTable(title=escape(title), title_justify="left", title_style="bold", padding=(0, 1))
    rendered.add_column(table.stub, overflow="fold")
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
    _print_lines(console, *(f"- {note}" for note in document.notes))


def brief(report: Report, console: Console) -> None:
    """Print what every study comes to, and its table where it has one, which is short."""
    for study in report.parts:
        console.print(Text.assemble((study.title, "bold"), (f"  {study.runs:,} runs", "dim")))
        headline = 2 if study.scores else 1
        _print_lines(console, " ".join(study.sentences[:headline]))
        for score in study.scores:
            _print_score(score, console)
        _print_lines(console, *study.sentences[headline:])
        views = [view for each in study.documents if not each.is_statistic for view in each.views]
        tables = fitting(views[0]) if len(views) == 1 else []
        if sum(len(table.rows) for table in tables) <= ROOM:
            for table in tables:
                console.print(rich_table(table))
        console.print()


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
