"""Drawings of two quantities: accuracy against cost, heat maps and dots."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from bench.figures import style
from bench.figures.lettering import POINT, fitted_text, text_width
from bench.figures.panels import ACCURACY, OUTLINED, Margins, Mark, Panel, axis_of, round_numbers


@dataclass(frozen=True, eq=False)
class Costs(Panel):
    """Mean accuracy with its interval against the column ``x``, a cost, on a logarithmic axis.

    ``front`` is 1 for methods on the Pareto front. Of many methods only those on it and those that are keys
    have a name and an interval; the others are grey dots.
    """

    x: str = "seconds"
    across_label: str = "Seconds"

    NAME: ClassVar[float] = 6.0
    """Points of the names beside the points."""
    SIZE: ClassVar[tuple[float, float]] = (2.85, 2.5)
    FEW: ClassVar[int] = 8
    """Methods whose names all have a place beside their points."""
    DOTS: ClassVar[dict[str, Any]] = {
        "linestyle": "none",
        "marker": "o",
        "markersize": 3.5,
        "color": "0.6",
        **OUTLINED,
    }
    """Methods without a name."""
    ZERO_LINE: ClassVar[dict[str, Any]] = {"color": "0.6", "linestyle": ":", "linewidth": 1.0}

    @property
    def named_marks(self) -> list[Mark]:
        """The methods that have their name beside their point."""
        front = set(self.data.loc[self.data["front"] == 1, "method"])
        is_few = len(self.marks) <= self.FEW
        return [mark for mark in self.marks if is_few or mark.key or mark.method in front]

    def legend(self) -> Iterator[Line2D]:
        """The front, and what else is grey: methods without a name, and the end of the axis before 0."""
        yield Line2D([], [], color="0.8", linewidth=2.5, label="Pareto front")
        if len(self.named_marks) < len(self.marks):
            yield Line2D([], [], **self.DOTS, label="Other methods")
        if (self.data[self.x] == 0).any():
            yield Line2D([], [], **self.ZERO_LINE, label="Left of it: no cost")

    def draw(self, axes: Axes) -> None:
        """The front and the points; what costs nothing stands left of a dotted line, at 0."""
        costs = self.data[self.x]
        low, high = (math.log10(end) for end in (costs[costs > 0].min(), costs.max()))
        room = 0.08 * max(high - low, 0.3)
        zero_place, end = 10 ** (low - 3 * room), 10 ** (high + 3 * room)
        data = self.data.assign(x=costs.where(costs > 0, zero_place))
        front = data[data["front"] == 1].sort_values("x")
        axes.plot(
            [*front["x"], end],
            [*front["mean"], front["mean"].iloc[-1]],
            drawstyle="steps-post",
            color="0.8",
            linewidth=2.5,
            solid_capstyle="butt",
            zorder=1,
        )
        points = data.set_index("method")[["x", "mean", "low", "high"]].astype(float)
        names = [mark.method for mark in self.named_marks]
        others = points.drop(index=names)
        axes.plot(others["x"], others["mean"], **self.DOTS, zorder=2)
        points.loc[others.index, ["low", "high"]] = np.nan
        numbers = dict(zip(points.index, points.to_numpy(), strict=True))
        for mark in self.named_marks:
            x, mean, low_end, high_end = numbers[mark.method]
            axes.errorbar(
                x,
                mean,
                yerr=None if math.isnan(low_end) else (high_end - low_end) / 2,
                color=mark.look.colour,
                marker=mark.look.marker,
                markersize=5.5,
                **OUTLINED,
                elinewidth=0.9,
                zorder=3,
            )
        start = 10 ** (low - 2 * room)
        ticks = log_ticks(10 ** (low - room), 10 ** (high + room))
        axes.set_xscale("log")
        if (costs == 0).any():
            axes.axvline(start, **self.ZERO_LINE)
            ticks, start = [zero_place, *ticks], 10 ** (low - 4.5 * room)
        axes.set_xticks(ticks, ["0" if tick == zero_place else f"{tick:,.6g}" for tick in ticks])
        axes.minorticks_off()
        axes.set_xlim(start, end)
        bottom, top = axis_of(points, room=0.5, min_room=2.0)
        margin = 0.08 * (top - bottom) or 1.0  # equal means without intervals
        axes.set_ylim(bottom - margin, top + margin)
        axes.set_xlabel(self.across_label)
        axes.set_ylabel(ACCURACY)
        self._name(axes, points)

    def _name(self, axes: Axes, points: pd.DataFrame) -> None:
        """A name beside each point where it covers no other name, no point and not the front; else joined to
        its point by a line.
        """
        width, height = self.inches
        (start, end), (bottom, top) = axes.get_xlim(), axes.get_ylim()
        scale = height / (top - bottom)
        xs = width * np.log(points["x"] / start) / math.log(end / start)
        ys = scale * (points["mean"] - bottom)
        bars = (scale * (points["high"] - points["low"]) / 2).fillna(0.0)
        boxes = [(x - 0.04, y - 0.04, x + 0.04, y + 0.04) for x, y in zip(xs, ys, strict=True)]
        boxes += [(x - 0.02, y - bar, x + 0.02, y + bar) for x, y, bar in zip(xs, ys, bars, strict=True)]
        front = self.data.loc[self.data["front"] == 1, "method"]
        steps = sorted((float(xs[name]), float(ys[name])) for name in front)
        for (x, y), (next_x, next_y) in zip(steps, [*steps[1:], (width, steps[-1][1])], strict=True):
            boxes += [(x, y - 0.02, next_x, y + 0.02), (next_x - 0.02, y, next_x + 0.02, next_y)]
        for mark in sorted(self.named_marks, key=lambda mark: -float(ys[mark.method])):
            x, y = float(xs[mark.method]), float(ys[mark.method])
            # Letters are drawn on whole pixels, which makes a name longer.
            span, size = 1.05 * text_width(mark.label, self.NAME), self.NAME * POINT
            box = _free_box(x, y, span, size, boxes, self.inches)
            boxes.append(box)
            is_far = max(abs((box[0] + box[2]) / 2 - x) - span / 2, abs((box[1] + box[3]) / 2 - y)) > 0.13
            arrow = {
                "arrowstyle": "-",
                "color": mark.look.colour,
                "linewidth": 0.5,
                "shrinkA": 0,
                "shrinkB": 2,
            }
            axes.annotate(
                mark.label,
                (x / width, y / height),
                xycoords="axes fraction",
                xytext=(box[0] / width, box[1] / height),
                textcoords="axes fraction",
                fontsize=self.NAME,
                color=style.ink(mark.look.colour),
                va="bottom",
                arrowprops=arrow if is_far else None,
                zorder=5,
            )


Box = tuple[float, float, float, float]
"""Left, bottom, right and top in inches."""


def _free_box(
    x: float, y: float, box_width: float, box_height: float, boxes: Sequence[Box], area: tuple[float, float]
) -> Box:
    """A rectangle near a point that overlaps the fewest others, the nearest of those."""

    def overlap(box: Box) -> float:
        overhang = max(0.0, -box[0], box[2] - area[0] - 0.1, -box[1], box[3] - area[1])
        overlap_area = sum(
            max(0.0, min(box[2], other_box[2]) - max(box[0], other_box[0]))
            * max(0.0, min(box[3], other_box[3]) - max(box[1], other_box[1]))
            for other_box in boxes
        )
        return round(overlap_area + overhang, 6)

    gap = 0.055
    candidates = []
    for distance in (0.0, 0.1, 0.2, 0.3, 0.42, 0.55):
        for step_x, step_y in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)):
            box_left = x - box_width / 2 + step_x * (box_width / 2 + gap + distance / 2)
            bottom = y - box_height / 2 + step_y * (box_height / 2 + gap * (step_x == 0) + distance)
            candidates.append((box_left, bottom, box_left + box_width, bottom + box_height))
    return min(candidates, key=overlap)


def log_ticks(low: float, high: float) -> list[float]:
    """A few round numbers between ``low`` and ``high``, about evenly apart on a logarithmic axis."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    ticks = [tick for tick in ticks if low <= tick <= high]
    return ticks[:: math.ceil(len(ticks) / 5)] if len(ticks) > 1 else round_numbers(low, high, 3)


