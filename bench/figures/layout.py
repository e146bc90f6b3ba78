"""Figures: panels with a caption, each with its axes and what is around them, laid out on a page.

A panel's frame is all that it shows, and what is written beside it as CSV.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from bench.figures import style
from bench.figures.style import POINT, in_two_lines, wrapped_lines

OUTLINED: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.6}
"""How markers stand out from what is below them."""

ACCURACY = "Test accuracy (%)"


class Margins(NamedTuple):
    """Inches around a panel's axes, for its title, ticks and labels."""

    left: float = 0.58
    right: float = 0.15
    bottom: float = 0.48
    top: float = 0.3


@dataclass(frozen=True)
class Mark:
    """How the rows of one ``method`` in a panel's frame are drawn; ``key`` names it where there are many."""

    method: str
    label: str
    look: style.Look
    key: bool = False


@dataclass(frozen=True, eq=False)
class Panel(ABC):
    """A frame, and how what it calls ``method`` is drawn; the panels of a figure are all of one kind.

    ``across`` is how many stand side by side.
    """

    title: str
    data: pd.DataFrame = field(repr=False)
    marks: tuple[Mark, ...] = ()
    across: ClassVar[int] = 2
    SIZE: ClassVar[tuple[float, float]] = (2.3, 1.75)
    MARGINS: ClassVar[Margins] = Margins()

    @property
    def inches(self) -> tuple[float, float]:
        """Width and height of the axes."""
        return self.SIZE

    @property
    def margins(self) -> Margins:
        """What the axes have around them."""
        return self.MARGINS

    @property
    def is_crowded(self) -> bool:
        """Whether the panel needs a figure to itself."""
        return False

    @cached_property
    def parts(self) -> dict[str, pd.DataFrame]:
        """The rows of every method."""
        return {str(method): rows for method, rows in self.data.groupby("method", sort=False)}

    @abstractmethod
    def draw(self, axes: Axes) -> None:
        """Draw everything but the title and the legend."""

    def legend(self) -> Iterable[Line2D]:
        """Entries of the figure's legend; of equal labels the first is shown."""
        return ()

    def draw_on(self, canvas: Canvas, left: float, bottom: float) -> None:
        """Draw the panel where its axes begin, so many inches from the canvas's lower left corner."""
        axes = add_axes(canvas, left, bottom, *self.inches)
        room = self.inches[0] + self.margins.right
        text, size = in_two_lines(self.title, room, mpl.rcParams["axes.titlesize"])
        axes.set_title(text, fontsize=size, linespacing=1.0)
        self.draw(axes)


def axis_of(data: pd.DataFrame, room: float, min_room: float) -> tuple[float, float]:
    """Ends of an axis that shows all means, and as much of their intervals as ``room`` times the range of the
    means, at ``min_room`` so many points.
    """
    means = data["mean"]
    room = max(min_room, room * (means.max() - means.min()))
    low = max(data["low"].fillna(means).min(), means.min() - room)
    high = min(data["high"].fillna(means).max(), means.max() + room)
    return float(low), float(high)


def add_axes(canvas: Canvas, left: float, bottom: float, width: float, height: float) -> Axes:
    """Axes at these inches, of these inches."""
    x_size, y_size = canvas.get_size_inches()
    return canvas.add_axes((left / x_size, bottom / y_size, width / x_size, height / y_size))


def round_numbers(low: float, high: float, count: int) -> list[float]:
    """At most so many round numbers between two."""
    ticks = MaxNLocator(count, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(tick) for tick in ticks if low <= tick <= high]


DPI = 150
TITLE = 10.5
"""Points of a figure's title."""

LINE = 1.35
"""Height of a line of text, in its font size."""

EDGE = 0.06
"""Inches around a figure."""


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure of one or more panels of the same kind.

    ``title`` says in a line what is shown; what a reader has to know beyond stands in the ``caption``.
    """

    name: str
    caption: str
    panels: Sequence[Panel]
    title: str = ""


def draw(figure: Figure) -> Canvas:
    """The figure, ready to be saved. Every panel knows its size, so nothing is laid out twice."""
    panels_a_row = min(len(figure.panels), figure.panels[0].across)
    row_count = math.ceil(len(figure.panels) / panels_a_row)
    handles: dict[str, Line2D] = {}
    for panel in figure.panels:
        for handle in panel.legend():
            handles.setdefault(str(handle.get_label()), handle)
    margins = Margins(*np.max([panel.margins for panel in figure.panels], axis=0).tolist())
    heights = [
        max(panel.inches[1] for panel in figure.panels[row * panels_a_row : (row + 1) * panels_a_row])
        for row in range(row_count)
    ]
    column = max(panel.inches[0] for panel in figure.panels) + margins.left + margins.right
    width = column * panels_a_row + 2 * EDGE
    title = wrapped_lines(figure.title, width - 2 * EDGE, TITLE)
    key = style.RC["legend.fontsize"] * LINE * 1.6 * POINT if handles else 0.0
    head = len(title) * TITLE * LINE * POINT
    height = head + key + sum(heights) + row_count * (margins.top + margins.bottom) + 2 * EDGE
    with mpl.rc_context(rc=style.RC):
        canvas = Canvas(figsize=(width, height))
        top = height - EDGE
        canvas.text(EDGE / width, top / height, "\n".join(title), fontsize=TITLE, va="top")
        if handles:
            canvas.legend(
                handles=list(handles.values()),
                loc="upper left",
                bbox_to_anchor=(EDGE / width, (top - head) / height),
                borderaxespad=0.2,
                borderpad=0.0,
                ncols=len(handles),
                columnspacing=1.5,
                frameon=False,
            )
        top -= head + key
        for row, high in enumerate(heights):
            for place, panel in enumerate(figure.panels[row * panels_a_row : (row + 1) * panels_a_row]):
                bottom = top - margins.top - panel.inches[1]
                panel.draw_on(canvas, EDGE + place * column + margins.left, bottom)
            top -= high + margins.top + margins.bottom
    return canvas
