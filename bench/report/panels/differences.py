"""Sorted differences of clients to a baseline: who is hurt, and by how much."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from bench.report import style
from bench.report.panels.panel import WHERE, Panel, draw_line, handle, number, where
from bench.report.settings import Column


@dataclass(frozen=True, eq=False)
class Sorted:
    """A method's difference in points by client, ascending, with the clients' names in that order."""

    method: str
    label: str
    clients: tuple[str, ...]
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DifferencePanel(Panel):
    """Sorted clients of one column against ``baseline`` (its title)."""

    title: str
    column: Column
    curves: tuple[Sorted, ...]
    baseline: str

    @property
    def header(self) -> tuple[str, ...]:
        """One row a client, from the most hurt one on."""
        return (*WHERE, "client", "difference")

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Every client of every method, in points."""
        for curve in self.curves:
            for client, value in zip(curve.clients, curve.values, strict=True):
                yield (*where(self.column, curve.method), client, number(float(value)))

    def draw(self, axes: Axes) -> None:
        """A line a method; below zero are the clients that are better off alone."""
        axes.set_title(self.title)
        axes.axhline(0.0, color="0.2", linewidth=1.0, zorder=2)
        for curve in self.curves:
            look = style.of(curve.method)
            count = len(curve.values)
            draw_line(axes, 100.0 * (np.arange(count) + 0.5) / count, curve.values, look)
        axes.set_xlim(0, 100)
        axes.set_xlabel("Clients, most hurt first (%)")
        axes.set_ylabel(f"Points above {self.baseline}")

    def legend(self) -> Iterator[Line2D]:
        """One entry a method."""
        for curve in self.curves:
            yield handle(curve.label, style.of(curve.method))