@dataclass(frozen=True, eq=False)
class Heat(Panel):
    """A matrix of the column ``weight`` by ``client`` and ``from``, darker for larger ones."""

    across: ClassVar[int] = 3
    SIZE: ClassVar[tuple[float, float]] = (1.35, 1.35)
    MARGINS: ClassVar[Margins] = Margins(left=0.42, right=0.6, bottom=0.44, top=0.42)
    """Room for two lines of title and the colour bar."""

    def draw(self, axes: Axes) -> None:
        """A square a pair of clients; the colour bar spans this panel's weights."""
        longest = max(self.title.splitlines(), key=len)
        axes.set_title(self.title, fontsize=fitted_text(longest, 1.9, 7.5)[1])
        weights = self.data.pivot(index="client", columns="from", values="weight").to_numpy(np.float64)
        image = axes.imshow(weights, cmap="cividis_r", interpolation="nearest")
        bar = axes.figure.colorbar(image, cax=axes.inset_axes((1.05, 0.0, 0.06, 1.0)))
        bar.outline.set_linewidth(0.4)
        low, high = float(weights.min()), float(weights.max())
        digits = 2 if high - low > 0.05 else 3
        bar.set_ticks([low, high], labels=[f"{low:.{digits}f}", f"{high:.{digits}f}"])
        bar.ax.tick_params(labelsize=6, length=1.5)
        axes.grid(visible=False)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(5, integer=True))
        axes.tick_params(labelsize=6.5)
        axes.set_xlabel("From client", fontsize=7)
        axes.set_ylabel("Into client", fontsize=7)


@dataclass(frozen=True, eq=False)
class Dots(Panel):
    """A dot for every ``client`` and ``class``, its area by ``items``, of at most ``most_items``."""

    most_items: int = 1
    SIZE: ClassVar[tuple[float, float]] = (2.8, 1.6)

    def draw(self, axes: Axes) -> None:
        """The dots."""
        clients, classes = self.data["client"], self.data["class"]
        areas = 60.0 * self.data["items"] / self.most_items
        held = areas > 0
        axes.scatter(clients[held], classes[held], s=areas[held], color=style.HUES[0], linewidths=0)
        axes.set_xlim(-0.7, clients.max() + 0.7)
        axes.set_ylim(-0.7, classes.max() + 0.7)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(10, integer=True))
        axes.set_xlabel("Client")
        axes.set_ylabel("Class")
