"""Output of commands: tables as wide as the terminal, and lines without wrapping."""

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
    """A table of texts. Columns in ``right`` are right-aligned. Columns in ``whole`` are not wrapped."""
    grid = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title=title, title_justify="left")
    for column in columns:
        justify: Literal["left", "right"] = "right" if column in right else "left"
        grid.add_column(column, justify=justify, overflow="fold", no_wrap=column in whole)
    for row in rows:
        grid.add_row(*("" if entry is None else Text(str(entry)) for entry in row))
    return grid


class Screen(Console):
    """A console that raises an error if its reader has ended; ``main`` handles the error."""

    def on_broken_pipe(self) -> None:
        """Raise the error that ``print`` raises."""
        raise BrokenPipeError


def console(width: int = 0, errors: bool = False) -> Console:
    """Standard output, or standard error if ``errors``. Without a terminal at least ``width`` characters."""
    screen = Screen(stderr=errors, highlight=False)
    if not screen.is_terminal:
        screen.width = max(screen.width, width)
    return screen


def say(text: str, screen: Console | None = None) -> None:
    """Print a line without markup or wrapping."""
    (screen or Screen()).print(text, markup=False, highlight=False, soft_wrap=True)
