"""What commands print: tables that end where the terminal does, and lines that are not folded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]] | Mapping[str, Iterable[Sequence[object]]],
    right: Collection[str] = (),
    whole: Collection[str] = (),
    title: str = "",
    gap: int = 2,
) -> Table:
    """A table of texts, ``gap`` blanks apart; rows by heading are set below their headings. Columns named
    ``right`` are set to the right, those named ``whole`` keep on one line.
    """
    grid = Table(box=SIMPLE_HEAD, padding=(0, gap - 1, 0, 0), pad_edge=False)
    grid.title, grid.title_justify = title or None, "left"
    for column in columns:
        grid.add_column(column, overflow="fold", no_wrap=column in whole)
        grid.columns[-1].justify = "right" if column in right else "left"
    groups = rows if isinstance(rows, Mapping) else {"": rows}
    for heading, members in groups.items():
        if heading:
            if grid.row_count:
                grid.add_row()
            grid.add_row(Text(heading, style="bold"))
        for row in members:
            grid.add_row(*("" if entry is None else Text(str(entry)) for entry in row))
    return grid


class Screen(Console):
    """A console whose reader may go away, as that of any output may: ``main`` says what that means."""

    def on_broken_pipe(self) -> None:
        """Raise what a plain ``print`` does."""
        raise BrokenPipeError


def console(width: int = 0, errors: bool = False) -> Console:
    """Standard output, or error: as wide as the terminal; where there is none of at least so many columns."""
    screen = Screen(stderr=errors, highlight=False)
    if not screen.is_terminal:
        screen.width = max(screen.width, width)
    return screen


def say(text: str, screen: Console | None = None) -> None:
    """Print a line as it is."""
    (screen or Screen()).print(text, markup=False, highlight=False, soft_wrap=True)
