"""Rows, points, matrices and dots: panels of what has no course."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib import colors
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from bench.figures import style
from bench.figures.layout import ACCURACY, OUTLINED, Margins, Mark, Panel, axis_of, round_numbers
from bench.figures.style import LABEL, NAME_ROOM, POINT, fitted_text, names_in, text_width


@dataclass(frozen=True, eq=False)
class Rows(Panel):
    """A row a method from top to bottom, named at the left."""

    ROW: ClassVar[float] = 0.19
    """Inches of a row."""

    @cached_property
    def names(self) -> tuple[list[str], float]:
        """The names in one or two lines each, and the one size that they all have."""
        return names_in([mark.label for mark in self.marks], NAME_ROOM, LABEL)

    @property
    def places(self) -> list[int]:
        """The rows' y, from top to bottom; the last is 0."""
        return list(range(len(self.marks)))[::-1]

    @property
    def row(self) -> float:
        """Inches of a row that holds the lines of its name."""
        names, size = self.names
        lines = max(name.count("\n") + 1 for name in names)
        return max(self.ROW, lines * size * 1.25 * POINT)

    @property
    def inches(self) -> tuple[float, float]:
        """As high as its rows."""
        return 2.05, max(0.5, self.row * (self.places[0] + 1))

    @property
    def margins(self) -> Margins:
        """Room for the names."""
        names, size = self.names
        return Margins()._replace(left=max(text_width(name, size) for name in names) + 0.18)

    def rows(self, axes: Axes) -> Iterator[tuple[int, Mark, pd.DataFrame]]:
        """Write the names and draw the limits; then every row's y, and what it shows."""
        names, size = self.names
        axes.set_yticks(self.places, names, va="center", linespacing=1.0, fontsize=size)
        axes.tick_params(axis="y", length=0, pad=4, labelcolor="black")
        axes.set_ylim(-0.6, self.places[0] + 0.6)
        axes.grid(visible=False, axis="y")
        for place, mark in zip(self.places, self.marks, strict=True):
            yield place, mark, self.parts[mark.method]


@dataclass(frozen=True, eq=False)
class Boxes(Rows):
    """Quartiles and median of the column ``value`` with a point a row of the frame.

    ``level`` is drawn through all boxes and called ``level_label``.
    """

    level: float | None = None
    level_label: str = ""
    across_label: str = "Test accuracy of a client (%)"

    LEVEL_LINE: ClassVar[dict[str, Any]] = {"color": "0.35", "linestyle": (0, (4, 2)), "linewidth": 1.0}

    def legend(self) -> Iterator[Line2D]:
        """The line through all boxes."""
        if self.level is not None:
            yield Line2D([], [], label=self.level_label, **self.LEVEL_LINE)

    def draw(self, axes: Axes) -> None:
        """The boxes, and the line through them."""
        if self.level is not None:
            axes.axvline(self.level, zorder=1, **self.LEVEL_LINE)
        for place, mark, rows in self.rows(axes):
            values = np.sort(rows["value"].to_numpy(np.float64))
            low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
            colour = mark.look.colour
            fill = (*colors.to_rgb(colour), 0.22)
            corner = (low, place - 0.32)
            axes.add_patch(Rectangle(corner, high - low, 0.64, facecolor=fill, edgecolor=colour, lw=0.8))
            axes.plot([middle, middle], [place - 0.32, place + 0.32], color="black", linewidth=1.4, zorder=4)
            axes.plot(
                values,
                place + (np.linspace(-0.18, 0.18, len(values)) if len(values) > 1 else np.zeros(1)),
                linestyle="none",
                marker=mark.look.marker,
                markersize=2.8,
                color=colour,
                **OUTLINED,
                zorder=3,
            )
        axes.set_xlabel(self.across_label)


@dataclass(frozen=True, eq=False)
class Pairs(Rows):
    """Means of two ``kinds``, first filled, second open, with intervals; ``is_joined``: by a line."""

    kinds: tuple[str, str] = ("measured", "published")
    is_joined: bool = False

    def draw(self, axes: Axes) -> None:
        """Points with their bars; the axis need not start at zero, and says where it does."""
        for place, mark, rows in self.rows(axes):
            look = mark.look
            if self.is_joined:
                axes.plot(
                    rows["mean"], [place] * len(rows), color=look.colour, linewidth=1.6, alpha=0.5, zorder=2
                )
            for kind, fill, size in zip(self.kinds[::-1], ("white", look.colour), (6.0, 4.2), strict=True):
                for mean, low, high in rows.loc[rows["kind"] == kind, ["mean", "low", "high"]].to_numpy(
                    float
                ):
                    axes.errorbar(
                        mean,
                        place,
                        xerr=None if math.isnan(low) else (high - low) / 2,
                        color=look.colour,
                        marker=look.marker,
                        markerfacecolor=fill,
                        markersize=size,
                        elinewidth=0.9,
                        zorder=3,
                    )
        # Bars may be wide: the axis shows all means, and bars as far as these are apart.
        low, high = axis_of(self.data, room=1.0, min_room=2.0)
        start = max(0, math.floor((low - 1) / 5) * 5)
        axes.set_xlim(start, min(high, 100.0) + 0.03 * (high - start))
        axes.set_xlabel(ACCURACY if start == 0 else f"{ACCURACY}, from {start}")

    def legend(self) -> Iterator[Line2D]:
        """What filled and open points are, if there are some."""
        for kind, fill, size in zip(self.kinds, ("0.2", "white"), (4.2, 6.0), strict=True):
            if (self.data["kind"] == kind).any():
                point = Line2D([], [], linestyle="none", marker="o", color="0.2", label=kind.capitalize())
                point.set(markerfacecolor=fill, markersize=size)
                yield point


