"""What figures of an experiment have in common: the lines of a column with numbers, their rows and words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.figures import style
from bench.figures.panels import Figure, Mark, Panel
from bench.grids.experiment import Line
from bench.grids.grid import PARTITION_SEED
from bench.statistics.summary import with_intervals
from bench.studies.cells import Cell, Cells
from bench.studies.groups import Aggregate, Group
from bench.studies.measures import CellReading, Measure
from bench.studies.settings import PER_SEED, Column
from bench.studies.study import Study
from bench.studies.wording import AVERAGES, ranges, reading_text

PAGE = 6
"""Panels of a figure; of more there is a figure a data set."""

SMALL_DRAWINGS = (
    " Below, every method has a drawing of its own, with its last value above it and the others in grey."
)


class LineRuns(NamedTuple):
    """A line of a column with numbers: its cell at the first point, its runs, how it is drawn, and whether it
    ``competes``, as all do but the references that train nothing.
    """

    cell: Cell
    measured: Aggregate
    group: Group
    plain: Mark
    competes: bool

    @property
    def method(self) -> str:
        """The line's method."""
        return self.cell.method

    def mark(self, keys: Container[Line] = ()) -> Mark:
        """How the line is drawn; its name stands in every drawing if it is among ``keys``."""
        return replace(self.plain, key=self.cell.line in keys)

    def rows(self, **values: Any) -> pd.DataFrame:
        """Rows of a panel's frame: where the line is measured, and these values."""
        return rows_of(self.cell.column, self.plain.method, **values)


Parts = list[tuple[pd.DataFrame, Mark]]
"""The rows that a panel shows, line by line, and how each line is drawn."""


def panel_of(parts: Parts, kind: str, title: str, **options: Any) -> Panel | None:
    """A panel of all rows, means with their intervals; None where there are none."""
    if not parts:
        return None
    rows = pd.concat([rows for rows, _ in parts], ignore_index=True)
    data = with_intervals(rows.astype({"std": float})) if "std" in rows else rows
    return Panel(kind, title, data, tuple(mark for _, mark in parts), options)


def panels_of(
    cells: Cells,
    kind: str,
    rows: Callable[[LineRuns], pd.DataFrame | None],
    is_shown: Callable[[LineRuns], bool] = lambda line: True,
    **options: Any,
) -> list[Panel]:
    """A panel a column, with the rows of every line that is shown there and has some."""
    panels = []
    for column in cells.columns:
        lines = [line for line in lines_with_numbers(cells, column) if is_shown(line)]
        keys = key_lines(cells.study, {line.cell.line: line.measured.mean for line in lines})
        parts = [(line_rows, line.mark(keys)) for line in lines if (line_rows := rows(line)) is not None]
        panels.append(panel_of(parts, kind, cells.study.column_title(column), **options))
    return [panel for panel in panels if panel is not None]


def rows_of(column: Column, name: str, **values: Any) -> pd.DataFrame:
    """Rows of a panel's frame: where a line of that name (see ``marks_of``) is measured, and values, one a
    row or the same for all.
    """
    is_table = any(np.ndim(value) for value in values.values())
    return pd.DataFrame({**asdict(column), "method": name, **values}, index=None if is_table else [0])


