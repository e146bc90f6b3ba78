"""Panels of figures: a frame, and how each kind of panel draws it on matplotlib's axes.

A panel's frame is all that it shows, and what is written beside its figure as CSV.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from bench.figures import style

ACCURACY = "Test accuracy (%)"

LONG = 12
"""Points of a curve above which its axis need not show the first ones."""

ROW_LABEL = 42
"""Signs of a line of a row's label."""

ACROSS = 5
"""Small drawings side by side."""

CELL_LABEL = 19
"""Signs of a line of a small drawing's label."""

CELL_WIDTH, CELL_HEIGHT = 1.15, 1.45
"""Width and height of the place of a small drawing, in those of the drawing."""


@dataclass(frozen=True)
class Mark:
    """How the rows of one ``method`` in a panel's frame are drawn."""

    method: str
    label: str
    look: style.Look


@dataclass(frozen=True, eq=False)
class Panel:
    """A frame, and how it is drawn: by ``KINDS[kind]``, the rows of a ``method`` as its mark says.

    Curves show the column ``y`` along the column ``x``, and a horizontal line at ``level``.
    """

    kind: str
    title: str
    data: pd.DataFrame = field(repr=False)
    marks: tuple[Mark, ...] = ()
    x: str = "round"
    x_label: str = "Round"
    y: str = "mean"
    y_label: str = ACCURACY
    level: float | None = None

    @cached_property
    def curves(self) -> dict[str, NDArray[np.float64]]:
        """Every method's curve ``[4, points]``: x, y, the interval. What is measured once stays so."""
        curves = {}
        for method, rows in self.data.groupby("method", sort=False):
            curve = rows.reindex(columns=[self.x, self.y, "low", "high"]).to_numpy(float).T
            if curve.shape[1] == 1:
                curve = np.repeat(curve, 2, axis=1)
                curve[0] = self.data[self.x].min(), self.data[self.x].max()
            curves[str(method)] = curve[:, curve[0].argsort(kind="stable")]
        return curves

    @property
    def y_limits(self) -> tuple[float, float]:
        """The ends of the axis of curves: all values with their intervals. Long curves count without their
        first tenth and their intervals, and without what is farther from the middle four fifths of the values
        than these are wide.
        """
        x, *values = np.concatenate(list(self.curves.values()), axis=1)
        low, high = np.nanmin(values), np.nanmax(values)
        if self.level is None and len(x) > LONG * len(self.curves):
            late = values[0][x > 0.1 * x.max()]
            first, last = np.nanquantile(late, [0.1, 0.9])
            low, high = max(late.min(), 2 * first - last), min(late.max(), 2 * last - first)
        room = 0.06 * (high - low) or 1.0
        return float(low - room), float(high + room)


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure of one or more panels of the same kind.

    ``title`` says in a line what is shown; what a reader has to know beyond stands in the ``caption``.
    """

    name: str
    caption: str
    panels: Sequence[Panel]
    title: str = ""


def draw_curves(axes: Axes, panel: Panel) -> None:
    """Draw the curves with their intervals."""
    if panel.level is not None:
        axes.axhline(panel.level, color="0.3", linewidth=0.8)
    for mark in panel.marks:
        look = mark.look
        x, y, low, high = panel.curves[mark.method]
        if not np.isnan(low).all():
            axes.fill_between(x, low, high, color=look.colour, alpha=0.18, linewidth=0)
        (line,) = axes.plot(x, y, look.marker, color=look.colour, label=mark.label)
        line.set(linestyle=look.dashes, markevery=max(1, len(x) // 5), zorder=3)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.set_xlim(0, 1.01 * float(panel.data[panel.x].max()))
    axes.set_ylim(panel.y_limits)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)


def draw_multiples(axes: Axes, panel: Panel) -> None:
    """Draw every curve before all others in grey, each in a cell with the same limits.

    The cells are unit squares in one pair of axes: most of the time that a figure takes goes into making
    axes.
    """
    right, (bottom, top) = float(panel.data[panel.x].max()), panel.y_limits

    def in_cell(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Points in the unit square; what is above or below runs along its edge."""
        return np.stack([x / right, np.clip((y - bottom) / (top - bottom), 0, 1)], axis=1)

    ticks = MaxNLocator(3, steps=[1, 2, 5, 10])
    x_ticks = [tick for tick in ticks.tick_values(0, right) if 0 <= tick <= right]
    y_ticks = [tick for tick in ticks.tick_values(bottom, top) if bottom <= tick <= top]
    rulers = [in_cell(np.array([0, right]), np.array([tick, tick])) for tick in y_ticks]
    write = partial(axes.text, size=6.5, clip_on=True, in_layout=False)
    gap = [[np.nan, np.nan]]
    grey = np.concatenate([part for x, y, *_ in panel.curves.values() for part in (in_cell(x, y), gap)])
    behind, curves, bands, grids, frames = [], [], [], [], []
    for number, mark in enumerate(panel.marks):
        corner = CELL_WIDTH * (number % ACROSS), -CELL_HEIGHT * (number // ACROSS)
        x, y, low, high = panel.curves[mark.method]
        has_ends = ~np.isnan(low)
        ends = in_cell(x, low)[has_ends], in_cell(x, high)[has_ends][::-1]
        behind.append(grey + corner)
        curves.append(in_cell(x, y) + corner)
        bands.append(np.concatenate(ends) + corner)
        grids += [ruler + corner for ruler in rulers]
        frames.append(np.array([(0, 1), (0, 0), (1, 0)]) + corner)
        if panel.level is not None:
            frames.append(in_cell(np.array([0, right]), np.array([panel.level] * 2)) + corner)
        x_end, y_end = corner
        write(x_end, y_end + 1, textwrap.fill(mark.label, CELL_LABEL), va="bottom")
        if panel.y == "mean":
            write(x_end + 1, y_end + 1, f"{y[-1]:.1f}", ha="right", va="bottom")
        if number % ACROSS == 0:
            for tick, ruler in zip(y_ticks, rulers, strict=True):
                write(-0.03, y_end + ruler[0, 1], f"{tick:g}", ha="right", va="center")
        if number + ACROSS >= len(panel.marks):
            for tick in x_ticks:
                write(x_end + tick / right, y_end - 0.05, f"{tick:g}", ha="center", va="top")
    colours = [mark.look.colour for mark in panel.marks]
    dashes = [mark.look.dashes for mark in panel.marks]
    axes.add_collection(LineCollection(grids, colors="0.92", linewidths=0.6))
    axes.plot(*np.concatenate(behind).T, color=style.OTHERS, linewidth=0.7)
    axes.add_collection(PolyCollection(bands, facecolors=colours, alpha=0.18))
    axes.add_collection(LineCollection(curves, colors=colours, linestyles=dashes, linewidths=1.4))
    axes.add_collection(LineCollection(frames, colors="0.4", linewidths=0.7, clip_on=False))
    rows = math.ceil(len(panel.marks) / ACROSS)
    axes.spines[:].set_visible(False)
    axes.set(xticks=[], yticks=[], xlabel=panel.x_label, ylabel=panel.y_label)
    axes.set_xlim(-0.2, CELL_WIDTH * (ACROSS - 1) + 1.07)
    axes.set_ylim(-CELL_HEIGHT * (rows - 1) - 0.25, 1.4)


def _with_rows(axes: Axes, panel: Panel) -> pd.DataFrame:
    """The panel's frame with the ``row`` and ``colour`` of every method, whose name stands at the left."""
    axes.set_yticks([])  # a text a row is drawn much faster than a tick with its lines
    axes.spines["left"].set_visible(False)
    axes.set_ylim(0.4 - len(panel.marks), 0.6)
    for number, mark in enumerate(panel.marks):
        _text_beside(axes, -0.02, -number, textwrap.fill(mark.label, ROW_LABEL), "right")
    rows = {mark.method: -number for number, mark in enumerate(panel.marks)}
    colours = {mark.method: mark.look.colour for mark in panel.marks}
    methods = panel.data["method"]
    return panel.data.assign(row=methods.map(rows), colour=methods.map(colours))


def _text_beside(axes: Axes, x: float, row: int, text: str, side: str) -> None:
    """A text in a row; ``x`` is in widths of the axes."""
    transform = axes.get_yaxis_transform()
    axes.text(x, row, text, ha=side, va="center_baseline", size=7, transform=transform)


def draw_pairs(axes: Axes, panel: Panel) -> None:
    """Draw means with their intervals, measured ones filled and published ones open."""
    data = _with_rows(axes, panel)
    axes.hlines(data["row"], data["low"], data["high"], colors=data["colour"].tolist(), linewidth=0.9)
    for kind, size in (("measured", 18), ("published", 36)):
        part = data[data["kind"] == kind]
        if len(part):
            colours = part["colour"].tolist()
            faces = colours if kind == "measured" else "none"
            marks = axes.scatter(part["mean"], part["row"], size, faces, edgecolors=colours, zorder=3)
            marks.set_label(kind.capitalize())
    low, high = axes.get_xlim()
    axes.set_xlim(max(low, 0.0), min(high, 100.0))
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.set_xlabel(ACCURACY)


def draw_ranks(axes: Axes, panel: Panel) -> None:
    """Draw mean ranks, best first, with their intervals and groups of ties."""
    data = _with_rows(axes, panel)
    colours = data["colour"].tolist()
    axes.hlines(data["row"], data["low"], data["high"], colors=colours, linewidth=1.8)
    axes.scatter(data["mean_rank"], data["row"], 36, colours, edgecolors="white", linewidths=0.6, zorder=3)
    for row in data.to_dict("records"):
        note = f"group {row['group']}" if pd.notna(row["group"]) else ""
        _text_beside(axes, 1.01, row["row"], f"{row['mean_rank']:.1f}   {note}", "left")
    axes.set_xlabel("Mean rank (1 is the best)")


class Kind(NamedTuple):
    """How a kind of panel is drawn, and its inches with all that is around its axes.

    ``per_mark`` are inches of height that each method adds; ``across`` is how many stand side by side.
    """

    draw: Callable[[Axes, Panel], None]
    width: float
    height: float
    per_mark: float = 0.0
    across: int = 2


KINDS = {
    "curves": Kind(draw_curves, 3.7, 2.6),
    "multiples": Kind(draw_multiples, 7.4, 0.9, 1.0 / ACROSS, 1),
    "pairs": Kind(draw_pairs, 4.0, 0.8, 0.19),
    "ranks": Kind(draw_ranks, 6.5, 0.6, 0.22, 1),
}
