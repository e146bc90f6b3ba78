"""Tables as data: what every renderer gets, of which it makes its own text."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil, isnan, nan
from typing import Any, ClassVar, TypeVar

import pandas as pd

from bench.studies.wording import signed, with_std

LABEL_WIDTH = 20
"""Characters of a row's label that stay on one line of a terminal."""

RowKey = TypeVar("RowKey", bound=Hashable)
GroupKey = TypeVar("GroupKey", bound=Hashable)


@dataclass(frozen=True)
class Value:
    """A measured number, and what stands beside it; numbers that are missing are NaN.

    ``n`` is the number of seeds where they are others than most of the column has (0: they are not), ``rank``
    1 for the best of its column, 2 for the second best, 0 for all others. ``published`` and ``published_std``
    are as printed, ``status`` what is printed in place of them; ``difference`` is measured minus published,
    ``low`` to ``high`` its 90 % interval. Without a ``verdict`` nothing stands beside the number. ``hint``
    is what else there is to say: seeds, interval, why there is no grade.
    """

    mean: float
    std: float = nan
    digits: int = 2
    n: int = 0
    rank: int = 0
    published: float = nan
    published_std: float = nan
    status: str = ""
    difference: float = nan
    low: float = nan
    high: float = nan
    verdict: str = ""
    hint: str = ""

    @property
    def text(self) -> str:
        """``74.32 ± 0.42``, with the number of seeds where they are others; ``-`` without a number."""
        return " ".join(filter(None, (self.mean_text, self.std_text)))

    @property
    def mean_text(self) -> str:
        """The number without its standard deviation; ``-`` without a number."""
        if isnan(self.mean):
            return "-"
        number = f"{self.mean:.{self.digits}f}"
        return f"{number} (n={self.n})" if self.n and isnan(self.std) else number

    @property
    def std_text(self) -> str:
        """What follows the number where it has a standard deviation."""
        if isnan(self.std):
            return ""
        return f"± {self.std:.{self.digits}f}" + (f" (n={self.n})" if self.n else "")

    @property
    def published_text(self) -> str:
        """What is printed: numbers or a status; ``-`` where nothing is."""
        if isnan(self.published):
            return self.status or "-"
        return with_std(self.published, self.published_std, self.digits)

    @property
    def difference_text(self) -> str:
        """``+1.23``; empty where there is no difference."""
        return "" if isnan(self.difference) else signed(self.difference, self.digits)

    @property
    def interval_text(self) -> str:
        """``[+0.12, +1.30]``; empty where there is no interval."""
        return "" if isnan(self.low) else f"[{self.low:+.2f}, {self.high:+.2f}]"


@dataclass(frozen=True)
class Entry:
    """A text in a table, and its place in the column: 1 best, 2 second, 0 neither."""

    text: str
    place: int = 0
    verdict: ClassVar[str] = ""

    @property
    def rank(self) -> int:
        """Its place, by the name that it has for a value."""
        return self.place


Row = tuple[str, tuple[Value | Entry | None, ...]]
"""A row's label, and what stands in its columns; None where the row has no place in a column."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table. The ``body`` has values, entries and None: a row a label, which its index is named after, and
    a column a pair of a heading over several columns, which may be empty, and the column's own name.

    ``references`` are labels of rows that compete with no other; a rule parts every ``together`` rows;
    ``has_marks`` where entries end in the mark of a verdict.
    """

    name: str
    title: str
    body: pd.DataFrame
    references: frozenset[str] = frozenset()
    together: int = 0
    has_marks: bool = False

    @property
    def stub(self) -> str:
        """What the rows are."""
        return str(self.body.index.name)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Headings over the columns with the number of their columns."""
        headings = groupby(self.body.columns.get_level_values(0))
        return [(str(heading), len(list(columns))) for heading, columns in headings]

    @property
    def columns(self) -> list[str]:
        """The columns' own names."""
        return [str(name) for name in self.body.columns.get_level_values(1)]

    @property
    def headings(self) -> list[str]:
        """The columns' names with those of their groups."""
        return [", ".join(filter(None, names)) for names in self.body.columns]

    @property
    def rows(self) -> list[Row]:
        """The rows by label."""
        return [(str(label), tuple(values)) for label, *values in self.body.itertuples(name=None)]

    def by_group(self) -> Iterator[Table]:
        """A table for each group of columns."""
        start = 0
        for _, span in self.groups:
            yield self.part(start, start + span)
            start += span

    def blocks(self, width: int) -> Iterator[Table]:
        """Tables of at most ``width`` columns: cut between groups, a wider group in equal parts."""
        spans = []
        for _, span in self.groups:
            pieces = ceil(span / width)
            spans += [(span + piece) // pieces for piece in range(pieces)]
        start = stop = 0
        for span in spans:
            if stop + span - start > width:
                yield self.part(start, stop)
                start = stop
            stop += span
        yield self.part(start, stop)

    def part(self, start: int, stop: int) -> Table:
        """Some of the columns, without the rows that have no place in any of them."""
        return replace(self, body=self.body.iloc[:, start:stop].dropna(how="all"))


def table_of(
    name: str,
    title: str,
    stub: str,
    heads: Iterable[tuple[str, str]],
    rows: Iterable[tuple[str, Sequence[Value | Entry | None]]],
    **rest: Any,
) -> Table:
    """A table of labels with what stands in their columns; ``heads`` are the columns' groups and names."""
    all_rows = list(rows)
    body = pd.DataFrame(
        [list(values) for _, values in all_rows],
        index=pd.Index([label for label, _ in all_rows], name=stub, dtype=object),
        columns=pd.MultiIndex.from_tuples(list(heads), names=["group", "column"]),
        dtype=object,
    )
    return Table(name, title, body, **rest)


def listing(
    name: str,
    title: str,
    stub: str,
    rows: Iterable[tuple[str, Mapping[Any, Value | Entry | str]]],
    **rest: Any,
) -> Table:
    """A table without headings over its columns, from labels with what stands in each of the columns."""
    all_rows = list(rows)
    columns = [("", str(column)) for column in (all_rows[0][1] if all_rows else ())]
    entries = [
        (label, [Entry(entry) if isinstance(entry, str) else entry for entry in row.values()])
        for label, row in all_rows
    ]
    return table_of(name, title, stub, columns, entries, **rest)


def pivot(
    name: str,
    title: str,
    stub: str,
    rows: Mapping[RowKey, str],
    groups: Mapping[GroupKey, tuple[str, tuple[str, ...]]],
    entries: Mapping[tuple[RowKey, GroupKey], Iterable[Value | Entry]],
    filler: Entry | None = None,
) -> Table:
    """A table of entries by row and group of columns; ``filler`` stands where there are none.

    ``rows`` are labels, ``groups`` headings with the columns below them.
    """
    heads = [(heading, column) for heading, columns in groups.values() for column in columns]
    labelled = [
        (
            label,
            [
                entry
                for group, (_, columns) in groups.items()
                for entry in entries.get((row, group), (filler,) * len(columns))
            ],
        )
        for row, label in rows.items()
    ]
    return table_of(name, title, stub, heads, labelled)