def mean_rows(column: Column, name: str, axis: str, means: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """Rows of means, each with its place on the ``axis``, its number of runs and its deviation."""
    places, n, mean, std = zip(*means, strict=True)
    return rows_of(column, name, **{axis: places, "n": n, "mean": mean, "std": np.array(std, np.float64)})


def lines_with_numbers(cells: Cells, column: Column) -> list[LineRuns]:
    """Lines of a column with numbers under the usual settings, each run once."""
    lines = []
    for line, mark in marks_of(cells).items():
        cell = cells.at(column, line)
        if cell and cell.measured and cell.group and not (line.setting or line.reads):
            is_reference = line.method in cells.study.references
            lines.append(LineRuns(cell, cell.measured, cell.group, mark, not is_reference))
    return lines


def by_client(rows: pd.DataFrame, group: Group) -> pd.Series[float]:
    """Column ``value`` by the client's name: mean over seeds, but apart where each has its partition."""
    if group.settings.get(PARTITION_SEED) == PER_SEED:
        # Client 3 of one partition has nothing to do with client 3 of another: keep them apart.
        pairs = zip(rows["client"], rows["seed"], strict=True)
        return rows["value"].set_axis([f"{client} of seed {seed}" for client, seed in pairs])
    means = rows.groupby("client")["value"].mean().sort_index()
    return means.set_axis([str(client) for client in means.index])


def curves_by_round(reading: CellReading) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rounds, parts of them where every epoch is evaluated, and test accuracies in percent
    ``[seeds, rounds]``; both are empty where no run keeps a curve.
    """
    settings = reading.group.settings
    curves = reading.results.curves(reading.group, reading.stage, reading.average)
    by_epoch = reading.stage == "trained" and settings.get("protocol.evaluate") == "epoch"
    per_round = int(settings["protocol.local_epochs"]) if by_epoch else 1
    return np.arange(1, curves.shape[1] + 1) / per_round, curves


def key_lines(study: Study, means: Mapping[Line, float]) -> frozenset[Line]:
    """The lines that matter among some, by their means: the best of all that compete, of those of the method
    that the study proposes, and of those of its baseline.
    """
    competitors = [line for line in means if line.ranked and line.method not in study.references]
    own_lines = ([line for line in means if line.method == name] for name in (study.proposed, study.baseline))
    return frozenset(max(group, key=means.__getitem__) for group in (competitors, *own_lines) if group)


def marks_of(cells: Cells) -> dict[Line, Mark]:
    """How every line is drawn and named in a figure's frame: as its method or, where several lines have one
    method, by its title.
    """
    counts = Counter(line.method for line in cells.lines if not line.setting)
    marks = {}
    for line, look in style.looks_of(cells.study, cells.lines).items():
        title = cells.study.line_title(line)
        is_alone = counts[line.method] == 1 and not line.setting
        marks[line] = Mark(line.method if is_alone else title, title, look)
    return {line: marks[line] for line in cells.lines}


def reading_of(study: Study, measure: Measure | None = None, average: bool = True) -> str:
    """Stage and rule of a measure, or of the primary comparison, and how clients are averaged."""
    text = reading_text((measure and measure.reading) or study.primary)
    return f"{text}, {AVERAGES[study.average]}" if average else text


def figure_of(cells: Cells, kind: str, quantity: str, caption: str, panels: Sequence[Panel]) -> list[Figure]:
    """The figure of that kind, in parts that fit a page; none where there is no panel. The title of a part
    says of which experiment and quantity it is and what is in it; the caption gets the seeds.
    """
    name = f"{cells.study.name}_{cells.experiment.name}_{kind}"
    seeds = {seed for cell in cells if cell.group and not cell.line.setting for seed in cell.group.seeds}
    return [
        Figure(
            f"{name}{ending}",
            f"{caption}{SMALL_DRAWINGS if is_crowded(page) else ''} Seeds: {ranges(seeds)}.",
            page,
            f"{cells.study.title}: {cells.experiment.title}. {heading_of(quantity, page)}",
        )
        for ending, page in _pages(panels)
    ]


def is_crowded(panels: Iterable[Panel]) -> bool:
    """Whether a panel has more lines than one drawing holds."""
    return any(panel.is_crowded for panel in panels)


def _pages(panels: Sequence[Panel]) -> Iterator[tuple[str, list[Panel]]]:
    """Panels that fit a page, and how a part with them is called: one a federation where its panels are
    crowded, one a data set where they are many. A part's name ends with what it shows.
    """
    is_split = len(panels) > 1 and is_crowded(panels)
    names = ["dataset", "scenario", "clients"] if is_split else ["dataset"] * (len(panels) > PAGE)
    parts: dict[str, list[Panel]] = {}
    for panel in panels:
        place = panel.data.iloc[0]
        ending = "".join(f"_{re.sub('[^A-Za-z0-9.-]+', '-', str(place[name]))}" for name in names)
        parts.setdefault(ending, []).append(panel)
    yield from parts.items()


def heading_of(quantity: str, panels: Sequence[Panel]) -> str:
    """What panels show: the quantity, of how many seeds, with intervals where some are drawn, and published
    values where there are some.
    """
    numbers = [panel.data["n"] for panel in panels if "n" in panel.data]
    if not numbers:
        return f"{quantity}: mean over seeds"
    counts = {int(n) for column in numbers for n in column if n}
    words = []
    if counts:
        low, high = min(counts), max(counts)
        seeds = f"{low} to {high} seeds" if high > low else f"{high} seed{'s' if high > 1 else ''}"
        words.append(f"mean of {seeds}" if high > 1 else seeds)
    tables = [panel.data for panel in panels if "low" in panel.data]
    if any((data["low"].notna() & (data["n"] > 0)).any() for data in tables):
        words.append("95 % interval")
    if any((column == 0).any() for column in numbers):
        is_beside = any((column == 0).any() and (column > 0).any() for column in numbers)
        words.append("beside published values" if is_beside else "published values where nothing was run")
    return f"{quantity}: {', '.join(words)}"
