"""Boxes: every client's accuracy by method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib import colors
from matplotlib.axes import Axes
from numpy.typing import NDArray

from bench.report import style
from bench.report.panels.panel import WHERE, WIDTH, Panel, number, where
from bench.report.settings import Column


@dataclass(frozen=True, eq=False)
class Box:
    """A method's accuracy by client, in percent."""

    method: str
    label: str
    clients: tuple[str, ...]
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BoxPanel(Panel):
    """Boxes of one column. ``mark`` is the baseline's median, drawn through all boxes."""

    title: str
    column: Column
    boxes: tuple[Box, ...]
    mark: float | None
    mark_label: str

    @property
    def size(self) -> tuple[float, float]:
        """A box a line."""
        return WIDTH + 0.8, max(2.0, 0.9 + 0.3 * len(self.boxes))

    @property
    def header(self) -> tuple[str, ...]:
        """One row a client."""
        return (*WHERE, "client", "value")

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Every client of every method, in percent."""
        for box in self.boxes:
            for client, value in zip(box.clients, box.values, strict=True):
                yield (*where(self.column, box.method), client, number(float(value)))

    def draw(self, axes: Axes) -> None:
        """Boxes with a point a client."""
        axes.set_title(self.title, pad=14 if self.mark is not None else None)
        places = np.arange(len(self.boxes))[::-1]
        if self.mark is not None:
            axes.axvline(self.mark, color="0.35", linestyle=(0, (4, 2)), linewidth=1.0, zorder=1)
            axes.annotate(
                self.mark_label,
                (self.mark, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(3, 2),
                textcoords="offset points",
                fontsize=7,
                color="0.35",
            )
        for place, box in zip(places, self.boxes, strict=True):
            look = style.of(box.method)
            axes.boxplot(
                box.values,
                positions=[place],
                orientation="horizontal",
                widths=0.62,
                whis=(0, 100),
                showfliers=False,
                patch_artist=True,
                boxprops={"facecolor": (*colors.to_rgb(look.colour), 0.22), "edgecolor": look.colour},
                medianprops={"color": "black", "linewidth": 1.6},
                whiskerprops={"color": look.colour},
                capprops={"color": look.colour},
                manage_ticks=False,
            )
            order = np.argsort(box.values, kind="stable")
            nudge = np.linspace(-0.18, 0.18, len(order)) if len(order) > 1 else np.zeros(1)
            axes.plot(
                box.values[order],
                place + nudge,
                linestyle="none",
                marker=look.marker,
                markersize=3.4,
                color=look.colour,
                markeredgecolor="white",
                markeredgewidth=0.3,
            )
        axes.set_yticks(places, [box.label for box in self.boxes])
        axes.set_ylim(-0.6, len(self.boxes) - 0.4)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("Test accuracy of a client (%)")
