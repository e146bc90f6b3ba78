"""Tables as data: what every renderer gets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bench.report.cells import Cell


@dataclass(frozen=True)
class Entry:
    """The text of a table's entry and its place in the column: 1 best, 2 second, 0 neither."""

    text: str
    place: int = 0


NOWHERE = Entry("")
"""An entry where a row has no place in a column, so that no number can be missing there."""


@dataclass(frozen=True)
class Table:
    """A table: ``groups`` are headings over ``columns`` as (heading, number of columns)."""

    name: str
    title: str
    stub: str
    groups: tuple[tuple[str, int], ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Entry, ...]], ...]

    def blocks(self, width: int) -> Iterator[Table]:
        """The table cut between groups into tables of at most ``width`` columns (or one group), without the
        rows that have no place in any of these.
        """
        first, taken, start, begin = 0, 0, 0, 0
        for number, (_, span) in enumerate(self.groups):
            if taken and taken + span > width:
                yield self._cut(start, first, begin, number)
                start, begin, taken = first, number, 0
            first += span
            taken += span
        yield self._cut(start, first, begin, len(self.groups))

    def _cut(self, start: int, stop: int, first_group: int, last_group: int) -> Table:
        return replace(
            self,
            groups=self.groups[first_group:last_group],
            columns=self.columns[start:stop],
            rows=tuple(
                (label, entries[start:stop])
                for label, entries in self.rows
                if any(entry is not NOWHERE for entry in entries[start:stop])
            ),
        )


@dataclass(frozen=True, eq=False)
class Summary:
    """What a terminal shows: the columns with runs, each in ``details`` and all in ``overview``.

    Without an overview the details are printed however many they are. ``headlines`` say the most important
    of it in a line each.
    """

    details: tuple[Table, ...]
    overview: Table | None
    notes: tuple[str, ...]
    headlines: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Document:
    """Everything about one table of a paper: its views, its caption and notes, and its cells.

    ``views`` are written to Markdown and LaTeX, ``details`` (one a column with runs) to Markdown.
    ``summary`` is None where nothing was run. ``primary`` are the cells that verdicts rest on;
    ``cells`` are those under every reading.
    """

    name: str
    title: str
    caption: tuple[str, ...]
    notes: tuple[str, ...]
    views: tuple[Table, ...]
    details: tuple[Table, ...]
    summary: Summary | None
    primary: tuple[Cell, ...]
    cells: tuple[Cell, ...]
