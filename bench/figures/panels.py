"""Figures: their data, and the functions that draw each kind of panel on matplotlib's axes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from bench.figures import style

ACCURACY = "Test accuracy (%)"

LONG = 12
"""If curves have more points on average, the axis may leave out the first ones."""

ROW_LABEL = 42
"""Characters in a line of a row's label."""

ACROSS = 5
"""Number of small drawings side by side."""

CELL_LABEL = 19
"""Characters in a line of a small drawing's label."""

CELL_WIDTH, CELL_HEIGHT = 1.15, 1.45
"""Distance between small drawings, as a multiple of their width and height."""


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure of one or more panels of a ``kind`` (of ``KINDS``).

    ``title`` says in a line what is shown. ``caption`` has all else that a reader must know. In ``data`` the
    column ``panel`` has titles of panels; the other columns are the figure's CSV file. ``looks`` has the look
    of every ``method``. Curves show the column ``y`` along the column ``x``, and a horizontal line at
    ``level``.
    """

    name: str
    kind: str
    title: str
    caption: str
    data: pd.DataFrame = field(repr=False)
    looks: Mapping[str, style.Look]
    x: str = "round"
    x_label: str = "Round"
    y: str = "mean"
    y_label: str = ACCURACY
    level: float | None = None

    @property
    def panels(self) -> dict[str, pd.DataFrame]:
        """Title of a panel -> its rows."""
        return {str(title): rows for title, rows in self.data.groupby("panel", sort=False)}


def curves_of(figure: Figure, rows: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
    """Method -> curve ``[4, points]`` in a panel: x, y, low, high. A single point gives a level line."""
    curves = {}
    for method, part in rows.groupby("method", sort=False):
        curve = part.reindex(columns=[figure.x, figure.y, "low", "high"]).to_numpy(float).T
        if curve.shape[1] == 1:
            curve = np.repeat(curve, 2, axis=1)
            curve[0] = rows[figure.x].min(), rows[figure.x].max()
        curves[str(method)] = curve[:, curve[0].argsort(kind="stable")]
    return curves


def y_limits(figure: Figure, curves: Mapping[str, NDArray[np.float64]]) -> tuple[float, float]:
    """The ends of the y axis. It shows all values with their intervals. For long curves it ignores intervals,
    the first tenth of x, and values farther from the 10 % and 90 % quantiles than these are from each other.
    A figure with a ``level`` always shows all.
    """
    x, *values = np.concatenate(list(curves.values()), axis=1)
    low, high = np.nanmin(values), np.nanmax(values)
    if figure.level is None and len(x) > LONG * len(curves):
        late = values[0][x > 0.1 * x.max()]
        first, last = np.nanquantile(late, [0.1, 0.9])
        low, high = max(late.min(), 2 * first - last), min(late.max(), 2 * last - first)
    room = 0.06 * (high - low) or 1.0
    return float(low - room), float(high + room)


def draw_curves(axes: Axes, figure: Figure, rows: pd.DataFrame) -> None:
    """Draw the curves with their intervals."""
    if figure.level is not None:
        axes.axhline(figure.level, color="0.3", linewidth=0.8)
    curves = curves_of(figure, rows)
    for method, (x, y, low, high) in curves.items():
        look = figure.looks[method]
        if not np.isnan(low).all():
            axes.fill_between(x, low, high, color=look.colour, alpha=0.18, linewidth=0)
        (line,) = axes.plot(x, y, look.marker, color=look.colour, label=look.label)
        line.set(linestyle=look.dashes, markevery=max(1, len(x) // 5), zorder=3)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.set_xlim(0, 1.01 * float(rows[figure.x].max()))
    axes.set_ylim(y_limits(figure, curves))
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)


def draw_multiples(axes: Axes, figure: Figure, rows: pd.DataFrame) -> None:
    """Draw each curve in a cell of its own, in front of all others in grey. All cells have the same limits.

    The cells are unit squares in one pair of axes, because making axes takes most of the time of a figure.
    """
    curves = curves_of(figure, rows)
    right, (bottom, top) = float(rows[figure.x].max()), y_limits(figure, curves)

    def in_cell(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Points ``[points, 2]`` in the unit square. Values above or below are moved to its edge."""
        return np.stack([x / right, np.clip((y - bottom) / (top - bottom), 0, 1)], axis=1)

    ticks = MaxNLocator(3, steps=[1, 2, 5, 10])
    x_ticks = [tick for tick in ticks.tick_values(0, right) if 0 <= tick <= right]
    y_ticks = [tick for tick in ticks.tick_values(bottom, top) if bottom <= tick <= top]
    rulers = [in_cell(np.array([0, right]), np.array([tick, tick])) for tick in y_ticks]
    write = partial(axes.text, size=6.5, clip_on=True, in_layout=False)
    gap = [[np.nan, np.nan]]
    grey = np.concatenate([part for x, y, *_ in curves.values() for part in (in_cell(x, y), gap)])
    behind, lines, bands, grids, frames = [], [], [], [], []
    for number, (method, (x, y, low, high)) in enumerate(curves.items()):
        corner = CELL_WIDTH * (number % ACROSS), -CELL_HEIGHT * (number // ACROSS)
        has_ends = ~np.isnan(low)
        ends = in_cell(x, low)[has_ends], in_cell(x, high)[has_ends][::-1]
        behind.append(grey + corner)
        lines.append(in_cell(x, y) + corner)
        bands.append(np.concatenate(ends) + corner)
        grids += [ruler + corner for ruler in rulers]
        frames.append(np.array([(0, 1), (0, 0), (1, 0)]) + corner)
        if figure.level is not None:
            frames.append(in_cell(np.array([0, right]), np.array([figure.level] * 2)) + corner)
        x_end, y_end = corner
        write(x_end, y_end + 1, textwrap.fill(figure.looks[method].label, CELL_LABEL), va="bottom")
        if figure.y == "mean":
            write(x_end + 1, y_end + 1, f"{y[-1]:.1f}", ha="right", va="bottom")
        if number % ACROSS == 0:
            for tick, ruler in zip(y_ticks, rulers, strict=True):
                write(-0.03, y_end + ruler[0, 1], f"{tick:g}", ha="right", va="center")
        if number + ACROSS >= len(curves):
            for tick in x_ticks:
                write(x_end + tick / right, y_end - 0.05, f"{tick:g}", ha="center", va="top")
    colours = [figure.looks[method].colour for method in curves]
    dashes = [figure.looks[method].dashes for method in curves]
    axes.add_collection(LineCollection(grids, colors="0.92", linewidths=0.6))
    axes.plot(*np.concatenate(behind).T, color=style.OTHERS, linewidth=0.7)
    axes.add_collection(PolyCollection(bands, facecolors=colours, alpha=0.18))
    axes.add_collection(LineCollection(lines, colors=colours, linestyles=dashes, linewidths=1.4))
    axes.add_collection(LineCollection(frames, colors="0.4", linewidths=0.7, clip_on=False))
    cell_rows = math.ceil(len(curves) / ACROSS)
    axes.spines[:].set_visible(False)
    axes.set(xticks=[], yticks=[], xlabel=figure.x_label, ylabel=figure.y_label)
    axes.set_xlim(-0.2, CELL_WIDTH * (ACROSS - 1) + 1.07)
    axes.set_ylim(-CELL_HEIGHT * (cell_rows - 1) - 0.25, 1.4)


def _with_rows(axes: Axes, figure: Figure, rows: pd.DataFrame) -> pd.DataFrame:
    """Write the methods' names at the left. Return the rows with ``row`` and ``colour`` of their method."""
    methods = rows["method"]
    places = {method: -number for number, method in enumerate(methods.unique())}
    axes.set_yticks([])  # texts are drawn much faster than ticks
    axes.spines["left"].set_visible(False)
    axes.set_ylim(0.4 - len(places), 0.6)
    for method, place in places.items():
        _text_beside(axes, -0.02, place, textwrap.fill(figure.looks[method].label, ROW_LABEL), "right")
    colours = {method: figure.looks[method].colour for method in places}
    return rows.assign(row=methods.map(places), colour=methods.map(colours))


def _text_beside(axes: Axes, x: float, row: int, text: str, side: str) -> None:
    """Write a text in a row. ``x`` is in widths of the axes."""
    transform = axes.get_yaxis_transform()
    axes.text(x, row, text, ha=side, va="center_baseline", size=7, transform=transform)


def draw_pairs(axes: Axes, figure: Figure, rows: pd.DataFrame) -> None:
    """Draw means with intervals. Measured means are filled, published means are open."""
    data = _with_rows(axes, figure, rows)
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


def draw_ranks(axes: Axes, figure: Figure, rows: pd.DataFrame) -> None:
    """Draw mean ranks, best first, with their intervals and groups of ties."""
    data = _with_rows(axes, figure, rows)
    colours = data["colour"].tolist()
    axes.hlines(data["row"], data["low"], data["high"], colors=colours, linewidth=1.8)
    axes.scatter(data["mean_rank"], data["row"], 36, colours, edgecolors="white", linewidths=0.6, zorder=3)
    for row in data.to_dict("records"):
        note = f"group {row['group']}" if pd.notna(row["group"]) else ""
        _text_beside(axes, 1.01, row["row"], f"{row['mean_rank']:.1f}   {note}", "left")
    axes.set_xlabel("Mean rank (1 is the best)")


KINDS: dict[str, tuple[Callable[[Axes, Figure, pd.DataFrame], None], float, float, float]] = {
    "curves": (draw_curves, 3.7, 2.6, 0.0),
    "multiples": (draw_multiples, 7.4, 0.9, 1.0 / ACROSS),
    "pairs": (draw_pairs, 4.0, 0.8, 0.19),
    "ranks": (draw_ranks, 6.5, 0.6, 0.22),
}
"""Kind of panel -> drawing function, and size in inches with labels and ticks: width, height, additional
height for each method.
"""
