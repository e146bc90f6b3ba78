"""Tables as frames of cells, of which every renderer makes its own text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil, isnan, nan

import numpy as np
import pandas as pd
from pandas.api.types import is_float_dtype

from bench.studies.wording import number


@dataclass(frozen=True)
class Value:
    """A measured number and what stands beside it, as text.

    mean_text        the number; ``-`` without one
    std_text         its deviation and its note
    rank             1 for the best of its column, 2 for the second best, 0 for all others
    published_text   what is printed; ``-`` where nothing is
    difference_text  measured minus published
    interval_text    the 90 % interval of the difference
    verdict          without one nothing stands beside the number
    hint             what else there is to say: seeds, interval, why there is no grade
    """

    mean_text: str
    std_text: str = ""
    rank: int = 0
    published_text: str = "-"
    difference_text: str = ""
    interval_text: str = ""
    verdict: str = ""
    hint: str = ""

    @property
    def text(self) -> str:
        """``74.32 ± 0.42`` with the note; ``-`` without a number."""
        return f"{self.mean_text} {self.std_text}".rstrip()


def measured(
    mean: float, std: float = nan, digits: int = 2, note: str = "", rank: int = 0, **beside: str
) -> Value:
    """The value of a number, which may be missing."""
    deviation = "" if isnan(std) else f"± {std:.{digits}f}"
    return Value(number(mean, f".{digits}f"), f"{deviation} {note}".strip(), rank, **beside)


Cell = Value | str | None
"""What stands in a table: a number, a text, or None where the row has no place in the column."""


def text_of(cell: Cell) -> str:
    """The text of a cell; empty without one."""
    return cell.text if isinstance(cell, Value) else cell if isinstance(cell, str) else ""


def rank_of(cell: Cell) -> int:
    """The place of a cell in its column: 1 best, 2 second, 0 neither."""
    return cell.rank if isinstance(cell, Value) else 0


@dataclass(frozen=True, eq=False)
class Table:
    """A table. The ``body`` has a ``Cell`` for every label and column. Its index is named after what the rows
    are. Its columns are pairs of a heading over several columns, which may be empty, and a name.

    ``references`` are labels of rows that compete with no other; a rule parts every ``together`` rows.
    """

    name: str
    title: str
    body: pd.DataFrame
    references: frozenset[str] = frozenset()
    together: int = 0

    @property
    def stub(self) -> str:
        """What the rows are."""
        return str(self.body.index.name)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Headings over the columns with the number of their columns."""
        return [
            (heading, len(list(part))) for heading, part in groupby(self.body.columns.get_level_values(0))
        ]

    @property
    def columns(self) -> list[str]:
        """The columns' own names."""
        return [str(name) for name in self.body.columns.get_level_values(1)]

    @property
    def headings(self) -> list[str]:
        """The columns' names with the headings over them."""
        return [", ".join(filter(None, names)) for names in self.body.columns]

    @property
    def rows(self) -> list[tuple[str, tuple[Cell, ...]]]:
        """The cells by label."""
        cells = self.body.astype(object).where(self.body.notna(), None)
        return [(str(label), tuple(row)) for label, *row in cells.itertuples(name=None)]

    def by_group(self, width: int = 1000) -> list[Table]:
        """A table for each heading, a wide one in equal parts of at most ``width`` columns; each without the
        rows that have no place in it.
        """
        tables = []
        start = 0
        for _, span in self.groups:
            parts = np.array_split(np.arange(start, start + span), ceil(span / width))
            tables += [replace(self, body=self.body.iloc[:, part].dropna(how="all")) for part in parts]
            start += span
        return tables


def listing(name: str, title: str, rows: pd.DataFrame, forms: Mapping[str, str] | None = None) -> Table:
    """A frame as a table; its index has the labels. Floats have two decimals, or the form of their column."""
    texts = {}
    for column, values in rows.items():
        form = (forms or {}).get(str(column), ".2f" if is_float_dtype(values) else "")
        texts["", str(column)] = [each if isinstance(each, Value) else number(each, form) for each in values]
    return Table(name, title, pd.DataFrame(texts, rows.index, dtype=object))


def pivot(rows: pd.DataFrame, key: str, stub: str, columns: list[str]) -> pd.DataFrame:
    """The body of a table from rows that each have a ``cell``: by the ``key``, which ``stub`` names, and by
    columns, both in the order of the rows. The last two columns are heading and name.
    """
    body = rows.pivot(index=key, columns=columns, values="cell").rename_axis(stub)
    heads = rows[columns].drop_duplicates().itertuples(index=False, name=None)
    body = body.loc[rows[key].unique(), list(heads)]
    return body.droplevel(list(range(len(columns) - 2)), axis=1)
