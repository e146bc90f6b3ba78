"""Panels of figures: a frame, and how each kind of panel draws it on matplotlib's axes.

A panel's frame is all that it shows, and what is written beside its figure as CSV.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from bench.figures import style

ACCURACY = "Test accuracy (%)"
FULL = 100.0
"""The highest accuracy in percent."""

FEW = 6
"""Curves that can be told apart in one drawing."""

BARS = 12
"""Points of a curve up to which each has a bar; a longer one has a band."""

ROW_LABEL = 42
"""Signs of a line of a row's label."""

CELL_WIDTH, CELL_HEIGHT = 1.12, 1.45
"""Width and height of the place of a small drawing, in those of the drawing."""

NAMED = 8
"""Points of costs that all have a name."""


@dataclass(frozen=True)
class Mark:
    """How the rows of one ``method`` in a panel's frame are drawn; ``key`` names it where there are many."""

    method: str
    label: str
    look: style.Look
    key: bool = False


@dataclass(frozen=True, eq=False)
class Panel:
    """A frame, and how what it calls ``method`` is drawn: by ``KINDS[kind]`` with these options."""

    kind: str
    title: str
    data: pd.DataFrame = field(repr=False)
    marks: tuple[Mark, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def parts(self) -> dict[str, pd.DataFrame]:
        """The rows of every method; those of curves along their axis."""
        if self.kind != "curves":
            return {str(method): rows for method, rows in self.data.groupby("method", sort=False)}
        ends = [self.data[self.x].min(), self.data[self.x].max()]
        parts = {}
        for method, rows in self.data.sort_values(self.x, kind="stable").groupby("method", sort=False):
            if len(rows) == 1:  # what is measured once stays as it is
                rows = pd.concat([rows, rows]).assign(**{self.x: ends})
            parts[str(method)] = rows
        return parts

    @cached_property
    def curves(self) -> dict[str, NDArray[np.float64]]:
        """The points ``[points, 2]`` of every method's curve."""
        return {method: rows[[self.x, self.y]].to_numpy(float) for method, rows in self.parts.items()}

    @property
    def x(self) -> str:
        """Column along the axis."""
        return str(self.options.get("x", "round"))

    @property
    def y(self) -> str:
        """Column of the values."""
        return str(self.options.get("y", "mean"))

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


def round_numbers(count: int) -> MaxNLocator:
    """Ticks at so many round numbers at the most, however long the axis: the layout relies on them."""
    return MaxNLocator(count, steps=[1, 2, 5, 10])


def draw_curves(
    axes: Axes,
    panel: Panel,
    *,
    shown: Sequence[Mark] | None = None,
    x: str = "round",
    y: str = "mean",
    x_label: str = "Round",
    y_label: str = ACCURACY,
    ticks: Sequence[tuple[float, str]] = (),
    is_robust: bool = True,
    level: float | None = None,
) -> None:
    """Draw the column ``y`` along the column ``x`` with its intervals; all but the ``shown`` curves are grey.

    ``ticks`` are names of places along the axis. ``is_robust``: a curve far from the others does not stretch
    the axis. ``level`` is drawn as a horizontal line.
    """
    shown = panel.marks if shown is None else shown
    others = [panel.curves[mark.method] for mark in panel.marks if mark not in shown]
    axes.add_collection(LineCollection(others, colors=style.OTHERS, linewidths=0.7), autolim=False)
    if level is not None:
        axes.axhline(level, color="0.3", linewidth=0.8)
    for number, mark in enumerate(shown):
        draw_curve(axes, panel, mark, panel.parts[mark.method], number / len(shown))
    axes.xaxis.set_major_locator(round_numbers(6))
    axes.yaxis.set_major_locator(round_numbers(6))
    axes.set_xlim(0, 1.01 * float(panel.data[x].max()))
    if ticks:
        axes.set_xticks([place for place, _ in ticks], [name for _, name in ticks])
        axes.set_xlim(ticks[0][0] - 0.3, ticks[-1][0] + 0.3)
    axes.set_ylim(_y_limits(panel, FULL if y_label == ACCURACY else math.inf, is_robust))
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)


