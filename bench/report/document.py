"""Documents: the report's content for each table of a study's paper, as tables of values with verdicts.
Every renderer turns them into its own text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import ceil, isnan, nan
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_float_dtype

from bench.figures.panels import Figure
from bench.frames.graded_cells import COLUMNS, DocumentCells, Results, no_rows
from bench.frames.ranking import Ranking
from bench.studies.experiment import Experiment
from bench.studies.study import Study
from bench.studies.wording import number

MARKS = {
    "reproduced": "=",
    "compatible": "~",
    "uninformative": "o",
    "above": "^",
    "below": "v",
    "not comparable": "x",
}
"""Grade of a measured cell with a published value, best first -> mark in plain text."""

SYMBOLS = {
    "reproduced": "●",
    "compatible": "◐",
    "uninformative": "○",
    "above": "▲",
    "below": "▼",
    "not comparable": "≠",
    "holds": "●",
    "does not hold": "×",
    "can't be told": "○",
}
"""Grade, or answer to a claim -> symbol beside the word."""

COLOURS = {
    "reproduced": "green",
    "compatible": "blue",
    "uninformative": "yellow",
    "above": "magenta",
    "below": "red",
    "not comparable": "bright_black",
}
"""Grade -> a colour of the terminal's own palette, which is legible on the terminal's background."""

LIKE = {"holds": "reproduced", "does not hold": "below", "can't be told": "uninformative"}
"""Answer to a claim -> the grade whose colour it has."""


def symbol(name: str) -> str:
    """The symbol of a grade or an answer; a dash for other states, such as not run or failed."""
    return SYMBOLS.get(name, "–")


def colour(name: str) -> str:
    """The colour of a grade or an answer in a terminal; "" of others."""
    return COLOURS.get(LIKE.get(name, name), "")


def css_class(name: str) -> str:
    """The CSS class of a grade or an answer; ``assets/site.css`` defines its colours."""
    name = LIKE.get(name, name)
    return f"grade-{name}" if name in COLOURS and name != "not comparable" else "grade-none"


@dataclass(frozen=True)
class Value:
    """A measured number and its remarks, as text.

    mean_text        the number; ``-`` without one
    std_text         its deviation and its note
    rank             1 for the best of its column, 2 for the second best, 0 for all others
    published_text   the published value; ``-`` if there is none
    difference_text  measured minus published
    verdict          grade or state; if empty, the number stands alone
    hint             further facts: seeds, interval, the reason for a missing grade
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
    """The ``Value`` of a number; NaN means that it is missing."""
    deviation = "" if isnan(std) else f"± {std:.{digits}f}"
    return Value(number(mean, f".{digits}f"), f"{deviation} {note}".strip(), rank)


@dataclass(frozen=True, eq=False)
class Table:
    """A table. The ``body`` has a ``Value`` for every label and column, or NaN if a cell does not exist. The
    name of its index says what a row is. A column is a pair: a heading shared by several columns (may be
    empty), and a name.

    ``references`` are labels of rows that do not compete with others.
    """

    name: str
    title: str
    body: pd.DataFrame
    references: frozenset[str] = frozenset()

    @property
    def stub(self) -> str:
        """The word for a row, such as ``Method``."""
        return str(self.body.index.name)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The headings, each with the number of its columns."""
        headings = self.body.columns.get_level_values(0)
        return [(heading, len(list(part))) for heading, part in groupby(headings)]

    @property
    def columns(self) -> list[str]:
        """The names of the columns, without headings."""
        return [str(name) for name in self.body.columns.get_level_values(1)]

    @property
    def rows(self) -> list[tuple[str, list[Value]]]:
        """The rows: a label and its values. A cell that does not exist has an empty ``Value``."""
        empty = Value("")
        rows = zip(self.body.index, self.body.to_numpy(object), strict=True)
        return [
            (str(label), [value if isinstance(value, Value) else empty for value in values])
            for label, values in rows
        ]

    def by_group(self, width: int = 1000) -> list[Table]:
        """Split into a table for each heading. More than ``width`` columns are split into equal parts. Rows
        without any cell in a part are left out.
        """
        tables = []
        start = 0
        for _, span in self.groups:
            parts = np.array_split(np.arange(start, start + span), ceil(span / width))
            tables += [replace(self, body=self.body.iloc[:, part].dropna(how="all")) for part in parts]
            start += span
        return tables


def listing(name: str, title: str, rows: pd.DataFrame) -> Table:
    """Make a table from a frame. The frame's index has the labels. Floats get two decimals."""
    texts = {}
    for column, values in rows.items():
        form = ".2f" if is_float_dtype(values) else ""
        cells = [Value(number(value, form)) for value in values]
        texts["", str(column)] = pd.Series(cells, rows.index, dtype=object)
    return Table(name, title, pd.DataFrame(texts))


