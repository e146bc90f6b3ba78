"""Accuracy by the number of clients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from bench.report import style
from bench.report.panels.panel import ACCURACY, WHERE, Panel, handle, number, where
from bench.report.settings import Column

APART = 0.012
"""Share of the axis by which neighbouring methods are set apart, so that error bars can be told."""


@dataclass(frozen=True, eq=False)
class ByCount:
    """A method's seeds, mean and std (percent; None for one seed) by column."""

    method: str
    label: str
    points: tuple[tuple[Column, int, float, float | None], ...]


@dataclass(frozen=True, eq=False)
class CountPanel(Panel):
    """Methods of one data set and scenario at several numbers of clients."""

    title: str
    lines: tuple[ByCount, ...]

    @property
    def header(self) -> tuple[str, ...]:
        """One row a method and number of clients."""
        return (*WHERE, "n", "mean", "std")

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Every point, in percent."""
        for line in self.lines:
            for column, n, mean, std in line.points:
                yield (*where(column, line.method), str(n), number(mean), number(std))

    def draw(self, axes: Axes) -> None:
        """A line a method with one standard deviation at each number of clients."""
        axes.set_title(self.title)
        counts = sorted({column.clients for line in self.lines for column, *_ in line.points})
        span = counts[-1] - counts[0]
        for place, line in enumerate(self.lines):
            look = style.of(line.method)
            aside = APART * span * (place - (len(self.lines) - 1) / 2)
            stds = [std for *_, std in line.points]
            axes.errorbar(
                [column.clients + aside for column, *_ in line.points],
                [mean for _, _, mean, _ in line.points],
                yerr=[std or 0.0 for std in stds] if any(stds) else None,
                color=look.colour,
                linestyle=look.dashes,
                linewidth=1.2,
                marker=look.marker,
                markersize=5,
                markeredgecolor="white",
                markeredgewidth=0.5,
                elinewidth=0.9,
                capsize=2,
            )
        axes.set_xticks(counts)
        axes.set_xlim(counts[0] - 0.12 * span, counts[-1] + 0.12 * span)
        axes.set_xlabel("Clients")
        axes.set_ylabel(ACCURACY)

    def legend(self) -> Iterator[Line2D]:
        """One entry a method."""
        for line in self.lines:
            yield handle(line.label, style.of(line.method))
