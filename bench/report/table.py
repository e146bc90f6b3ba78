"""Tables as frames of cells, of which every renderer makes its own text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil, isnan, nan
from typing import Any

import pandas as pd

from bench.studies.wording import signed, with_std

LABEL_WIDTH = 20
"""Characters of a row's label that stay on one line of a terminal."""


@dataclass(frozen=True)
class Value:
    """A measured number, and what stands beside it; numbers that are missing are NaN.

    ``note`` follows the number, ``rank`` is 1 for the best of its column, 2 for the second best, 0 for all
    others. ``published`` and ``published_std`` are as printed, ``status`` what is printed in place of them;
    ``difference`` is measured minus published, ``low`` to ``high`` its 90 % interval. Without a ``verdict``
    nothing stands beside the number. ``hint`` is what else there is to say: seeds, interval, why there is no
    grade.
    """

    mean: float
    std: float = nan
    digits: int = 2
    note: str = ""
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
        """``74.32 ± 0.42`` with the note; ``-`` without a number."""
        return " ".join(filter(None, (self.mean_text, self.std_text)))

    @property
    def mean_text(self) -> str:
        """The number without its standard deviation; ``-`` without a number."""
        number = "-" if isnan(self.mean) else f"{self.mean:.{self.digits}f}"
        return f"{number} {self.note}" if self.note and isnan(self.std) else number

    @property
    def std_text(self) -> str:
        """What follows the number where it has a standard deviation."""
        return "" if isnan(self.std) else f"± {self.std:.{self.digits}f} {self.note}".rstrip()

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


Cell = Value | str | None
"""What stands in a table: a number, a text, or None where the row has no place in the column."""


def text_of(cell: Cell) -> str:
    """The text of a cell."""
    return cell.text if isinstance(cell, Value) else cell or ""


def rank_of(cell: Cell) -> int:
    """The place of a cell in its column: 1 best, 2 second, 0 neither."""
    return cell.rank if isinstance(cell, Value) else 0


@dataclass(frozen=True, eq=False)
class Table:
    """A table. The ``body`` has a ``Cell`` for every label and column. Its index is named after what the rows
    are. Its columns are names, or pairs of a heading over several columns and a name.

    ``references`` are labels of rows that compete with no other; a rule parts every ``together`` rows;
    ``has_marks`` where notes end in the mark of a verdict.
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
    def heads(self) -> list[tuple[str, str]]:
        """For every column the heading over it, which may be empty, and its name."""
        columns = self.body.columns
        is_grouped = columns.nlevels > 1
        return [(str(head[0]), str(head[1])) if is_grouped else ("", str(head)) for head in columns]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Headings over the columns with the number of their columns."""
        return [(heading, len(list(part))) for heading, part in groupby(heading for heading, _ in self.heads)]

    @property
    def columns(self) -> list[str]:
        """The columns' own names."""
        return [name for _, name in self.heads]

    @property
    def headings(self) -> list[str]:
        """The columns' names with those of their groups."""
        return [", ".join(filter(None, names)) for names in self.heads]

    @property
    def rows(self) -> list[tuple[str, tuple[Cell, ...]]]:
        """The cells by label."""
        cells = self.body.astype(object).where(self.body.notna(), None)
        return [(str(label), tuple(row)) for label, *row in cells.itertuples(name=None)]

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


def listing(
    name: str, title: str, stub: str, rows: Iterable[tuple[str, Mapping[Any, Cell]]], **rest: Any
) -> Table:
    """A table of labels with what stands in each of the columns."""
    all_rows = list(rows)
    labels = pd.Index([label for label, _ in all_rows], name=stub, dtype=object)
    return Table(name, title, pd.DataFrame([row for _, row in all_rows], labels, dtype=object), **rest)


def pivot(rows: pd.DataFrame, key: str, stub: str, columns: list[str]) -> pd.DataFrame:
    """The body of a table from rows that each have a ``cell``: by the ``key``, which ``stub`` names, and by
    columns, both in the order of the rows.
    """
    body = rows.pivot(index=key, columns=columns, values="cell").rename_axis(stub)
    heads = rows[columns].drop_duplicates().itertuples(index=False, name=None)
    return body.loc[rows[key].unique(), list(heads)]
