"""Drawings of tidy frames: curves, rows with intervals, accuracy against cost, heat maps and dots.

A panel is one drawing of a figure; its frame is all that it shows, and what is written beside it as CSV.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from matplotlib import colors
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure as Canvas
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.textpath import text_to_path
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression
from scipy.special import stdtrit

from bench.report import style

Numbers = NDArray[np.float64]

POINT = 1 / 72
"""Inches of a point, the unit of font sizes."""

LABEL = 7.0
"""Points of the names of curves and rows."""

NAME_ROOM = 1.6
"""Inches that a name beside the axes may take."""

OUTLINED: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.6}
"""How markers stand out from what is below them."""

ACCURACY = "Test accuracy (%)"

LEVEL = 0.95
"""Level of the intervals."""

LEAST_RUNS = 3
"""Runs of which a mean has an interval: Student's interval of two is ten times as wide as they are apart."""


def with_intervals(data: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``n``, ``mean`` and sample ``std`` with ``low`` and ``high``, Student's 95 % interval,
    which means of fewer than ``LEAST_RUNS`` runs have not.
    """
    runs = data["n"].to_numpy(np.float64)
    freedom = np.maximum(runs - 1, 1.0)
    half = stdtrit(freedom, (1 + LEVEL) / 2) * data["std"].to_numpy(np.float64) / np.sqrt(freedom + 1)
    half = np.where(runs >= LEAST_RUNS, half, np.nan)
    return data.assign(low=data["mean"] - half, high=data["mean"] + half)


class Margins(NamedTuple):
    """Inches around a panel's axes, for its title, ticks and labels."""

    left: float = 0.58
    right: float = 0.15
    bottom: float = 0.48
    top: float = 0.3


class Corner(NamedTuple):
    """Inches from a canvas's lower left corner to that of a panel's axes."""

    left: float
    bottom: float


@dataclass(frozen=True)
class Mark:
    """How the rows of one ``method`` in a panel's frame are drawn; ``key`` names it where there are many."""

    method: str
    label: str
    look: style.Look
    key: bool = False


@dataclass(frozen=True, eq=False)
class Panel(ABC):
    """A frame, and how what it calls ``method`` is drawn; the panels of a figure are all of one kind.

    ``across`` is how many stand side by side.
    """

    title: str
    data: pd.DataFrame = field(repr=False)
    marks: tuple[Mark, ...] = ()
    across: ClassVar[int] = 2

    @property
    def inches(self) -> tuple[float, float]:
        """Width and height of the axes."""
        return 2.3, 1.75

    @property
    def margins(self) -> Margins:
        """What the axes have around them."""
        return Margins()

    @property
    def crowded(self) -> bool:
        """Whether the panel needs a figure to itself."""
        return False

    @cached_property
    def parts(self) -> dict[str, pd.DataFrame]:
        """The rows of every method."""
        return {str(method): rows for method, rows in self.data.groupby("method", sort=False)}

    @abstractmethod
    def draw(self, axes: Axes) -> None:
        """Draw everything but the title and the legend."""

    def legend(self) -> Iterable[Line2D]:
        """Entries of the figure's legend; of equal labels the first is shown."""
        return ()

    def draw_on(self, canvas: Canvas, corner: Corner) -> None:
        """Draw the panel where its axes begin at ``corner``."""
        axes = add_axes(canvas, corner, *self.inches)
        axes.set_title(self.title)
        self.draw(axes)


class Range(NamedTuple):
    """The part of an axis that is shown, and for each curve outside it how far it goes."""

    low: float
    high: float
    cut: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Curves(Panel):
    """Means along the column ``x``, with their intervals where the frame has them.

    A few curves share one drawing, each with its name at its end. Many are not read so: then one drawing
    names those that matter, and below it every method has a small one of its own, before all others in grey.
    ``ticks`` are names of places along the axis. ``robust``: a curve far from the others does not stretch the
    axis; else everything is shown, with a line at ``level``.
    """

    x: str = "round"
    y: str = "mean"
    across_label: str = "Round"
    up_label: str = ACCURACY
    ticks: tuple[tuple[float, str], ...] = ()
    robust: bool = True
    level: float | None = None

    FEW: ClassVar[int] = 6
    """Curves that can be told apart in one drawing."""
    BARS: ClassVar[int] = 12
    """Points of a curve up to which each has a bar; a longer one has a band."""
    MARKERS: ClassVar[int] = 5
    """Markers along a curve."""
    START: ClassVar[float] = 0.1
    """Share of a curve, its first rounds, after which the axis shows half of the curves at least."""
    WIDE: ClassVar[float] = 6.9
    """Inches of a drawing with a small one for every method, labels included."""
    SMALL: ClassVar[float] = 0.92
    """Height of a small drawing in inches."""
    STEP: ClassVar[float] = 1.16
    """Inches from a small drawing to the one below."""

    @property
    def crowded(self) -> bool:
        """Whether one drawing cannot hold all curves."""
        return len(self.marks) > self.FEW

    @property
    def named(self) -> list[Mark]:
        """The curves that have their name in the first drawing."""
        return [mark for mark in self.marks if mark.key or not self.crowded]

    @property
    def inches(self) -> tuple[float, float]:
        """The first drawing; with small ones it is above them, and its axes end where the names begin."""
        return (self.WIDE - self.margins.right, 1.9) if self.crowded else super().inches

    @property
    def margins(self) -> Margins:
        """Room for the names at the right, and for a note and the small drawings below."""
        names = max((text_width(mark.label, LABEL) for mark in self.named), default=0.0)
        rows = -(-len(self.marks) // self._columns)
        below = rows * self.STEP + 0.42 if self.crowded else 0.0
        plain = Margins()
        bottom = plain.bottom + self._note_height + below
        return plain._replace(right=min(names, NAME_ROOM) + 0.32, bottom=bottom)

    @property
    def _columns(self) -> int:
        """Small drawings side by side: the number that leaves the fewest empty places."""
        return min((5, 4, 6), key=lambda columns: -len(self.marks) % columns)

    @cached_property
    def lines(self) -> dict[str, Numbers]:
        """The points ``[points, 2]`` of every method's curve."""
        return {method: rows[[self.x, self.y]].to_numpy(np.float64) for method, rows in self.parts.items()}

    @cached_property
    def shown(self) -> Range:
        """Where the y axis begins and ends.

        It shows the second half of every long curve, and all of a short one. A ``robust`` one leaves out what
        is beyond Tukey's fences around the curves, and names it. Intervals widen it by half of its length at
        most.
        """
        curves = [self.lines[mark.method][:, 1] for mark in self.marks]
        short = [len(curve) <= self.BARS or not self.robust for curve in curves]
        tails = [
            np.nan_to_num(curve if whole else curve[len(curve) // 2 :])
            for curve, whole in zip(curves, short, strict=True)
        ]
        lows, highs = np.array([[tail.min(), tail.max()] for tail in tails]).T
        low, high = float(lows.min()), float(highs.max())
        if self.robust:
            start = float(np.median([curve[math.floor(self.START * len(curve))] for curve in curves]))
            low, high = max(low, _fence(lows, -1)), min(high, _fence(highs, 1))
            low, high = np.fmin(low, start), np.fmax(high, start)
        length = max(high - low, 0.02 * abs(high), 1e-6)
        ends = self.data[["low", "high"]] if "low" in self.data and any(short) else pd.DataFrame()
        bottom = max(np.nanmin([low, *ends.to_numpy().ravel()]), low - length / 2) - 0.06 * length
        top = min(np.nanmax([high, *ends.to_numpy().ravel()]), high + length / 2) + 0.06 * length
        cut = tuple(
            f"{mark.label}, to {(least if least < bottom else most):.1f}"
            for mark, least, most in zip(self.marks, lows, highs, strict=True)
            if least < bottom or most > top
        )
        return Range(max(bottom, 0.0) if low >= 0 else bottom, top, cut)

    @cached_property
    def _note(self) -> list[str]:
        """What the axis does not show, in lines that fit below the drawing."""
        text = f"Outside the axis: {'; '.join(self.shown.cut)}" if self.shown.cut else ""
        return wrapped(text, (self.WIDE if self.crowded else 2.3 + NAME_ROOM) - 0.1, LABEL - 1)

    @property
    def _note_height(self) -> float:
        return len(self._note) * LABEL * 1.3 * POINT

    def draw(self, axes: Axes) -> None:
        """The curves with their intervals, and names at their ends."""
        self._frame(axes)
        if self.crowded:
            self._grey(axes, [mark for mark in self.marks if not mark.key])
        for place, mark in enumerate(self.named):
            self._curve(axes, mark, place / len(self.named))
        self._name_ends(axes)
        axes.set_xlabel(self.across_label)
        axes.set_ylabel(self.up_label)
        axes.annotate(
            "\n".join(self._note),
            (0, 0),
            xycoords="axes fraction",
            xytext=(0, -30),
            textcoords="offset points",
            fontsize=LABEL - 1,
            color="0.3",
            va="top",
        )

    def draw_on(self, canvas: Canvas, corner: Corner) -> None:
        """The drawing, and where there are many curves the small ones."""
        super().draw_on(canvas, corner)
        if not self.crowded:
            return
        columns, gap = self._columns, 0.09
        width = (self.WIDE - gap * (columns - 1)) / columns
        rows = -(-len(self.marks) // columns)
        top = corner.bottom - Margins().bottom - self._note_height - (self.STEP - self.SMALL)
        for place, mark in enumerate(self.marks):
            row, column = divmod(place, columns)
            below = Corner(corner.left + column * (width + gap), top - row * self.STEP - self.SMALL)
            axes = add_axes(canvas, below, width, self.SMALL)
            self._frame(axes, small=True)
            self._grey(axes, [other for other in self.marks if other is not mark])
            self._curve(axes, mark)
            end = f"{self.lines[mark.method][-1, 1]:.1f}" if self.robust else ""
            label, size = fitted(mark.label, width - text_width(end, 6.5) - 0.08, LABEL + 0.5)
            axes.set_title(label, fontsize=size, color=style.ink(mark.look.colour), pad=2.5)
            axes.set_title(end, fontsize=6.5, color="0.3", loc="right", pad=2.5)
            lowest = place + columns >= len(self.marks)
            axes.tick_params(labelleft=column == 0, labelbottom=lowest, labelsize=6.5)
            if row == rows // 2 and column == 0:
                axes.set_ylabel(self.up_label, fontsize=7)
            else:
                axes.yaxis.set_label_coords(0, 0)  # no label: nothing need be measured to place it
            if place == len(self.marks) - 1 - (len(self.marks) - 1) % columns + columns // 2:
                axes.set_xlabel(self.across_label, fontsize=7)
            else:
                axes.xaxis.set_label_coords(0, 0)

    def _frame(self, axes: Axes, small: bool = False) -> None:
        """Limits and ticks, the same in every drawing of the panel."""
        low, high = 0.0, 1.01 * max(float(line[:, 0].max()) for line in self.lines.values())
        ticks = [(place, f"{place:,.6g}") for place in round_numbers(low, high, 3 if small else 6)]
        if self.ticks:
            low, high = self.ticks[0][0] - 0.3, self.ticks[-1][0] + 0.3
        axes.set_xlim(low, high)
        axes.set_ylim(self.shown.low, self.shown.high)
        # A small drawing's last number would run into its neighbour's first.
        kept = [tick for tick in self.ticks or ticks if not small or tick[0] <= low + 0.9 * (high - low)]
        axes.set_xticks([place for place, _ in kept], [name for _, name in kept])
        axes.set_yticks(round_numbers(self.shown.low, self.shown.high, 3 if small else 5))
        if self.level is not None:
            axes.axhline(self.level, color="0.3", linewidth=0.8, zorder=1)

    def _curve(self, axes: Axes, mark: Mark, offset: float | None = None) -> None:
        """A curve with its band or bars; that of a single run is thin, and of two both are thin beside their
        mean. ``offset`` (0 to 1) staggers the markers of neighbours, None: none.
        """
        rows, look = self.parts[mark.method], mark.look
        x, y = self.lines[mark.method].T
        if len(rows) == 1:
            axes.axhline(float(y[0]), color=look.colour, linestyle=look.dashes, linewidth=1.2)
            return
        bars = len(rows) <= self.BARS
        runs = int(rows["n"].max()) if "n" in rows else LEAST_RUNS
        if "low" in rows and rows["low"].notna().any():
            low, high = rows["low"].to_numpy(np.float64), rows["high"].to_numpy(np.float64)
            if bars:
                known = np.isfinite(low)
                bars_up = (high - low)[known] / 2
                axes.errorbar(x[known], y[known], bars_up, fmt="none", ecolor=look.colour, elinewidth=0.9)
            else:
                axes.fill_between(x, low, high, color=look.colour, alpha=0.18, linewidth=0)
        elif runs > 1 and "std" in rows:
            apart = rows["std"].to_numpy(np.float64) / math.sqrt(2)  # two runs lie so far from their mean
            axes.plot(x, np.column_stack([y - apart, y + apart]), color=look.colour, linewidth=0.5, alpha=0.6)
        step = 1 if bars else max(1, len(y) // self.MARKERS)
        axes.plot(
            x,
            y,
            color=look.colour,
            linestyle=look.dashes,
            linewidth=0.8 if runs == 1 else 1.4,
            marker=look.marker if offset is not None else "",
            markersize=4,
            **OUTLINED,
            markevery=(int((offset or 0.0) * step), step),
            zorder=3,
        )

    def _grey(self, axes: Axes, marks: Sequence[Mark]) -> None:
        """Curves that are there for comparison."""
        lines = (self.lines[mark.method] for mark in marks)
        several = [line for line in lines if len(line) > 1]
        grey = LineCollection(several, colors=style.OTHERS, linewidths=0.7, zorder=1.5)
        axes.add_collection(grey, autolim=False)

    def _name_ends(self, axes: Axes) -> None:
        """Names right of the axes, each at its curve's end and joined to it, none on top of another."""
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        width, height = self.inches
        lines = [self.lines[mark.method] for mark in self.named]
        across = [1.0 if len(line) == 1 else float(line[-1, 0] - left) / (right - left) for line in lines]
        up = [min(max(float(line[-1, 1] - low) / (high - low), 0.0), 1.0) for line in lines]
        start = 1 + 0.16 / width
        places = spread(up, LABEL * 1.2 * POINT / height)
        for mark, x, y, place in zip(self.named, across, up, places, strict=True):
            label, size = fitted(mark.label, NAME_ROOM, LABEL)
            axes.plot(
                [x, 1 + 0.03 / width, start - 0.03 / width],
                [y, y, place],
                transform=axes.transAxes,
                color=mark.look.colour,
                linewidth=0.6,
                clip_on=False,
                zorder=2,
            )
            axes.text(
                start,
                place,
                label,
                transform=axes.transAxes,
                fontsize=size,
                color=style.ink(mark.look.colour),
                va="center_baseline",
            )


def _fence(values: Numbers, side: int) -> float:
    """Tukey's end beyond which values are far from the others: below them (side -1) or above (1)."""
    first, middle, third = np.quantile(values, (0.25, 0.5, 0.75))
    return float((third if side > 0 else first) + side * 1.5 * max(third - first, 0.02 * abs(middle)))


@dataclass(frozen=True, eq=False)
class Rows(Panel):
    """A row a method from top to bottom, named at the left."""

    ROW: ClassVar[float] = 0.19
    """Inches of a row."""

    @property
    def inches(self) -> tuple[float, float]:
        """As high as its rows."""
        return 2.05, max(0.5, self.ROW * len(self.marks))

    @property
    def margins(self) -> Margins:
        """Room for the names."""
        widest = max(text_width(mark.label, LABEL) for mark in self.marks)
        return Margins()._replace(left=min(widest, NAME_ROOM) + 0.12)

    def rows(self, axes: Axes) -> Iterator[tuple[int, Mark, pd.DataFrame]]:
        """Write the names and draw the limits; then every row's y, and what it shows."""
        places = range(len(self.marks))[::-1]
        names = [in_two_lines(mark.label, NAME_ROOM, LABEL) for mark in self.marks]
        axes.set_yticks(places, [name for name, _ in names], va="center", linespacing=1.0)
        for label, (_, size) in zip(axes.get_yticklabels(), names, strict=True):
            label.set_fontsize(size)
        axes.tick_params(axis="y", length=0, pad=4, labelcolor="black")
        axes.set_ylim(-0.6, len(places) - 0.4)
        axes.grid(visible=False, axis="y")
        for place, mark in zip(places, self.marks, strict=True):
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
    """Means of two ``kinds``, the first filled, the second open, with intervals; ``joined`` by a line."""

    kinds: tuple[str, str] = ("measured", "published")
    joined: bool = False

    def draw(self, axes: Axes) -> None:
        """Points with their bars; the axis need not start at zero, and says where it does."""
        for place, mark, rows in self.rows(axes):
            look = mark.look
            if self.joined:
                axes.plot(
                    rows["mean"], [place] * len(rows), color=look.colour, linewidth=1.6, alpha=0.5, zorder=2
                )
            for kind, inside, size in zip(self.kinds[::-1], ("white", look.colour), (6.0, 4.2), strict=True):
                for mean, low, high in rows.loc[rows["kind"] == kind, ["mean", "low", "high"]].to_numpy(
                    float
                ):
                    axes.errorbar(
                        mean,
                        place,
                        xerr=None if math.isnan(low) else (high - low) / 2,
                        color=look.colour,
                        marker=look.marker,
                        markerfacecolor=inside,
                        markersize=size,
                        elinewidth=0.9,
                        zorder=3,
                    )
        # Bars may be wide: the axis shows all means, and bars as far as these are apart.
        low, high = axis_of(self.data, room=1.0, least=2.0)
        start = max(0, math.floor((low - 1) / 5) * 5)
        axes.set_xlim(start, min(high, 100.0) + 0.03 * (high - start))
        axes.set_xlabel(ACCURACY if start == 0 else f"{ACCURACY}, from {start}")

    def legend(self) -> Iterator[Line2D]:
        """What filled and open points are, if there are some."""
        for kind, inside, size in zip(self.kinds, ("0.2", "white"), (4.2, 6.0), strict=True):
            if (self.data["kind"] == kind).any():
                point = Line2D([], [], linestyle="none", marker="o", color="0.2", label=kind.capitalize())
                point.set(markerfacecolor=inside, markersize=size)
                yield point


def axis_of(data: pd.DataFrame, room: float, least: float) -> tuple[float, float]:
    """Ends of an axis that shows all means, and as much of their intervals as ``room`` times the range of the
    means, at ``least`` so many points.
    """
    means = data["mean"]
    room = max(least, room * (means.max() - means.min()))
    low = max(data["low"].fillna(means).min(), means.min() - room)
    high = min(data["high"].fillna(means).max(), means.max() + room)
    return float(low), float(high)


@dataclass(frozen=True, eq=False)
class Ranks(Rows):
    """Mean ranks, best first, with their intervals; each ``group`` of ties stands on a band of its own."""

    across: ClassVar[int] = 1

    @property
    def inches(self) -> tuple[float, float]:
        """Wider than other rows."""
        return 4.4, max(0.5, 0.22 * len(self.marks))

    @property
    def margins(self) -> Margins:
        """Room for the groups' names at the right."""
        return super().margins._replace(right=0.75)

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
        bands = self.data.assign(place=range(len(groups))[::-1]).groupby(
            (groups != groups.shift()).cumsum(), sort=False
        )
        for number, (_, band) in enumerate(bands):
            top, bottom = band["place"].max() + 0.5, band["place"].min() - 0.5
            if number % 2 == 0:
                axes.axhspan(bottom, top, color="0.955", linewidth=0, zorder=0)
            if pd.notna(band["group"].iloc[0]):
                self._bracket(axes, f"group {band['group'].iloc[0]}", bottom + 0.15, top - 0.15)
        ends = self.data[["low", "mean_rank", "high"]].astype(float).to_numpy()
        axes.set_xlim(min(np.nanmin(ends), 1.0) - 0.3, np.nanmax(ends) + 0.3)
        axes.set_xlabel("Mean rank (1 is the best)")

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

    ``front`` is 1 for methods on the Pareto front.
    """

    x: str = "seconds"
    across_label: str = "Seconds"

    NAME: ClassVar[float] = 6.0
    """Points of the names beside the points."""

    @property
    def inches(self) -> tuple[float, float]:
        """Room for the names inside."""
        return 2.85, 2.5

    def legend(self) -> Iterator[Line2D]:
        """The front."""
        yield Line2D([], [], color="0.8", linewidth=2.5, label="Pareto front")

    def draw(self, axes: Axes) -> None:
        """The front and the points; what costs nothing stands left of a dotted line, at 0."""
        costs = self.data[self.x]
        low, high = (math.log10(end) for end in (costs[costs > 0].min(), costs.max()))
        room = 0.08 * max(high - low, 0.3)
        free, last = 10 ** (low - 3 * room), 10 ** (high + 3 * room)
        data = self.data.assign(x=costs.where(costs > 0, free))
        front = data[data["front"] == 1].sort_values("x")
        axes.plot(
            [*front["x"], last],
            [*front["mean"], front["mean"].iloc[-1]],
            drawstyle="steps-post",
            color="0.8",
            linewidth=2.5,
            solid_capstyle="butt",
            zorder=1,
        )
        points = data.set_index("method")[["x", "mean", "low", "high"]].astype(float)
        numbers = dict(zip(points.index, points.to_numpy(), strict=True))
        for mark in self.marks:
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
            axes.axvline(start, color="0.6", linestyle=":", linewidth=1.0)
            ticks, start = [free, *ticks], 10 ** (low - 4.5 * room)
        axes.set_xticks(ticks, ["0" if tick == free else f"{tick:,.6g}" for tick in ticks])
        axes.minorticks_off()
        axes.set_xlim(start, last)
        bottom, top = axis_of(data, room=0.5, least=2.0)
        axes.set_ylim(bottom - 0.08 * (top - bottom), top + 0.08 * (top - bottom))
        axes.set_xlabel(self.across_label)
        axes.set_ylabel(ACCURACY)
        self._name(axes, points)

    def _name(self, axes: Axes, points: pd.DataFrame) -> None:
        """A name beside each point where it covers no other name and no point; else joined by a line."""
        width, height = self.inches
        (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
        scale = height / (top - bottom)
        across = width * np.log(points["x"] / left) / math.log(right / left)
        up = scale * (points["mean"] - bottom)
        bars = (scale * (points["high"] - points["low"]) / 2).fillna(0.0)
        taken = [(x - 0.04, y - 0.04, x + 0.04, y + 0.04) for x, y in zip(across, up, strict=True)]
        taken += [(x - 0.02, y - bar, x + 0.02, y + bar) for x, y, bar in zip(across, up, bars, strict=True)]
        for mark in sorted(self.marks, key=lambda mark: -float(up[mark.method])):
            x, y = float(across[mark.method]), float(up[mark.method])
            wide, tall = text_width(mark.label, self.NAME), self.NAME * POINT
            box = _free(x, y, wide, tall, taken, self.inches)
            taken.append(box)
            joined = max(abs((box[0] + box[2]) / 2 - x) - wide / 2, abs((box[1] + box[3]) / 2 - y)) > 0.13
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
                arrowprops=arrow if joined else None,
                zorder=5,
            )


Box = tuple[float, float, float, float]
"""Left, bottom, right and top in inches."""


def _free(
    x: float, y: float, wide: float, tall: float, taken: Sequence[Box], inside: tuple[float, float]
) -> Box:
    """A rectangle near a point that overlaps the fewest others, the nearest of those."""

    def overlap(box: Box) -> float:
        outside = max(0.0, -box[0], box[2] - inside[0] - 0.1, -box[1], box[3] - inside[1])
        covered = sum(
            max(0.0, min(box[2], other[2]) - max(box[0], other[0]))
            * max(0.0, min(box[3], other[3]) - max(box[1], other[1]))
            for other in taken
        )
        return round(covered + outside, 6)

    near = 0.055
    candidates = []
    for distance in (0.0, 0.1, 0.2, 0.3, 0.42, 0.55):
        for across, up in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)):
            left = x - wide / 2 + across * (wide / 2 + near + distance / 2)
            bottom = y - tall / 2 + up * (tall / 2 + near * (across == 0) + distance)
            candidates.append((left, bottom, left + wide, bottom + tall))
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

    @property
    def inches(self) -> tuple[float, float]:
        """Square."""
        return 1.35, 1.35

    @property
    def margins(self) -> Margins:
        """Room for two lines of title and the colour bar."""
        return Margins(left=0.42, right=0.6, bottom=0.44, top=0.42)

    def draw(self, axes: Axes) -> None:
        """A square a pair of clients; the colour bar spans this panel's weights."""
        longest = max(self.title.splitlines(), key=len)
        axes.set_title(self.title, fontsize=fitted(longest, 1.9, 7.5)[1])
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
    """A dot for every ``client`` and ``class``, its area by the count ``items`` as a part of ``largest``."""

    largest: int = 1

    @property
    def inches(self) -> tuple[float, float]:
        """Wide enough for the clients."""
        return 2.8, 1.6

    def draw(self, axes: Axes) -> None:
        """The dots."""
        clients, classes = self.data["client"], self.data["class"]
        areas = 60.0 * self.data["items"] / self.largest
        held = areas > 0
        axes.scatter(clients[held], classes[held], s=areas[held], color=style.HUES[0], linewidths=0)
        axes.set_xlim(-0.7, clients.max() + 0.7)
        axes.set_ylim(-0.7, classes.max() + 0.7)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(10, integer=True))
        axes.set_xlabel("Client")
        axes.set_ylabel("Class")


def add_axes(canvas: Canvas, corner: Corner, width: float, height: float) -> Axes:
    """Axes of these inches at a corner."""
    across, up = canvas.get_size_inches()
    return canvas.add_axes((corner.left / across, corner.bottom / up, width / across, height / up))


def round_numbers(low: float, high: float, most: int) -> list[float]:
    """At most so many round numbers between two."""
    ticks = MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(tick) for tick in ticks if low <= tick <= high]


@cache
def text_width(text: str, size: float) -> float:
    """Inches that the widest line of a text takes at a font size in points."""
    font = FontProperties(family="DejaVu Sans", size=size)
    lines = text.splitlines() or [""]
    return max(text_to_path.get_text_width_height_descent(line, font, False)[0] for line in lines) * POINT


def wrapped(text: str, width: float, size: float) -> list[str]:
    """A text in lines of at most so many inches."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def fitted(text: str, width: float, size: float, least: float = 5.5) -> tuple[str, float]:
    """A text and a font size at which it takes at most ``width`` inches: smaller first, then cut short."""
    while size > least and text_width(text, size) > width:
        size -= 0.25
    while len(text) > 1 and text_width(text, size) > width:
        text = f"{text[:-2].rstrip()}…"
    return text, size


def in_two_lines(text: str, width: float, size: float) -> tuple[str, float]:
    """A text in one line or, where that takes more than ``width`` inches, in two of smaller print."""
    if text_width(text, size - 1) <= width:
        return fitted(text, width, size)
    words = text.split()
    halves = ((" ".join(words[:count]), " ".join(words[count:])) for count in range(1, len(words) or 1))
    best = min(halves, key=lambda lines: max(text_width(line, size) for line in lines), default=(text, ""))
    lines = [fitted(line, width, size - 1.5)[0] for line in best if line]
    return "\n".join(lines), size - 1.5


def spread(places: ArrayLike, gap: float) -> Numbers:
    """The places moved as little as it takes to be ``gap`` apart, in the same order."""
    given = np.asarray(places, np.float64)
    order = np.argsort(given, kind="stable")
    steps = gap * np.arange(len(given))
    moved = np.empty(len(given))
    moved[order] = isotonic_regression(given[order] - steps).x + steps
    return moved
