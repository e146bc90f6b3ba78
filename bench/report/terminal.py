"""Documents on a terminal of 80 columns."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from bench.report.table import Document, Entry, Table

DETAILED = 4
"""Up to so many columns are printed one by one with everything; more as one overview."""

OVERVIEW_WIDTH = 6
"""Columns of an overview side by side."""

COLOURS = {"reproduced": "green", "above": "yellow", "below": "red"}


def _text(entry: Entry) -> str:
    text = escape(entry.text)
    styled = {1: f"[bold]{text}[/]", 2: f"[underline]{text}[/]"}.get(entry.place, text)
    colour = COLOURS.get(entry.text.rpartition(" ")[2])
    return f"[{colour}]{styled}[/]" if colour else styled


def rich_table(table: Table) -> RichTable:
    """A table for rich; columns keep on one line where the terminal is wide enough."""
    made = RichTable(title=escape(table.title), title_justify="left", title_style="bold", padding=(0, 1))
    made.add_column(table.stub, overflow="fold")
    named = [heading for heading, span in table.groups for _ in range(span)]
    for heading, column in zip(named, table.columns, strict=True):
        made.add_column(
            escape(f"{heading}\n{column}" if heading else column), justify="right", overflow="fold"
        )
    for label, entries in table.rows:
        made.add_row(escape(label), *map(_text, entries))
    return made


def show(document: Document, console: Console) -> None:
    """Print a document's columns that have runs: in detail where they are few, else as an overview."""
    if document.summary is None:
        console.print(f"\n{document.title}: nothing run yet", markup=False, highlight=False)
        return
    console.print(f"\n{document.title}", markup=False, highlight=False, style="bold")
    details, overview = document.summary.details, document.summary.overview
    for table in details if overview is None or len(details) <= DETAILED else overview.blocks(OVERVIEW_WIDTH):
        console.print(rich_table(table))
    for note in document.summary.notes:
        console.print(f"- {note}", markup=False, highlight=False)
