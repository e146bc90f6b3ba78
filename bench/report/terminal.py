"""A report on a terminal of 80 columns: its tables where they are short, else a few lines for each study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from bench.report.page import NAME as PAGE
from bench.report.page import Part
from bench.report.report import Report
from bench.report.table import Document, Entry, Table

DETAILED = 4
"""Up to so many columns are printed one by one with everything; more as one overview."""

OVERVIEW_WIDTH = 6
"""Columns of an overview side by side."""

ROOM = 30
"""Lines that the tables of a report may take to be printed without being asked for."""

LISTED = 3
"""Further lines of a kind that are printed; the report's files have all."""

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
        _line(console, f"{document.title}: nothing run yet")
        return
    console.print(document.title, markup=False, highlight=False, style="bold")
    details, overview = document.summary.details, document.summary.overview
    for table in details if overview is None or len(details) <= DETAILED else overview.blocks(OVERVIEW_WIDTH):
        console.print(rich_table(table))
    for note in document.summary.notes:
        _line(console, f"- {note}")


def brief(report: Report, console: Console) -> None:
    """Print the report's tables where all of them together are short, else what each study comes to."""
    tables = [each for each in report.documents if each.primary]
    with console.capture() as capture:
        for document in tables:
            show(document, console)
    if tables and capture.get().count("\n") <= ROOM:
        for document in tables:
            show(document, console)
        return
    for part in report.parts:
        _headlines(part, console)


def _headlines(part: Part, console: Console) -> None:
    """A study's name, what its documents come to, and their names."""
    if not part.documents:
        return
    groups = {id(cell.group): cell.group for document in part.documents for cell in document.cells}
    runs = {run for group in groups.values() if group is not None for run in group.runs["id"].tolist()}
    console.print(f"{part.title}: {len(runs):,} runs", markup=False, highlight=False, style="bold")
    for document in part.documents:
        for headline in document.summary.headlines if document.summary else ():
            _line(console, f"- {headline}")
    names = [document.name for document in part.documents if document.summary is not None]
    _line(console, f"- tables: {', '.join(names)}")


def closing(report: Report, shipped: dict[str, int], out: Path, console: Console) -> None:
    """Print what is not in the report's tables, whose the runs are, and where everything lies."""
    if report.unrun:
        _line(console, f"Nothing run yet of {_listed(report.unrun)}")
    if report.elsewhere:
        _line(console, f"In no study's table: {_listed(report.elsewhere)}")
    if shipped:
        bundles = _listed([f"{name}: {runs:,}" for name, runs in sorted(shipped.items())])
        runs = sum(shipped.values())
        _line(console, f"Shipped results: {runs:,} runs ({bundles}); --own leaves them out")
    figures = [figure for part in report.parts for figure in part.figures]
    console.print()
    if figures:
        _path(console, f"Figure: {out / figures[0].name}.png")
    size = (out / PAGE).stat().st_size / 1e6
    _path(console, f"Report: {out / PAGE} ({size:.1f} MB, all in one file that opens offline)")
    files = f"{len(report.paths) - 1} files with its tables, figures, statistics and cells.csv"
    _line(console, f"Beside it: {files}; --print NAME prints a table")


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - LISTED
    return "; ".join(names[:LISTED]) + (f"; and {rest} more" if rest > 0 else "")


def _line(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False)


def _path(console: Console, text: str) -> None:
    """A line that is not folded: people copy paths."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
