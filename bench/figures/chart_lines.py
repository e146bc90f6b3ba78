"""What figures of an experiment have in common: the lines of a column with numbers, their rows and words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from bench.figures import style
from bench.figures.layout import Figure
from bench.figures.panels import Mark, Panel
from bench.statistics.summary import with_intervals
from bench.studies.cells import Cell, Cells
from bench.studies.experiment import Line
from bench.studies.groups import Aggregate, Group
from bench.studies.measures import Measure
from bench.studies.settings import Column
from bench.studies.study import Study
from bench.studies.wording import AVERAGES, RULES, STAGES, ranges


class LineRuns(NamedTuple):
    """A line of a column with numbers: its cell at the first point, its runs, and how it is drawn."""

    cell: Cell
    measured: Aggregate
    group: Group
    plain: Mark

    @property
    def method(self) -> str:
        """The line's method."""
        return self.cell.method

    def mark(self, keys: Iterable[str] = ()) -> Mark:
        """How the line is drawn; its name stands in every drawing if it is among ``keys``."""
        return replace(self.plain, key=self.method in keys)

    def rows(self, **values: Any) -> pd.DataFrame:
        """Rows of a panel's frame: where the line is measured, and these values."""
        return rows_of(self.cell.column, self.method, **values)


P = TypeVar("P", bound=Panel)


Parts = list[tuple[pd.DataFrame, Mark]]
"""The rows that a panel shows, line by line, and how each line is drawn."""


def panel_of(parts: Parts, kind: Callable[..., P], title: str, *arguments: Any, **options: Any) -> P | None:
    """A panel of all rows, means with their intervals; None where there are none."""
    if not parts:
        return None
    rows = pd.concat([rows for rows, _ in parts], ignore_index=True)
    data = with_intervals(rows.astype({"std": float})) if "std" in rows else rows
    return kind(title, data, tuple(mark for _, mark in parts), *arguments, **options)


def by_column(cells: Cells, panel: Callable[[Column], P | None]) -> list[P]:
    """The panel of every column that has one."""
    return [drawn_panel for drawn_panel in map(panel, cells.columns) if drawn_panel is not None]


def rows_of(column: Column, method: str, **values: Any) -> pd.DataFrame:
    """Rows of a panel's frame: where a method is measured, and values, one a row or the same for all."""
    is_table = any(np.ndim(value) for value in values.values())
    return pd.DataFrame({**asdict(column), "method": method, **values}, index=None if is_table else [0])


def lines_with_numbers(cells: Cells, column: Column, only_competing: bool = False) -> list[LineRuns]:
    """Lines of a column with numbers under the usual settings, each run once; without the references that
    train nothing where ``only_competing``.
    """
    lines = []
    for line in cells.lines:
        cell = cells.at(column, line)
        if only_competing and line.method in cells.study.references:
            continue
        if cell and cell.measured and cell.group and not (line.setting or line.reads):
            mark = Mark(line.method, cells.title(line), mark_of(cells, line).look)
            lines.append(LineRuns(cell, cell.measured, cell.group, mark))
    return lines


def key_methods(study: Study, lines: Iterable[LineRuns]) -> frozenset[str]:
    """The methods that matter among some: the one that the study proposes, its baseline, and the best."""
    competitors = [line for line in lines if line.method not in study.references]
    best_method = max(competitors, key=lambda line: line.measured.mean).method if competitors else ""
    return frozenset((study.proposed, study.baseline, best_method))


def mark_of(cells: Cells, line: Line) -> Mark:
    """How a line is drawn and named in a figure's frame: as its method or, where several lines have one
    method, by its title and in a look of its own.
    """
    title = cells.title(line)
    if cells.by_method or cells.experiment.main:
        return Mark(line.method, title, style.look_of(line.method))
    return Mark(title, title, style.nth(cells.lines.index(line)))


def reading_of(study: Study, measure: Measure | None = None, average: bool = True) -> str:
    """Stage and rule of a measure, or of the primary comparison, and how clients are averaged."""
    reading = (measure and measure.reading) or study.primary
    text = f"{STAGES[reading.stage]}, {RULES[reading.rule]} (stage {reading.stage}, rule {reading.rule})"
    return f"{text}, {AVERAGES[study.average]}" if average else text


def figure_of(
    cells: Cells, kind: str, heading: str, caption: str, panels: Iterable[Panel | None]
) -> list[Figure]:
    """The figure of that kind; none where there is no panel. The caption gets the seeds."""
    drawn_panels = [panel for panel in panels if panel is not None]
    if not drawn_panels:
        return []
    name = f"{cells.study.name}_{cells.experiment.name}_{kind}"
    seeds = {seed for cell in cells if cell.group and not cell.line.setting for seed in cell.group.seeds}
    return [Figure(name, f"{caption} Seeds: {ranges(seeds)}.", drawn_panels, heading)]


def heading_of(quantity: str, panels: Sequence[Panel]) -> str:
    """What curves show, their seeds and what is drawn around them."""
    counts = {int(n) for panel in panels for n in panel.data["n"] if n}
    if not counts:
        return quantity
    low, high = min(counts), max(counts)
    seeds = f"{low} to {high} seeds" if high > low else f"{high} seed{'s' if high > 1 else ''}"
    return f"{quantity}: mean of {seeds}{interval_words(panels)}"


def interval_words(panels: Iterable[Panel]) -> str:
    """What a title says of the intervals of measured means, where there are some."""
    has_interval = any((panel.data["low"].notna() & (panel.data["n"] > 0)).any() for panel in panels)
    return ", 95 % interval" if has_interval else ""