def draw_curve(axes: Axes, panel: Panel, mark: Mark, rows: pd.DataFrame, offset: float = 0.0) -> None:
    """Draw the rows of a curve with its bars or its band.

    ``offset``, from 0 to 1, keeps the markers of curves apart.
    """
    colour = mark.look.colour
    x, y = rows[panel.x].to_numpy(float), rows[panel.y].to_numpy(float)
    is_short = len(x) <= BARS
    is_thin = "n" in rows and rows["n"].max() == 1
    if "low" in rows and rows["low"].notna().any():
        if is_short:
            axes.vlines(x, rows["low"], rows["high"], color=colour, linewidth=0.9)
        else:
            axes.fill_between(x, rows["low"], rows["high"], color=colour, alpha=0.18, linewidth=0)
    step = 1 if is_short else max(1, len(x) // 5)
    line: dict[str, Any] = {"color": colour, "linestyle": mark.look.dashes, "marker": mark.look.marker}
    line |= {"linewidth": 0.8 if is_thin else 1.4, "markersize": 4, "zorder": 3}
    axes.plot(x, y, markevery=(int(offset * step), step), label=mark.label, **line)


def _y_limits(panel: Panel, most: float, is_robust: bool) -> tuple[float, float]:
    """The axis's ends: all values, with their intervals. Where ``is_robust``, long curves count without first
    tenth and intervals, and nothing that is farther from the middle four fifths of the values than these are
    wide.
    """
    columns = [name for name in (panel.y, "low", "high") if name in panel.data]
    parts = []
    for rows in panel.parts.values():
        is_late_only = is_robust and len(rows) > BARS
        parts.append(rows[[panel.y]][len(rows) // 10 :] if is_late_only else rows[columns])
    values = np.concatenate([part.to_numpy(float).ravel() for part in parts])
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if is_robust:
        first, last = np.nanquantile(values, [0.1, 0.9]).tolist()
        low, high = max(low, 2 * first - last), min(high, 2 * last - first)
    room = 0.06 * (high - low) or 1.0
    return low - room if low < 0 else max(low - room, 0.0), min(high + room, max(high, most))


def draw_small_drawings(axes: Axes, panel: Panel, large: Axes, columns: int, titles: Sequence[str]) -> None:
    """Draw every curve before all others in grey, each in a cell with the limits of the ``large`` drawing.

    The cells share one pair of axes: most of the time that a figure takes goes into making axes.
    """
    (left, right), (bottom, top) = large.get_xlim(), large.get_ylim()
    width, height = CELL_WIDTH * (right - left), CELL_HEIGHT * (top - bottom)
    rows = math.ceil(len(panel.marks) / columns)
    curves = [points for curve in panel.curves.values() for points in (curve, [[np.nan, np.nan]])]
    grey = np.concatenate(curves)
    grey[(grey[:, 1] < bottom) | (grey[:, 1] > top)] = np.nan
    behind, frames = [], []
    for number, mark in enumerate(panel.marks):
        row, column = divmod(number, columns)
        x, y = column * width, -row * height
        behind.append(grey + np.array([x, y]))
        frames.append([(left + x, top + y), (left + x, bottom + y), (right + x, bottom + y)])
        part = panel.parts[mark.method]
        values = part[panel.y]
        moved = {panel.x: part[panel.x] + x, panel.y: values.where(values.between(bottom, top)) + y}
        moved |= {end: part[end].clip(bottom, top) + y for end in ("low", "high") if end in part}
        draw_curve(axes, panel, mark, part.assign(**moved))
        axes.text(left + x, top + y, titles[number], va="bottom", size=7)
        if panel.y == "mean":
            end = part["mean"].iloc[-1]
            axes.text(right + x, top + y, f"{end:.1f}" if end >= 1 else f"{end:.2g}", ha="right", size=6.5)
        if (level := panel.options.get("level")) is not None:
            axes.hlines(level + y, left + x, right + x, color="0.3", linewidth=0.8)
    axes.plot(*np.concatenate(behind).T, color=style.OTHERS, linewidth=0.7, zorder=0.5)
    axes.add_collection(LineCollection(frames, colors="0.4", linewidths=0.7, clip_on=False), autolim=False)
    for axis, low, high, moves in (
        (axes.xaxis, left, right, width * np.arange(columns)),
        (axes.yaxis, bottom, top, -height * np.arange(rows)),
    ):
        end = high - 0.1 * (high - low)  # the next cell begins beside it
        ticks = [tick for tick in round_numbers(3).tick_values(low, high) if low <= tick <= end]
        names = [f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in ticks]
        if axis is axes.xaxis and (named := dict(panel.options.get("ticks", ()))):
            ticks, names = list(named), list(named.values())
        axis.set_ticks(np.add.outer(moves, ticks).ravel(), names * len(moves))
    axes.tick_params(labelsize=6.5, length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set_xlim(left, right + (columns - 1) * width)
    axes.set_ylim(bottom - (rows - 1) * height, top + height - (top - bottom))
    axes.set_xlabel(large.get_xlabel(), fontsize=7)
    axes.set_ylabel(large.get_ylabel(), fontsize=7)


def _rows(axes: Axes, panel: Panel) -> list[tuple[int, Mark, pd.DataFrame]]:
    """A row a method from top to bottom, named at the left: its y, and what it shows."""
    axes.set_yticks([])  # a text a row is drawn much faster than a tick with its lines
    axes.set_ylim(-len(panel.marks) + 0.4, 0.6)
    axes.spines["left"].set_visible(False)
    rows = []
    for number, mark in enumerate(panel.marks):
        _text_beside(axes, -0.02, -number, textwrap.fill(mark.label, ROW_LABEL), "right")
        rows.append((-number, mark, panel.parts[mark.method]))
    return rows


def _text_beside(axes: Axes, x: float, y: float, text: str, side: str) -> None:
    """A text in the height of a row; ``x`` is in widths of the axes."""
    place = axes.get_yaxis_transform()
    axes.text(x, y, text, ha=side, va="center_baseline", size=7, transform=place)


def draw_pairs(axes: Axes, panel: Panel) -> None:
    """Draw means with their intervals, measured ones filled and published ones open."""
    open_sign: dict[str, Any] = {"markerfacecolor": "white", "markersize": 6.0}
    signs: dict[str, dict[str, Any]] = {"measured": {"markersize": 4.2}, "published": open_sign}
    for kind, sign in signs.items():
        if (panel.data["kind"] == kind).any():
            axes.plot([], [], "o", color="0.2", markeredgecolor="0.2", label=kind.capitalize(), **sign)
    for y, mark, rows in _rows(axes, panel):
        look: dict[str, Any] = {"color": mark.look.colour, "markeredgecolor": mark.look.colour}
        axes.hlines([y] * len(rows), rows["low"], rows["high"], color=mark.look.colour, linewidth=0.9)
        for kind, sign in reversed(signs.items()):
            means = rows.loc[rows["kind"] == kind, "mean"]
            axes.plot(means, [y] * len(means), mark.look.marker, zorder=3, **look, **sign)
    low, high = _axis_of(panel.data)
    axes.xaxis.set_major_locator(round_numbers(6))
    axes.set_xlim(max(low, 0.0), min(high, FULL))
    axes.set_xlabel(ACCURACY)


def _axis_of(data: pd.DataFrame) -> tuple[float, float]:
    """Ends of an axis that shows all means, and bars as far as the means are apart, or 2 points."""
    means = data["mean"]
    room = max(2.0, float(means.max() - means.min()))
    low = max(data["low"].fillna(means).min(), means.min() - room)
    high = min(data["high"].fillna(means).max(), means.max() + room)
    margin = 0.05 * (high - low) or 1.0
    return float(low - margin), float(high + margin)


def draw_ranks(axes: Axes, panel: Panel, *, task_count: int = 0) -> None:
    """Draw mean ranks, best first, with their intervals; each ``group`` of ties stands on a band.

    A method that has ranks in fewer than ``task_count`` tasks says in how many, at the right.
    """
    is_grey, above = False, 0.0
    for y, mark, rows in _rows(axes, panel):
        (row,) = rows.to_dict("records")
        group = 0.0 if pd.isna(row["group"]) else float(row["group"])
        is_grey ^= group != above
        above = group
        if is_grey:
            axes.axhspan(y - 0.5, y + 0.5, color="0.955", linewidth=0, zorder=0)
        look = mark.look
        axes.hlines(y, row["low"], row["high"], color=look.colour, linewidth=1.8)
        axes.plot(row["mean_rank"], y, marker=look.marker, markersize=6, color=look.colour, zorder=4)
        note = f"group {group:.0f}" if group else ""
        if row["tasks"] < task_count:
            note = f"{row['tasks']} of {task_count} tasks"
        _text_beside(axes, 1.01, y, f"{row['mean_rank']:.1f}   {note}", "left")
    axes.set_xlabel("Mean rank (1 is the best)")


def draw_costs(axes: Axes, panel: Panel, *, x: str, x_label: str) -> None:
    """Draw mean accuracies with their intervals against the column ``x``, a cost, on a logarithmic axis.

    ``front`` is 1 for methods on the Pareto front. Of many methods only those on it and those that are keys
    have a name and an interval; the others are grey dots.
    """
    data = panel.data.set_index("method")
    front = data[data["front"] == 1].sort_values(x)
    steps = [*front[x], 2 * data[x].max()], [*front["mean"], front["mean"].iloc[-1]]
    axes.plot(*steps, drawstyle="steps-post", color="0.8", linewidth=2.5, label="Pareto front", zorder=1)
    named = [mark for mark in panel.marks if len(data) <= NAMED or mark.key or mark.method in front.index]
    others = data.drop(index=[mark.method for mark in named])
    if len(others):
        axes.plot(others[x], others["mean"], "o", markersize=3.5, color="0.6", label="Other methods")
    for mark in named:
        row, look = data.loc[mark.method], mark.look
        axes.vlines(row[x], row["low"], row["high"], color=look.colour, linewidth=0.9)
        sign: dict[str, Any] = {"color": look.colour, "markersize": 5.5, "zorder": 3, "label": mark.label}
        axes.plot(row[x], row["mean"], look.marker, **sign)
    least, most = float(data.loc[data[x] > 0, x].min()), float(data[x].max())
    subs = (1, 2, 5) if most < 1000 * least else (1,)
    locator = LogLocator(subs=subs) if most > 5 * least else round_numbers(2)
    ticks = [tick for tick in locator.tick_values(least, most) if least <= tick <= 2 * most]
    if (data[x] == 0).any():
        axes.set_xscale("symlog", linthresh=least, linscale=0.4)
        axes.set_xlim(-0.3 * least, 2 * most)
        ticks = [0.0, *ticks]
    else:
        axes.set_xscale("log")
        room = max(1.1, (most / least) ** 0.15)
        axes.set_xlim(least / room, most * room)
    axes.set_xticks(ticks, [f"{tick:,.6g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(round_numbers(6))
    drawn_ends = data.assign(low=data["low"].drop(others.index), high=data["high"].drop(others.index))
    axes.set_ylim(_axis_of(drawn_ends))
    axes.set_xlabel(x_label)
    axes.set_ylabel(ACCURACY)


def draw_heat(
    axes: Axes,
    panel: Panel,
    *,
    value: str = "weight",
    colours: str = "cividis_r",
    across: tuple[str, str] = ("from", "From client"),
    down: tuple[str, str] = ("client", "Into client"),
) -> None:
    """Draw the matrix of the column ``value``, darker for larger ones, with a column ``across`` and one
    ``down``, each with the label of its axis.
    """
    matrix = panel.data.pivot(index=down[0], columns=across[0], values=value).to_numpy(float)
    image = axes.imshow(matrix, cmap=colours, interpolation="nearest", aspect="auto")
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8, ticks=MaxNLocator(3))
    bar.outline.set_linewidth(0.4)
    axes.grid(visible=False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlabel(across[1])
    axes.set_ylabel(down[1])


def draw_classes(axes: Axes, panel: Panel) -> None:
    """Draw how many ``items`` of each ``class`` every ``client`` has."""
    axis_names = {"across": ("client", "Client"), "down": ("class", "Class")}
    draw_heat(axes, panel, value="items", colours="Blues", **axis_names)


class Kind(NamedTuple):
    """How a kind of panel is drawn, and its inches with all that is around its axes.

    ``per_row`` are inches of height that each method adds; ``across`` is how many stand side by side.
    """

    draw: Callable[..., None]
    width: float
    height: float
    per_row: float = 0.0
    across: int = 2


KINDS = {
    "curves": Kind(draw_curves, 3.7, 2.6),
    "pairs": Kind(draw_pairs, 4.0, 0.8, 0.19),
    "ranks": Kind(draw_ranks, 6.5, 0.6, 0.22, 1),
    "costs": Kind(draw_costs, 3.7, 2.9),
    "heat": Kind(draw_heat, 2.6, 2.4, 0.0, 3),
    "classes": Kind(draw_classes, 3.7, 2.3),
}
