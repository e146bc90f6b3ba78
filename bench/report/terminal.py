"""A report on a terminal of 80 columns: the result of each study, and the place of the files."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from bench.report.document import MARKS, Document, Part, Table, Value, colour, symbol

WIDTH = 80
"""Characters in a line of the terminal."""

SIDE_BY_SIDE = 3
"""The largest number of table columns under one heading."""

BAR = 40
"""Length of a bar of verdicts in characters."""

Shown = Iterable[Text | RichTable]


def text_of(shown: Shown, colours: bool = False) -> str:
    """Render to text. If ``colours`` is set, add the escape codes of terminal colours."""
    console = Console(
        file=io.StringIO(), width=WIDTH, force_terminal=colours, color_system="standard" if colours else None
    )
    with console.capture() as capture:
        for part in shown:
            console.print(part)
    return capture.get()


def fitting(table: Table) -> list[Table]:
    """Split a table by heading into parts that fit a terminal. If a table has published values, every column
    is a part of its own, with published value, difference and verdict.
    """
    if any(value.published_text != "-" for _, row in table.rows for value in row):
        return [_beside_published(part) for part in table.by_group(1)]
    return table.by_group(SIDE_BY_SIDE) if table.groups[0][0] else [table]


def _beside_published(table: Table) -> Table:
    """Turn a table of one column into columns for measured, published, difference and verdict. If any row has
    a number, rows without one are left out.
    """
    values = table.body.iloc[:, 0]
    has_number = values.map(lambda value: value.text != "-")
    if has_number.any():
        values = values[has_number]
    texts = [
        (value, *map(Value, (value.published_text, value.difference_text or "-", value.verdict or "-")))
        for value in values
    ]
    columns = pd.MultiIndex.from_product([[""], ["Measured", "Published", "Diff.", "Verdict"]])
    title = ", ".join(filter(None, table.body.columns[0]))
    return replace(table, title=title, body=pd.DataFrame(texts, values.index, columns))


def rich_table(table: Table) -> RichTable:
    """Convert a table with one heading to a table of the library rich."""
    title = ": ".join(filter(None, (table.title, table.groups[0][0])))
    rendered = RichTable(title=escape(title), title_justify="left", title_style="bold", padding=(0, 1))
    rendered.add_column(table.stub, overflow="fold")
    for column in table.columns:
        rendered.add_column(Text(column), justify="right", overflow="fold")
    for label, values in table.rows:
        style = "dim" if label in table.references else None
        rendered.add_row(Text(label), *map(_styled, values), style=style)
    return rendered


def _styled(value: Value) -> Text:
    text = Text(value.text, colour(value.text))
    text.stylize({1: "bold", 2: "underline"}.get(value.rank, ""))
    return text


def show(document: Document) -> Iterator[Text | RichTable]:
    """A document's tables and notes."""
    yield Text(document.full_title, "bold")
    for view in document.views:
        yield from map(rich_table, fitting(view))
    for note in document.notes:
        yield Text(f"- {note}")


def brief(report: Iterable[Part]) -> Iterator[Text | RichTable]:
    """The result of every study, and its table if it has exactly one."""
    for study in report:
        yield Text.assemble((study.title, "bold"), (f"  {len(study.runs):,} runs", "dim"))
        headline = 2 if len(study.counts) else 1
        yield Text(" ".join(study.sentences[:headline]))
        for paper, counts in study.counts.iterrows():
            yield from _score_lines(str(paper), counts)
        yield from map(Text, study.sentences[headline:])
        views = [each.views[0] for each in study.documents if not each.is_statistic and each.views]
        if len(views) == 1:
            yield from map(rich_table, fitting(views[0]))
        yield Text()


def _score_lines(paper: str, counts: pd.Series[int]) -> Iterator[Text]:
    """A bar of the verdicts on a paper's measured values, and their numbers."""
    bar, numbers, measured = Text(), [], 0
    for name in MARKS:
        measured += counts[name]
        bar.append("█" * (round(BAR * measured / counts.sum()) - len(bar)), colour(name))
        if counts[name]:
            numbers.append(Text(f"{symbol(name)} {counts[name]} {name}", colour(name)))
    bar.append("░" * (BAR - len(bar)), "dim")
    yield bar.append(f" {paper}: {measured} of {counts.sum()}", "default")
    yield Text("  ").join(numbers)


def remarks(report: Iterable[Part]) -> str:
    """A line on the number of runs that come with the suite; "" if there are none."""
    runs = pd.concat([part.runs for part in report]).drop_duplicates("run")
    shipped = (runs["origin"] != "").sum()
    if not shipped:
        return ""
    return f"{shipped:,} of these runs come with the suite; --own leaves them out\n"


def beside(report: Iterable[Part]) -> str:
    """A line on the files beside the front page."""
    documents = [document for part in report for document in part.documents]
    figures = sum(len(document.figures) for document in documents)
    text = f"Beside it: {len(documents)} tables, {figures} figures, cells.csv"
    return f"{text}; --print {documents[0].key} prints one\n"
