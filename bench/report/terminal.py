"""A report on a terminal of 80 columns: what each study comes to, and where everything lies."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from bench.report.document import Document, Part, Report, Score
from bench.report.grades import GRADES, grade_look
from bench.report.table import LABEL_WIDTH, Cell, Table, rank_of
from bench.report.table import text_of as text_of_cell

WIDTH = 80
"""Columns of a terminal."""

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


def rich_table(table: Table) -> RichTable:
    """A table for rich; columns keep on one line where the terminal is wide enough."""
    groups = [heading for heading, span in table.groups for _ in range(span)]
    title = table.title
    if len(table.groups) == 1 < len(groups):  # said once, not over every column
        title, groups = f"{title}: {groups[0]}" if groups[0] else title, [""] * len(groups)
    rendered = RichTable(title=escape(title), title_justify="left", title_style="bold", padding=(0, 1))
    longest_label = max((len(label) for label, _ in table.rows), default=0)
    rendered.add_column(table.stub, overflow="fold", no_wrap=longest_label <= LABEL_WIDTH)
    for heading, column in zip(groups, table.columns, strict=True):
        rendered.add_column(
            escape(f"{heading}\n{column}" if heading else column), justify="right", overflow="fold"
        )
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
    notes = document.notes if (document.cells["runs"] > 0).any() else ()
    if not document.printed and not notes:
        _line(console, f"{document.full_title}: nothing run yet")
        return
    console.print(document.full_title, markup=False, highlight=False, style="bold")
    for table in document.printed:
        console.print(rich_table(table))
    if any(table.has_marks for table in document.printed):
        _line(console, ", ".join(f"{look.mark} {name}" for name, look in GRADES.items()))
    for note in notes:
        _line(console, f"- {note}")


def _is_short(document: Document) -> bool:
    lines = sum(len(table.rows) + 4 for table in document.printed) + len(document.notes)
    return bool(document.printed) and lines <= ROOM and not document.is_statistic


def brief(report: Report, console: Console) -> None:
    """Print what every study comes to, and its table where there is one short one."""
    for study in report.parts:
        console.print(Text.assemble((study.title, "bold"), (f"  {study.runs:,} runs", "dim")))
        headline = 2 if study.scores else 1
        _line(console, " ".join(study.sentences[:headline]))
        console.print(_scores(study))
        for sentence in study.sentences[headline:]:
            _line(console, sentence)
        short_documents = [document for document in study.documents if _is_short(document)]
        for document in short_documents if len(short_documents) == 1 else ():
            for table in document.printed:
                console.print(rich_table(table))
        console.print()


def _scores(study: Part) -> Group:
    """For each paper a bar of its measured values' verdicts, and their numbers."""
    return Group(*(part for score in study.scores for part in (_bar(score), _counts(score))))


def _bar(score: Score) -> Text:
    bar = Text()
    count_so_far, width_so_far = 0, 0
    for place, (name, count) in enumerate(score.counts, 1):
        count_so_far += count
        end = min(round(BAR * count_so_far / max(score.published, 1)), BAR - len(score.counts) + place)
        width = max(end - width_so_far, 1)
        width_so_far += width
        bar.append("█" * width, grade_look(name).terminal)
    bar.append("░" * max(BAR - width_so_far, 0), "dim")
    return bar.append(f" {score.title}: {score.measured} of {score.published}", "default")


def _counts(score: Score) -> Text:
    parts = [
        Text(f"{grade_look(name).symbol} {count} {name}", grade_look(name).terminal)
        for name, count in score.counts
    ]
    return Text("  ").join(parts) if parts else Text("none measured under its protocol", "dim")


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
