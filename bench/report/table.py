"""Tables as frames of cells, of which every renderer makes its own text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    verdict          without one nothing stands beside the number
    hint             what else there is to say: seeds, interval, why there is no grade
    """

    mean_text: str
    std_text: str = ""
    rank: int = 0
    published_text: str = "-"
    difference_text: str = ""
    verdict: str = ""
    hint: str = ""

    @property
    def text(self) -> str:
        """``74.32 ± 0.42`` with the note; ``-`` without a number."""
        return f"{self.mean_text} {self.std_text}".rstrip()


def measured(mean: float, std: float = nan, digits: int = 2, note: str = "", rank: int = 0) -> Value:
    """The value of a number, which may be missing."""
    deviation = "" if isnan(std) else f"± {std:.{digits}f}"
    return Value(number(mean, f".{digits}f"), f"{deviation} {note}".strip(), rank)


@dataclass(frozen=True, eq=False)
class Table:
    """A table. The ``body`` has a ``Value`` for every label and column, nothing where a row has no place in a
    column. Its index is named after what the rows are. Its columns are pairs of a heading over several
    columns, which may be empty, and a name.

    ``references`` are labels of rows that compete with no other.
    """

    name: str
    title: str
    body: pd.DataFrame
    references: frozenset[str] = frozenset()

    @property
    def stub(self) -> str:
        """What the rows are."""
        return str(self.body.index.name)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Headings over the columns with the number of their columns."""
        headings = self.body.columns.get_level_values(0)
        return [(heading, len(list(part))) for heading, part in groupby(headings)]

    @property
    def columns(self) -> list[str]:
        """The columns' own names."""
        return [str(name) for name in self.body.columns.get_level_values(1)]

    @property
    def rows(self) -> list[tuple[str, list[Value]]]:
        """The values by label; an empty one where a row has no place in a column."""
        empty = Value("")
        rows = zip(self.body.index, self.body.to_numpy(object), strict=True)
        return [
            (str(label), [value if isinstance(value, Value) else empty for value in values])
            for label, values in rows
        ]

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
        cells = [Value(number(value, form)) for value in values]
        texts["", str(column)] = pd.Series(cells, rows.index, dtype=object)
    return Table(name, title, pd.DataFrame(texts))


def pivot(rows: pd.DataFrame, stub: str, labels: Sequence[str], order: Sequence[str]) -> pd.DataFrame:
    """The body of a table from rows that have a ``cell`` each, and ``heading`` and ``name`` of its column.

    Its rows are in the order of the columns ``labels``, of which the last names a row, its columns in the
    ``order`` of such columns.
    """
    body = rows.pivot(index=labels, columns=[*order, "heading", "name"], values="cell")
    body = body.sort_index().sort_index(axis=1)
    return body.droplevel(list(labels[:-1])).droplevel(list(order), axis=1).rename_axis(stub)