@dataclass(frozen=True, eq=False)
class Ranks(Rows):
    """Mean ranks, best first, with their intervals; each ``group`` of ties stands on a band of its own.

    Where the frame says in how many ``tasks`` a method has ranks, those with fewer than ``task_count`` stand
    last and apart, as their ranks are among other methods.
    """

    task_count: int = 0
    across: ClassVar[int] = 1
    ROW: ClassVar[float] = 0.22

    @cached_property
    def counts(self) -> list[int]:
        """In how many tasks each method has ranks."""
        return [int(n) for n in self.data["tasks"]] if "tasks" in self.data else [0] * len(self.data)

    @property
    def places(self) -> list[int]:
        """With a row left empty above the methods that lack tasks."""
        places = super().places
        partial = sum(count < self.task_count for count in self.counts)
        return [place + (place >= partial) for place in places] if partial else places

    @property
    def inches(self) -> tuple[float, float]:
        """Wider than other rows."""
        return 4.4, super().inches[1]

    @property
    def margins(self) -> Margins:
        """Room for the groups' names at the right."""
        return super().margins._replace(right=0.75, top=Margins().top if self.title else 0.1)

    def draw(self, axes: Axes) -> None:
        """Points with their intervals, the rank as a number beside each."""
        for place, mark, rows in self.rows(axes):
            mean, low, high = rows[["mean_rank", "low", "high"]].iloc[0].astype(float)
            colour = mark.look.colour
            if not math.isnan(low):
                axes.plot([low, high], [place] * 2, color=colour, linewidth=1.8)
            axes.plot(mean, place, marker=mark.look.marker, markersize=6, color=colour, zorder=4, **OUTLINED)
            axes.annotate(
                f"{mean:.1f}",
                (mean, place),
                xytext=(0, 4),
                textcoords="offset points",
                fontsize=5.5,
                color="0.25",
                ha="center",
            )
        groups = self.data["group"].astype(float).fillna(0)
        bands = self.data.assign(place=self.places).groupby((groups != groups.shift()).cumsum(), sort=False)
        for number, (_, band) in enumerate(bands):
            top, bottom = band["place"].max() + 0.5, band["place"].min() - 0.5
            if number % 2 == 0:
                axes.axhspan(bottom, top, color="0.955", linewidth=0, zorder=0)
            if pd.notna(band["group"].iloc[0]):
                self._bracket(axes, f"group {band['group'].iloc[0]}", bottom + 0.15, top - 0.15)
        self._count_tasks(axes)
        ends = self.data[["low", "mean_rank", "high"]].astype(float).to_numpy()
        axes.set_xlim(min(np.nanmin(ends), 1.0) - 0.3, np.nanmax(ends) + 0.3)
        axes.set_xlabel("Mean rank (1 is the best)")

    def _count_tasks(self, axes: Axes) -> None:
        """A rule above the methods that lack tasks, and how many each has."""
        partial = {
            place: count
            for place, count in zip(self.places, self.counts, strict=True)
            if count < self.task_count
        }
        if not partial:
            return
        style: dict[str, Any] = {"fontsize": LABEL - 0.5, "color": "0.25", "va": "center_baseline"}
        head = max(partial) + 1
        axes.axhline(head + 0.5, color="0.3", linewidth=0.8)
        beside = axes.get_yaxis_transform()
        axes.text(0.01, head, "Ranks in some of the tasks alone", transform=beside, **style)
        for place, count in partial.items():
            axes.text(1.025, place, f"{count} of {self.task_count}", transform=beside, **style)

    @staticmethod
    def _bracket(axes: Axes, name: str, bottom: float, top: float) -> None:
        axes.plot(
            [1.015, 1.025, 1.025, 1.015],
            [bottom, bottom, top, top],
            transform=axes.get_yaxis_transform(),
            color="0.3",
            linewidth=0.9,
            clip_on=False,
        )
        axes.annotate(
            name,
            (1.025, (bottom + top) / 2),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            fontsize=LABEL - 0.5,
            color="0.25",
            va="center_baseline",
        )


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
