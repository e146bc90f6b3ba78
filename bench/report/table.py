"""Tables as data: what every renderer gets."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, TypeVar

LABEL_WIDTH = 20
"""Characters of a row's label that stay on one line of a terminal."""

RowKey = TypeVar("RowKey", bound=Hashable)
GroupKey = TypeVar("GroupKey", bound=Hashable)


@dataclass(frozen=True)
class SideNote:
    """What stands under a measured number: the published one, measured minus published, the 90 % interval of
    that, and the verdict.

    ``hint`` is what else there is to say: seeds, intervals, why there is no grade.
    """

    published: str = "-"
    difference: str = ""
    verdict: str = ""
    interval: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Entry:
    """The text of a table's entry and its place in the column: 1 best, 2 second, 0 neither."""

    text: str
    place: int = 0
    beside: SideNote | None = None


NOWHERE = Entry("")
"""An entry where a row has no place in a column, so that no number can be missing there."""

Row = tuple[str, tuple[Entry, ...]]


@dataclass(frozen=True)
class Table:
    """A table: ``groups`` are headings over ``columns`` as (heading, number of columns).

    ``references`` are labels of rows that compete with no other; a rule parts every ``together`` rows.
    """

    name: str
    title: str
    stub: str
    groups: tuple[tuple[str, int], ...]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    references: frozenset[str] = frozenset()
    together: int = 0

    def blocks(self, width: int) -> Iterator[Table]:
        """The table cut into tables of at most ``width`` columns: between groups, a wider group in equal
        parts. Rows that have no place in any of a block's columns are left out of it.
        """
        parts: list[tuple[str, int]] = []
        for heading, span in self.groups:
            pieces = ceil(span / width)
            parts += [(heading, (span + piece) // pieces) for piece in range(pieces)]
        start = 0
        block: list[tuple[str, int]] = []
        for part in parts:
            width_so_far = sum(span for _, span in block)
            if block and width_so_far + part[1] > width:
                yield self._cut(start, block)
                start, block = start + width_so_far, []
            block.append(part)
        yield self._cut(start, block)

    def by_group(self) -> Iterator[Table]:
        """A table for each group of columns."""
        start = 0
        for heading, span in self.groups:
            yield self._cut(start, [(heading, span)])
            start += span

    def _cut(self, start: int, groups: list[tuple[str, int]]) -> Table:
        columns = slice(start, start + sum(span for _, span in groups))
        rows = [(label, entries[columns]) for label, entries in self.rows]
        return replace(
            self,
            groups=tuple(groups),
            columns=self.columns[columns],
            rows=tuple(row for row in rows if any(entry is not NOWHERE for entry in row[1])),
        )

    def column_table(self, number: int) -> Table:
        """One column, with what stands beside its numbers in columns of their own."""
        rows = []
        for label, entries in self.rows:
            entry = entries[number]
            if entry is not NOWHERE:
                side_note = entry.beside or SideNote()
                texts: dict[str, Entry | str] = {
                    "Measured": replace(entry, beside=None),
                    "Published": side_note.published,
                    "Diff.": side_note.difference or "-",
                    "Verdict": side_note.verdict or "-",
                }
                rows.append((label, texts))
        column_table = listing(self.name, self.headings[number], self.stub, rows)
        return replace(column_table, references=self.references, together=self.together)

    @property
    def headings(self) -> list[str]:
        """The columns' names with those of their groups."""
        groups = [heading for heading, span in self.groups for _ in range(span)]
        return [", ".join(filter(None, names)) for names in zip(groups, self.columns, strict=True)]


def listing(name: str, title: str, stub: str, rows: Iterable[tuple[str, Mapping[Any, Entry | str]]]) -> Table:
    """A table without headings over its columns, from labels with what stands in each of the columns."""
    all_rows = list(rows)
    columns = tuple(all_rows[0][1]) if all_rows else ()
    entries = [
        (label, tuple(Entry(entry) if isinstance(entry, str) else entry for entry in row.values()))
        for label, row in all_rows
    ]
    return Table(name, title, stub, (("", len(columns)),), columns, tuple(entries))


def pivot(
    name: str,
    title: str,
    stub: str,
    rows: Mapping[RowKey, str],
    groups: Mapping[GroupKey, tuple[str, tuple[str, ...]]],
    entries: Mapping[tuple[RowKey, GroupKey], Iterable[Entry]],
    filler: Entry = NOWHERE,
) -> Table:
    """A table of entries by row and group of columns; ``filler`` stands where there are none.

    ``rows`` are labels, ``groups`` headings with the columns below them.
    """
    return Table(
        name,
        title,
        stub,
        tuple((heading, len(columns)) for heading, columns in groups.values()),
        tuple(column for _, columns in groups.values() for column in columns),
        tuple(
            (
                label,
                tuple(
                    entry
                    for group, (_, columns) in groups.items()
                    for entry in entries.get((row, group), (filler,) * len(columns))
                ),
            )
            for row, label in rows.items()
        ),
    )
