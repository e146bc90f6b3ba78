"""Documents: what a report says of each table of a study's paper, as tables of values with verdicts, of which
every renderer makes its own text.
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
"""The grades of a measured cell beside a published value, best first, and their marks in plain text."""

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
"""What stands beside the word of a grade, or of the answer that runs give to a claim."""

COLOURS = {
    "reproduced": "green",
    "compatible": "blue",
    "uninformative": "yellow",
    "above": "magenta",
    "below": "red",
    "not comparable": "bright_black",
}
"""A terminal's own colours, each legible on its own ground."""

LIKE = {"holds": "reproduced", "does not hold": "below", "can't be told": "uninformative"}
"""Answer to a claim -> the grade whose colour it has."""


def symbol(name: str) -> str:
    """That of a grade or an answer; a dash for a state, such as not run or failed."""
    return SYMBOLS.get(name, "–")


def colour(name: str) -> str:
    """The colour of a grade or an answer in a terminal; "" of others."""
    return COLOURS.get(LIKE.get(name, name), "")


def css_class(name: str) -> str:
    """The class of a grade or an answer, whose colours ``assets/site.css`` has."""
    name = LIKE.get(name, name)
    return f"grade-{name}" if name in COLOURS and name != "not comparable" else "grade-none"


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


def listing(name: str, title: str, rows: pd.DataFrame) -> Table:
    """A frame as a table; its index has the labels. Floats have two decimals."""
    texts = {}
    for column, values in rows.items():
        form = ".2f" if is_float_dtype(values) else ""
        cells = [Value(number(value, form)) for value in values]
        texts["", str(column)] = pd.Series(cells, rows.index, dtype=object)
    return Table(name, title, pd.DataFrame(texts))


PLACE = ["column_number", "line_number", "line_object", "reads", "point_object", "done_seeds"]
"""Columns of the places frame that the cells of a document have."""


def document_cells(
    study: Study, experiment: Experiment, cells: pd.DataFrame, results: Results
) -> DocumentCells:
    """The cells of an experiment among those of its study.

    To the columns of the cells frame come ``PLACE``, point_number (of the experiment's points),
    is_run_column (something was run on the federation), and what tables call a federation: data_title and
    federation (``10 clients``, with the scenario where several are there).
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
    """Everything about one table of a study's paper. ``name`` and ``title`` are those that it has in the
    study.

    summary     what there is to see, in a sentence
    cells       rows of the cells frame, under every reading
    fine_print  lines that are folded on the page
    records     the numbers behind the tables of a statistic, by the name of their CSV file
    verdicts    the lines that have verdicts, where methods compete with each other
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
        """Its name among those of all studies: ``fedsheafhn_table1``."""
        return f"{self.study.name}_{self.name}"

    @property
    def full_title(self) -> str:
        """Its title among those of all studies."""
        return f"{self.study.title}: {self.title}"

    @property
    def folder(self) -> PurePosixPath:
        """Where its files lie in the report: ``fedsheafhn/table1``."""
        return PurePosixPath(self.study.name, self.name)

    def stem(self, figure: Figure) -> PurePosixPath:
        """Where a figure's files lie in the report, whose endings it lacks."""
        return self.folder / figure.name.removeprefix(f"{self.key}_")


class Part(NamedTuple):
    """A study in a report. ``runs`` are those behind its documents, ``counts`` has the number of published
    values by paper and verdict, ``ranking`` is None where no two methods can be ranked.
    """

    study: str
    title: str
    runs: pd.DataFrame
    sentences: list[str]
    counts: pd.DataFrame
    ranking: Ranking | None
    documents: list[Document]
