"""Pairs of points: two numbers a line, side by side, such as received and trained."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from bench.report import style
from bench.report.panels.panel import ACCURACY, WHERE, WIDTH, Panel, number, where
from bench.report.settings import Column

Value = tuple[float, float | None]
"""Mean and standard deviation, None where there is no deviation."""


@dataclass(frozen=True, eq=False)
class Pair:
    """A line of a panel: accuracies in percent, drawn filled and open; ``n`` seeds of the filled one.

    ``name`` is the line's in the CSV, where several lines show the same method.
    """

    method: str
    name: str
    label: str
    n: int
    filled: Value | None
    open: Value | None


@dataclass(frozen=True, eq=False)
class PairPanel(Panel):
    """Pairs of one column. ``filled`` and ``open`` name the two kinds of point; ``joined`` by a line."""

    title: str
    column: Column
    pairs: tuple[Pair, ...]
    filled: str
    open: str
    joined: bool

    @property
    def size(self) -> tuple[float, float]:
        """A pair a line."""
        return WIDTH + 0.8, max(2.0, 0.9 + 0.27 * len(self.pairs))

    @property
    def header(self) -> tuple[str, ...]:
        """One row a line."""
        names = (f"{name}_{what}" for name in (self.filled, self.open) for what in ("mean", "std"))
        return (*WHERE, "n", *names)

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Both numbers of every line; empty where there is none."""
        for pair in self.pairs:
            values = (number(value) for found in (pair.filled, pair.open) for value in found or (None, None))
            yield (*where(self.column, pair.name), str(pair.n), *values)

    def draw(self, axes: Axes) -> None:
        """Points with one standard deviation; the axis need not start at zero, and says where it does."""
        axes.set_title(self.title)
        places = np.arange(len(self.pairs))[::-1]
        for place, pair in zip(places, self.pairs, strict=True):
            look = style.of(pair.method)
            if self.joined and pair.filled and pair.open:
                ends = [pair.filled[0], pair.open[0]]
                axes.plot(ends, [place, place], color=look.colour, linewidth=1.6, alpha=0.5, zorder=2)
            for value, inside, size in ((pair.open, "white", 8.5), (pair.filled, look.colour, 5.5)):
                if value:
                    axes.errorbar(
                        value[0],
                        place,
                        xerr=value[1],
                        color=look.colour,
                        marker=look.marker,
                        markerfacecolor=inside,
                        markersize=size,
                        elinewidth=1.0,
                        capsize=2,
                        zorder=3,
                    )
        axes.set_yticks(places, [pair.label for pair in self.pairs])
        axes.set_ylim(-0.6, len(self.pairs) - 0.4)
        values = [value for pair in self.pairs for value in (pair.filled, pair.open) if value]
        start = math.floor((min(mean - (std or 0.0) for mean, std in values) - 1) / 5) * 5
        axes.set_xlim(left=max(0, start))
        axes.set_xlabel(f"{ACCURACY}, from {max(0, start)}")

    def legend(self) -> Iterator[Line2D]:
        """What filled and open points are, if there are some."""
        used = (any(pair.filled for pair in self.pairs), any(pair.open for pair in self.pairs))
        kinds = ((self.filled, "0.2", 5.5), (self.open, "white", 8.5))
        for (name, inside, size), some in zip(kinds, used, strict=True):
            if some:
                yield Line2D(
                    [],
                    [],
                    color="0.2",
                    linestyle="none",
                    marker="o",
                    markerfacecolor=inside,
                    markersize=size,
                    label=name.capitalize(),
                )