PLACE = ["column_number", "line_number", "line_object", "reads", "point_object", "done_seeds"]
"""Columns of the places frame that are joined to the cells of a document."""


def document_cells(
    study: Study, experiment: Experiment, cells: pd.DataFrame, results: Results
) -> DocumentCells:
    """Select the cells of an experiment and add columns.

    New columns are ``PLACE``, point_number (position among the experiment's points), is_run_column (the
    federation has runs), data_title (title of the data set) and federation (``10 clients``, after the
    scenario if there are several).
    """
    cells = cells[cells["document"] == experiment.name]
    cells = cells.join(results.places.set_index("place")[PLACE], on="place")
    federation = cells["clients"].map(lambda count: f"{count} client{'s' if count > 1 else ''}")
    has_scenarios = cells["scenario"].nunique() > 1
    cells = cells.assign(
        point_number=[experiment.points.index(point) for point in cells["point_object"]],
        is_run_column=(cells["runs"] > 0).groupby(cells["column_number"]).transform("any"),
        data_title=cells["dataset"].map(study.title_of),
        federation=cells["scenario"] + ", " + federation if has_scenarios else federation,
    )
    return DocumentCells(study, experiment, cells, results)


@dataclass(frozen=True, eq=False)
class Document:
    """Everything about one table of a study's paper. ``name`` and ``title`` are the same as in the study's
    definition.

    summary     the result in a sentence
    cells       rows of the cells frame, under every reading
    fine_print  text that the page shows folded
    records     name of a CSV file -> numbers behind the tables of a statistic
    verdicts    table of the lines with verdicts; None if methods do not compete or no cell is comparable
    """

    study: Study
    name: str
    title: str
    summary: str
    caption: tuple[str, ...]
    views: tuple[Table, ...]
    cells: pd.DataFrame = field(default_factory=lambda: no_rows(COLUMNS))
    is_statistic: bool = True
    notes: tuple[str, ...] = ()
    fine_print: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    records: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    verdicts: Table | None = None

    @property
    def key(self) -> str:
        """A name that is unique over all studies: ``fedsheafhn_table1``."""
        return f"{self.study.name}_{self.name}"

    @property
    def full_title(self) -> str:
        """The study's title and the document's title."""
        return f"{self.study.title}: {self.title}"

    @property
    def folder(self) -> PurePosixPath:
        """The folder of the document's files within the report: ``fedsheafhn/table1``."""
        return PurePosixPath(self.study.name, self.name)

    def stem(self, figure: Figure) -> PurePosixPath:
        """The path of a figure's files within the report, without the ending."""
        return self.folder / figure.name.removeprefix(f"{self.key}_")


class Part(NamedTuple):
    """A study in a report. ``runs`` are the runs behind its documents. ``counts`` has the number of published
    values by paper and verdict. ``ranking`` is None if no two methods can be ranked.
    """

    study: str
    title: str
    runs: pd.DataFrame
    sentences: list[str]
    counts: pd.DataFrame
    ranking: Ranking | None
    documents: list[Document]
