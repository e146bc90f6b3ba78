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
from matplotlib.colors import to_rgba
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from bench.figures import style
from bench.statistics.summary import LEAST_RUNS

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
        rows = self.data.sort_values(self.x, kind="stable") if self.kind == "curves" else self.data
        parts = {str(method): part for method, part in rows.groupby("method", sort=False)}
        if self.kind == "curves":
            for method, part in parts.items():
                if len(part) == 1:  # what is measured once stays as it is
                    ends = [rows[self.x].min(), rows[self.x].max()]
                    parts[method] = pd.concat([part, part]).assign(**{self.x: ends})
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
    if ticks:
        axes.set_xticks([place for place, _ in ticks], [name for _, name in ticks])
        axes.set_xlim(ticks[0][0] - 0.3, ticks[-1][0] + 0.3)
    else:
        axes.xaxis.set_major_locator(round_numbers(6))
        axes.set_xlim(0, 1.01 * float(panel.data[x].max()))
    axes.yaxis.set_major_locator(round_numbers(6))
    axes.set_ylim(_y_limits(panel, FULL if y_label == ACCURACY else math.inf, is_robust))
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)


def round_numbers(count: int, **options: Any) -> MaxNLocator:
    """Ticks at so many round numbers at the most, however long the axis: the layout relies on them."""
    return MaxNLocator(count, steps=[1, 2, 5, 10], **options)


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
    names = dict(panel.options.get("ticks", ())) or _names(left, right)
    places = [column * width + place for column in range(columns) for place in names]
    axes.set_xticks(places, [*names.values()] * columns)
    names = _names(bottom, top)
    places = [place - row * height for row in range(rows) for place in names]
    axes.set_yticks(places, [*names.values()] * rows)
    axes.tick_params(labelsize=6.5, length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set_xlim(left, right + (columns - 1) * width)
    axes.set_ylim(bottom - (rows - 1) * height, top + height - (top - bottom))
    axes.set_xlabel(large.get_xlabel(), fontsize=7)
    axes.set_ylabel(large.get_ylabel(), fontsize=7)


def _names(low: float, high: float) -> dict[float, str]:
    """Few round numbers between two, and their texts."""
    end = high - 0.1 * (high - low)  # the next cell begins beside it
    ticks = [tick for tick in round_numbers(3).tick_values(low, high) if low <= tick <= end]
    return {tick: f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in ticks}


def draw_curve(axes: Axes, panel: Panel, mark: Mark, rows: pd.DataFrame, offset: float = 0.0) -> None:
    """Draw the rows of a curve with its bars or its band; of two runs both, thin, beside their mean.

    ``offset``, from 0 to 1, keeps the markers of curves apart.
    """
    look = mark.look
    x, y = rows[panel.x].to_numpy(float), rows[panel.y].to_numpy(float)
    is_short = len(x) <= BARS
    runs = int(rows["n"].max()) if "n" in rows else LEAST_RUNS
    if "low" in rows and rows["low"].notna().any():
        if is_short:
            axes.vlines(x, rows["low"], rows["high"], color=look.colour, linewidth=0.9)
        else:
            axes.fill_between(x, rows["low"], rows["high"], color=look.colour, alpha=0.18, linewidth=0)
    elif runs == 2 and "std" in rows:
        gap = rows["std"].to_numpy(float) / math.sqrt(2)  # two runs lie so far from their mean
        axes.plot(x, np.column_stack([y - gap, y + gap]), color=look.colour, linewidth=0.5, alpha=0.6)
    step = 1 if is_short else max(1, len(x) // 5)
    axes.plot(
        x,
        y,
        color=look.colour,
        linestyle=look.dashes,
        linewidth=0.8 if runs == 1 else 1.4,
        marker=look.marker,
        markersize=4,
        markevery=(int(offset * step), step),
        zorder=3,
        label=mark.label,
    )


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


def draw_boxes(axes: Axes, panel: Panel, *, baseline: str, baseline_label: str) -> None:
    """Draw quartiles and median of the column ``value`` with a point a row of the frame; the median of the
    method ``baseline`` goes through all boxes.
    """
    if baseline in panel.parts:
        level = panel.parts[baseline]["value"].median()
        axes.axvline(level, color="0.35", linestyle="--", linewidth=1.0, label=baseline_label)
    colours = [mark.look.colour for mark in panel.marks]
    quartiles = panel.data.groupby("method")["value"].quantile(np.array([0.25, 0.5, 0.75])).unstack()
    first, middle, last = quartiles.loc[[mark.method for mark in panel.marks]].to_numpy().T
    places = -np.arange(len(colours))
    faces = [to_rgba(colour, 0.22) for colour in colours]
    axes.barh(places, last - first, 0.64, first, color=faces, edgecolor=colours, linewidth=0.8)
    axes.vlines(middle, places - 0.32, places + 0.32, color="black", linewidth=1.4, zorder=3)
    for y, mark, rows in _rows(axes, panel):
        values = np.sort(rows["value"].to_numpy(float))
        heights = y + np.linspace(-0.18, 0.18, len(values)) if len(values) > 1 else [y]
        axes.plot(
            values, heights, linestyle="", marker=mark.look.marker, markersize=2.8, color=mark.look.colour
        )
    axes.set_xlabel("Test accuracy of a client (%)")


def draw_pairs(
    axes: Axes, panel: Panel, *, kinds: tuple[str, str] = ("measured", "published"), is_joined: bool = False
) -> None:
    """Draw means of two ``kinds``, first filled, second open, with intervals; ``is_joined``: by a line."""
    styles: dict[str, dict[str, Any]] = {
        kinds[1]: {"markerfacecolor": "white", "markersize": 6.0},
        kinds[0]: {"markersize": 4.2},
    }
    for y, mark, rows in _rows(axes, panel):
        colour = mark.look.colour
        if is_joined:
            axes.plot(rows["mean"], [y] * len(rows), color=colour, linewidth=1.6, alpha=0.5)
        axes.hlines([y] * len(rows), rows["low"], rows["high"], color=colour, linewidth=0.9)
        for kind, how in styles.items():
            means = rows.loc[rows["kind"] == kind, "mean"]
            look: dict[str, Any] = {"color": colour, "marker": mark.look.marker, "markeredgecolor": colour}
            axes.plot(means, [y] * len(means), linestyle="", zorder=3, **look, **how)
    for kind in kinds:
        if (panel.data["kind"] == kind).any():
            neutral: dict[str, Any] = {"color": "0.2", "markeredgecolor": "0.2", "label": kind.capitalize()}
            axes.plot([], [], "o", **neutral, **styles[kind])
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
    groups = panel.data["group"].astype(float).fillna(0).tolist()
    is_grey = False
    for (y, mark, rows), group, above in zip(_rows(axes, panel), groups, [0, *groups], strict=False):
        is_grey ^= group != above
        if is_grey:
            axes.axhspan(y - 0.5, y + 0.5, color="0.955", linewidth=0, zorder=0)
        (row,) = rows.to_dict("records")
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
    names = [
        mark for mark in panel.marks if len(data) <= NAMED or mark.key or mark.method in set(front.index)
    ]
    steps = [*front[x], 2 * data[x].max()], [*front["mean"], front["mean"].iloc[-1]]
    axes.plot(*steps, drawstyle="steps-post", color="0.8", linewidth=2.5, label="Pareto front", zorder=1)
    others = data.drop(index=[mark.method for mark in names])
    if len(others):
        axes.plot(others[x], others["mean"], "o", markersize=3.5, color="0.6", label="Other methods")
    for mark in names:
        row, colour = data.loc[mark.method], mark.look.colour
        axes.vlines(row[x], row["low"], row["high"], color=colour, linewidth=0.9)
        look: dict[str, Any] = {"color": colour, "marker": mark.look.marker, "label": mark.label}
        axes.plot(row[x], row["mean"], linestyle="", markersize=5.5, zorder=3, **look)
    costs = data[x]
    least, most = float(costs[costs > 0].min()), float(costs.max())
    subs = (1, 2, 5) if most < 1000 * least else (1,)
    locator = LogLocator(subs=subs) if most > 5 * least else round_numbers(2)
    ticks = [tick for tick in locator.tick_values(least, most) if least <= tick <= 2 * most]
    if (costs == 0).any():
        axes.set_xscale("symlog", linthresh=least, linscale=0.4)
        axes.set_xlim(-0.3 * least, 2 * most)
        ticks = [0.0, *ticks]
    else:
        axes.set_xscale("log")
        room = max(1.1, (most / least) ** 0.15)
        axes.set_xlim(least / room, most * room)
    axes.set_xticks(ticks, [f"{tick:,.6g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    data.loc[others.index, ["low", "high"]] = np.nan  # are not drawn
    axes.yaxis.set_major_locator(round_numbers(6))
    axes.set_ylim(_axis_of(data))
    axes.set_xlabel(x_label)
    axes.set_ylabel(ACCURACY)


def draw_heat(axes: Axes, panel: Panel) -> None:
    """Draw the matrix of the column ``weight`` by ``client`` and ``from``, darker for larger ones."""
    weights = panel.data.pivot(index="client", columns="from", values="weight").to_numpy(float)
    image = axes.imshow(weights, cmap="cividis_r", interpolation="nearest")
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8, ticks=MaxNLocator(3))
    bar.outline.set_linewidth(0.4)
    axes.grid(visible=False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlabel("From client")
    axes.set_ylabel("Into client")


def draw_dots(axes: Axes, panel: Panel, *, most_items: int) -> None:
    """Draw a dot for every ``client`` and ``class``, its area by ``items``, of at most ``most_items``."""
    held = panel.data[panel.data["items"] > 0]
    areas = 60.0 * held["items"] / most_items
    axes.scatter(held["client"], held["class"], s=areas, color=style.HUES[0], linewidths=0)
    axes.set_xlim(-0.7, panel.data["client"].max() + 0.7)
    axes.set_ylim(-0.7, panel.data["class"].max() + 0.7)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(10, integer=True))
    axes.set_xlabel("Client")
    axes.set_ylabel("Class")


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
    "boxes": Kind(draw_boxes, 4.0, 0.8, 0.19),
    "pairs": Kind(draw_pairs, 4.0, 0.8, 0.19),
    "ranks": Kind(draw_ranks, 6.5, 0.6, 0.22, 1),
    "costs": Kind(draw_costs, 3.7, 2.9),
    "heat": Kind(draw_heat, 2.6, 2.4, 0.0, 3),
    "dots": Kind(draw_dots, 3.7, 2.3),
}
