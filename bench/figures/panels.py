"""Panels of figures: a frame, and how each kind of panel draws it on matplotlib's axes.

A panel's frame is all that it shows, and what is written beside its figure as CSV.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from bench.figures import style

ACCURACY = "Test accuracy (%)"

FEW = 6
"""Curves that can be told apart in one drawing."""

LONG = 12
"""Points of a curve above which its axis need not show the first ones."""

ROW_LABEL = 42
"""Signs of a line of a row's label."""

CELL_WIDTH, CELL_HEIGHT = 1.12, 1.45
"""Width and height of the place of a small drawing, in those of the drawing."""


@dataclass(frozen=True)
class Mark:
    """How the rows of one ``method`` in a panel's frame are drawn; ``key`` names it where there are many."""

    method: str
    label: str
    look: style.Look
    key: bool = False


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
    def parts(self) -> dict[str, pd.DataFrame]:
        """The rows of every method."""
        return {str(method): rows for method, rows in self.data.groupby("method", sort=False)}

    @cached_property
    def curves(self) -> dict[str, NDArray[np.float64]]:
        """Every method's curve ``[4, points]``: x, y, the interval. What is measured once stays so."""
        curves = {}
        for method, rows in self.parts.items():
            curve = rows.reindex(columns=[self.x, self.y, "low", "high"]).to_numpy(float).T
            if curve.shape[1] == 1:
                curve = curve.repeat(2, axis=1)
                curve[0] = self.data[self.x].min(), self.data[self.x].max()
            curves[method] = curve[:, curve[0].argsort(kind="stable")]
        return curves

    @property
    def is_crowded(self) -> bool:
        """Whether there are more curves than one drawing holds."""
        return self.kind == "curves" and len(self.marks) > FEW


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
    """Draw the curves with their intervals; of many the keys alone, before the others in grey."""
    shown = [mark for mark in panel.marks if mark.key or not panel.is_crowded]
    others = [panel.curves[mark.method][:2].T for mark in panel.marks if mark not in shown]
    axes.add_collection(LineCollection(others, colors=style.OTHERS, linewidths=0.7))
    if panel.level is not None:
        axes.axhline(panel.level, color="0.3", linewidth=0.8)
    for mark in shown:
        look = mark.look
        x, y, low, high = panel.curves[mark.method]
        if not np.isnan(low).all():
            axes.fill_between(x, low, high, color=look.colour, alpha=0.18, linewidth=0)
        (line,) = axes.plot(x, y, look.marker, color=look.colour, label=mark.label)
        line.set(linestyle=look.dashes, markevery=max(1, len(x) // 5), zorder=3)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.set_xlim(0, 1.01 * float(panel.data[panel.x].max()))
    axes.set_ylim(_y_limits(panel))
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)


def _y_limits(panel: Panel) -> tuple[float, float]:
    """The axis's ends: all values with their intervals. Long curves count without their first tenth and their
    intervals, and without what is farther from the middle four fifths of the values than these are wide.
    """
    x, *values = np.concatenate(list(panel.curves.values()), axis=1)
    low, high = np.nanmin(values), np.nanmax(values)
    if panel.level is None and len(x) > LONG * len(panel.curves):
        late = values[0][x > 0.1 * x.max()]
        first, last = np.nanquantile(late, [0.1, 0.9])
        low, high = max(late.min(), 2 * first - last), min(late.max(), 2 * last - first)
    room = 0.06 * (high - low) or 1.0
    return float(low - room), float(high + room)


def draw_small_multiples(axes: Axes, panel: Panel, large: Axes, columns: int, titles: Sequence[str]) -> None:
    """Draw every curve before all others in grey, each in a cell with the limits of the ``large`` drawing.

    The cells are unit squares in one pair of axes: most of the time that a figure takes goes into making
    axes.
    """
    (left, right), (bottom, top) = large.get_xlim(), large.get_ylim()

    def in_cell(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Points in the unit square; what is above or below runs along its edge."""
        return np.stack([(x - left) / (right - left), np.clip((y - bottom) / (top - bottom), 0, 1)], axis=1)

    gap = [[np.nan, np.nan]]
    grey = np.concatenate([part for x, y, *_ in panel.curves.values() for part in (in_cell(x, y), gap)])
    behind, curves, bands, frames = [], [], [], []
    for number, mark in enumerate(panel.marks):
        corner = CELL_WIDTH * (number % columns), -CELL_HEIGHT * (number // columns)
        x, y, low, high = panel.curves[mark.method]
        has_ends = ~np.isnan(low)
        ends = in_cell(x, low)[has_ends], in_cell(x, high)[has_ends][::-1]
        behind.append(grey + corner)
        curves.append(in_cell(x, y) + corner)
        bands.append(np.concatenate(ends) + corner)
        frames.append(np.array([(0, 1), (0, 0), (1, 0)]) + corner)
        if panel.level is not None:
            frames.append(in_cell(np.array([left, right]), np.array([panel.level] * 2)) + corner)
        left_end, top_end = corner[0], corner[1] + 1
        axes.text(left_end, top_end, titles[number], va="bottom", size=7, clip_on=True)
        if panel.y == "mean":
            axes.text(left_end + 1, top_end, f"{y[-1]:.1f}", ha="right", size=6.5, clip_on=True)
    colours = [mark.look.colour for mark in panel.marks]
    dashes = [mark.look.dashes for mark in panel.marks]
    axes.plot(*np.concatenate(behind).T, color=style.OTHERS, linewidth=0.7)
    axes.add_collection(PolyCollection(bands, facecolors=colours, alpha=0.18))
    axes.add_collection(LineCollection(curves, colors=colours, linestyles=dashes, linewidths=1.4))
    axes.add_collection(LineCollection(frames, colors="0.4", linewidths=0.7, clip_on=False))
    rows = math.ceil(len(panel.marks) / columns)
    axes.set_axis_off()
    axes.set_xlim(0, CELL_WIDTH * (columns - 1) + 1)
    axes.set_ylim(-CELL_HEIGHT * (rows - 1), CELL_HEIGHT)


def _with_rows(axes: Axes, panel: Panel) -> pd.DataFrame:
    """The panel's frame with the ``row`` and ``colour`` of every method, whose name stands at the left."""
    axes.set_yticks([])  # a text a row is drawn much faster than a tick with its lines
    axes.spines["left"].set_visible(False)
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
            axes.scatter(part["mean"], part["row"], size, faces, edgecolors=colours, zorder=3)
            face = "0.2" if kind == "measured" else "none"
            axes.scatter([], [], size, face, edgecolors="0.2", label=kind.capitalize())
    low, high = axes.get_xlim()
    axes.set_xlim(max(low, 0.0), min(high, 100.0))
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.set_xlabel(ACCURACY)


def draw_ranks(axes: Axes, panel: Panel) -> None:
    """Draw mean ranks, best first, with their intervals; each ``group`` of ties stands on a band.

    A method that has ranks in fewer ``tasks`` than others says in how many, at the right.
    """
    data = _with_rows(axes, panel)
    colours = data["colour"].tolist()
    axes.hlines(data["row"], data["low"], data["high"], colors=colours, linewidth=1.8)
    axes.scatter(
        data["mean_rank"], data["row"], 36, data["colour"], edgecolors="white", linewidths=0.6, zorder=3
    )
    most = data["tasks"].max()
    groups = data["group"].fillna(0).astype(int)
    is_grey = (groups != groups.shift()).cumsum() % 2 == 1
    for row, group, grey in zip(data.to_dict("records"), groups, is_grey, strict=True):
        if grey:
            axes.axhspan(row["row"] - 0.5, row["row"] + 0.5, color="0.955", linewidth=0, zorder=0)
        note = f"group {group}" if group else ""
        if row["tasks"] < most:
            note = f"{row['tasks']} of {most} tasks"
        _text_beside(axes, 1.01, row["row"], f"{row['mean_rank']:.1f}   {note}", "left")
    axes.set_xlabel("Mean rank (1 is the best)")


def draw_heat(axes: Axes, panel: Panel) -> None:
    """Draw the matrix of the weights with which models were mixed, darker for larger ones."""
    matrix = panel.data.pivot(index="client", columns="from", values="weight").to_numpy(float)
    axes.imshow(matrix, cmap="cividis_r", interpolation="nearest", aspect="auto")
    axes.grid(visible=False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlabel(f"From client (light {matrix.min():.3f}, dark {matrix.max():.3f})")
    axes.set_ylabel("Into client")


class Kind(NamedTuple):
    """How a kind of panel is drawn, and its inches with all that is around its axes.

    ``per_row`` are inches of height that each method adds; ``across`` is how many stand side by side.
    """

    draw: Callable[[Axes, Panel], None]
    width: float
    height: float
    per_row: float = 0.0
    across: int = 2


KINDS = {
    "curves": Kind(draw_curves, 3.7, 2.6),
    "pairs": Kind(draw_pairs, 4.0, 0.8, 0.19),
    "ranks": Kind(draw_ranks, 6.5, 0.6, 0.22, 1),
    "heat": Kind(draw_heat, 2.6, 2.4, 0.0, 3),
}
