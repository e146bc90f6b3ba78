"""What commands print: tables that end where the terminal does, and lines that are not folded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    right: Collection[str] = (),
    whole: Collection[str] = (),
    title: str | None = None,
) -> Table:
    """A table of texts. Columns named ``right`` are set to the right, those named ``whole`` keep one line."""
    grid = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title=title, title_justify="left")
    for column in columns:
        justify: Literal["left", "right"] = "right" if column in right else "left"
        grid.add_column(column, justify=justify, overflow="fold", no_wrap=column in whole)
    for row in rows:
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
