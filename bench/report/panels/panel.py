"""What every kind of panel has: a title, the numbers behind it, and its drawing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from bench.report import style
from bench.report.settings import Column

WIDTH, HEIGHT = 4.6, 3.3
"""Inches of a panel."""

MARKERS = 10
"""Markers along a line."""

WHERE = ("dataset", "scenario", "clients", "method")
"""First columns of the numbers behind a panel of one federation."""

ACCURACY = "Test accuracy (%)"


def where(column: Column, method: str) -> tuple[str, ...]:
    """The values of ``WHERE``."""
    return column.dataset, column.scenario, str(column.clients), method


def number(value: float | None) -> str:
    """A number of the CSV; empty where there is none."""
    return "" if value is None or value != value else f"{value:.4f}"


class Panel(ABC):
    """One drawing of a figure; the panels of a figure are all of one kind.

    ``across`` is how many stand side by side.
    """

    title: str
    across: ClassVar[int] = 2

    @property
    def size(self) -> tuple[float, float]:
        """Inches, without the legend."""
        return WIDTH, HEIGHT

    @property
    @abstractmethod
    def header(self) -> tuple[str, ...]:
        """Names of the columns of ``rows``."""

    @abstractmethod
    def rows(self) -> Iterator[tuple[str, ...]]:
        """The numbers, in the units of the axes."""

    @abstractmethod
    def draw(self, axes: Axes) -> None:
        """Draw everything but the legend, the title included."""

    def legend(self) -> Iterable[Line2D]:
        """Entries of the figure's legend; of equal labels the first is shown."""
        return ()


def draw_line(axes: Axes, x: NDArray[np.float64], y: NDArray[np.float64], look: style.Look) -> None:
    """A method's line, with some markers along it that neighbouring lines have elsewhere."""
    step = max(1, len(y) // MARKERS)
    axes.plot(
        x,
        y,
        color=look.colour,
        linestyle=look.dashes,
        linewidth=1.4,
        marker=look.marker,
        markersize=4.5,
        markeredgecolor="white",
        markeredgewidth=0.5,
        markevery=(int(look.offset * step), step),
        zorder=3,
    )


def handle(label: str, look: style.Look, line: bool = True, marker: bool = True) -> Line2D:
    """A legend's entry for a method."""
    return Line2D(
        [],
        [],
        color=look.colour,
        linestyle=look.dashes if line else "none",
        linewidth=1.4 if marker else 1.1,
        marker=look.marker if marker else "",
        markersize=4.5 if line else 6,
        label=label,
    )
