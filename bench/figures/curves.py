"""Curves: means along rounds, epochs or points, few in one drawing, many with a small one each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure as Canvas
from matplotlib.markers import CARETDOWN, CARETUP
from numpy.typing import NDArray

from bench.figures import style
from bench.figures.layout import ACCURACY, OUTLINED, Margins, Mark, Panel, add_axes, round_numbers
from bench.figures.style import LABEL, NAME_ROOM, POINT, names_in, spread, text_width, wrapped_lines
from bench.statistics.summary import LEAST_RUNS

Numbers = NDArray[np.float64]

FULL = 100.0
"""The highest accuracy in percent."""


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
    ``ticks`` are names of places along the axis. ``is_robust``: a curve far from the others does not stretch
    the axis; else everything is shown, with a line at ``level``.
    """

    x: str = "round"
    y: str = "mean"
    across_label: str = "Round"
    up_label: str = ACCURACY
    ticks: tuple[tuple[float, str], ...] = ()
    is_robust: bool = True
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
    GAP: ClassVar[float] = 0.09
    """Inches between small drawings side by side."""
    END: ClassVar[float] = 6.5
    """Points of the last value above a small drawing."""

    @property
    def is_crowded(self) -> bool:
        """Whether one drawing cannot hold all curves."""
        return len(self.marks) > self.FEW

    @property
    def named_marks(self) -> list[Mark]:
        """The curves that have their name in the first drawing."""
        return [mark for mark in self.marks if mark.key or not self.is_crowded]

    @property
    def inches(self) -> tuple[float, float]:
        """The first drawing; with small ones it is above them, and its axes end where the names begin."""
        return (self.WIDE - self.margins.right, 1.9) if self.is_crowded else super().inches

    @property
    def margins(self) -> Margins:
        """Room for the names at the right, and for a note and the small drawings below."""
        names, size = self.end_names
        width = max((text_width(name, size) for name in names), default=0.0)
        rows = -(-len(self.marks) // self._columns)
        small_height = rows * self._step + 0.42 if self.is_crowded else 0.0
        plain_margins = Margins()
        bottom = plain_margins.bottom + self._note_height + small_height
        return plain_margins._replace(right=min(width, NAME_ROOM) + 0.32, bottom=bottom)

    @property
    def _columns(self) -> int:
        """Small drawings side by side: the number that leaves the fewest empty places."""
        return min((5, 4, 6), key=lambda columns: -len(self.marks) % columns)

    @property
    def _width(self) -> float:
        """Inches of a small drawing."""
        return (self.WIDE - self.GAP * (self._columns - 1)) / self._columns

    @property
    def _step(self) -> float:
        """Inches from a small drawing to the one below."""
        names, size = self.small_names
        lines = max(name.count("\n") for name in names)
        return self.SMALL + 0.24 + lines * size * 1.2 * POINT

    @cached_property
    def end_names(self) -> tuple[list[str], float]:
        """The names beside the first drawing, in one or two lines each, and the size that they all have."""
        return names_in([mark.label for mark in self.named_marks], NAME_ROOM, LABEL)

    @cached_property
    def small_names(self) -> tuple[list[str], float]:
        """The same of the names above the small drawings, which leave room for the last values."""
        ends = max(text_width(end, self.END) for end in self.ends)
        return names_in([mark.label for mark in self.marks], self._width - ends - 0.12, LABEL + 0.5)

    @property
    def ends(self) -> list[str]:
        """The last value of every curve, where curves end with one that matters."""
        if not self.is_robust:
            return [""] * len(self.marks)
        return [_two_digits(self.lines[mark.method][-1, 1]) for mark in self.marks]

    @cached_property
    def parts(self) -> dict[str, pd.DataFrame]:
        """The rows of every method along the axis, in whatever order the frame has them."""
        return {method: rows.sort_values(self.x, kind="stable") for method, rows in super().parts.items()}

    @cached_property
    def lines(self) -> dict[str, Numbers]:
        """The points ``[points, 2]`` of every method's curve."""
        return {method: rows[[self.x, self.y]].to_numpy(np.float64) for method, rows in self.parts.items()}

    @cached_property
    def y_range(self) -> Range:
        """Where the y axis begins and ends.

        It shows the second half of every long curve, and all of a short one. If ``is_robust``, it leaves out
        what is beyond Tukey's fences around the curves, and names it. Intervals of short curves widen it by
        half of its length at most; at the top, where no curve is cut, those of long ones after their first
        rounds do so, too. No accuracy is above ``FULL``.
        """
        curves = [self.lines[mark.method][:, 1] for mark in self.marks]
        is_short = [len(curve) <= self.BARS or not self.is_robust for curve in curves]
        tails = [
            np.nan_to_num(curve if is_whole else curve[len(curve) // 2 :])
            for curve, is_whole in zip(curves, is_short, strict=True)
        ]
        lows, highs = np.array([[tail.min(), tail.max()] for tail in tails]).T
        low, high = float(lows.min()), float(highs.max())
        if self.is_robust:
            start = float(np.median([curve[math.floor(self.START * len(curve))] for curve in curves]))
            low, high = max(low, _fence(lows, -1)), min(high, _fence(highs, 1))
            low, high = np.fmin(low, start), np.fmax(high, start)
        length = max(high - low, 0.02 * abs(high), 1e-6)
        parts = [self.parts[mark.method] for mark in self.marks]
        lower_ends = [
            part["low"].to_numpy(np.float64)
            for part, is_whole in zip(parts, is_short, strict=True)
            if is_whole and "low" in part
        ]
        upper_ends = [
            part["high"].to_numpy(np.float64)[0 if is_whole else math.floor(self.START * len(part)) :]
            for part, is_whole in zip(parts, is_short, strict=True)
            if "high" in part
        ]
        bottom = max(np.nanmin(np.r_[low, *lower_ends]), low - length / 2) - 0.06 * length
        top = min(np.nanmax(np.r_[high, *upper_ends]), high + length / 2) + 0.06 * length
        if self.up_label == ACCURACY and high <= FULL:
            top = min(top, FULL)
        cut = tuple(
            f"{mark.label}, to {_two_digits(lowest if lowest < bottom else highest)}"
            for mark, lowest, highest in zip(self.marks, lows, highs, strict=True)
            if lowest < bottom or highest > top
        )
        return Range(max(bottom, 0.0) if low >= 0 else bottom, top, cut)

    @cached_property
    def _note(self) -> list[str]:
        """What the axis does not show, in lines that fit below the drawing."""
        text = f"Outside the axis: {'; '.join(self.y_range.cut)}" if self.y_range.cut else ""
        return wrapped_lines(text, (self.WIDE if self.is_crowded else 2.3 + NAME_ROOM) - 0.1, LABEL - 1)

    @property
    def _note_height(self) -> float:
        return len(self._note) * LABEL * 1.3 * POINT

    def draw(self, axes: Axes) -> None:
        """The curves with their intervals, and names at their ends."""
        self._frame(axes)
        if self.is_crowded:
            self._grey(axes, [mark for mark in self.marks if not mark.key])
        for place, mark in enumerate(self.named_marks):
            self._curve(axes, mark, place / len(self.named_marks))
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

    def draw_on(self, canvas: Canvas, left: float, bottom: float) -> None:
        """The drawing, and where there are many curves the small ones."""
        super().draw_on(canvas, left, bottom)
        if not self.is_crowded:
            return
        columns, width, step = self._columns, self._width, self._step
        names, size = self.small_names
        rows = -(-len(self.marks) // columns)
        top = bottom - Margins().bottom - self._note_height - (step - self.SMALL)
        for place, (mark, name, end) in enumerate(zip(self.marks, names, self.ends, strict=True)):
            row, column = divmod(place, columns)
            small_left, small_bottom = left + column * (width + self.GAP), top - row * step - self.SMALL
            axes = add_axes(canvas, small_left, small_bottom, width, self.SMALL)
            self._frame(axes, is_small=True)
            self._grey(axes, [neighbour for neighbour in self.marks if neighbour is not mark])
            self._curve(axes, mark)
            colour = style.ink(mark.look.colour)
            axes.set_title(name, fontsize=size, color=colour, pad=2.5, linespacing=1.0)
            axes.set_title(end, fontsize=self.END, color="0.3", loc="right", pad=2.5)
            self._arrow(axes, mark)
            is_last = place + columns >= len(self.marks)
            axes.tick_params(labelleft=column == 0, labelbottom=is_last, labelsize=6.5)
            if row == rows // 2 and column == 0:
                axes.set_ylabel(self.up_label, fontsize=7)
            else:
                axes.yaxis.set_label_coords(0, 0)  # no label: nothing need be measured to place it
            if place == len(self.marks) - 1 - (len(self.marks) - 1) % columns + columns // 2:
                axes.set_xlabel(self.across_label, fontsize=7)
            else:
                axes.xaxis.set_label_coords(0, 0)

    def _frame(self, axes: Axes, is_small: bool = False) -> None:
        """Limits and ticks, the same in every drawing of the panel."""
        low, high = 0.0, 1.01 * max(float(line[:, 0].max()) for line in self.lines.values())
        ticks = [(place, f"{place:,.6g}") for place in round_numbers(low, high, 3 if is_small else 6)]
        if self.ticks:
            low, high = self.ticks[0][0] - 0.3, self.ticks[-1][0] + 0.3
        axes.set_xlim(low, high)
        axes.set_ylim(self.y_range.low, self.y_range.high)
        # A small drawing's last number would run into its neighbour's first.
        places = [tick for tick in self.ticks or ticks if not is_small or tick[0] <= low + 0.9 * (high - low)]
        axes.set_xticks([place for place, _ in places], [name for _, name in places])
        axes.set_yticks(round_numbers(self.y_range.low, self.y_range.high, 3 if is_small else 5))
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
                mask = np.isfinite(low)
                bars_up = (high - low)[mask] / 2
                axes.errorbar(x[mask], y[mask], bars_up, fmt="none", ecolor=look.colour, elinewidth=0.9)
                for is_cut, edge, tip in (
                    (low < self.y_range.low, self.y_range.low, CARETDOWN),
                    (high > self.y_range.high, self.y_range.high, CARETUP),
                ):
                    if is_cut.any():
                        edges, colour = np.full(is_cut.sum(), edge), look.colour
                        axes.plot(x[is_cut], edges, linestyle="", marker=tip, markersize=5, color=colour)
            else:
                axes.fill_between(x, low, high, color=look.colour, alpha=0.18, linewidth=0)
        elif runs > 1 and "std" in rows:
            gap = rows["std"].to_numpy(np.float64) / math.sqrt(2)  # two runs lie so far from their mean
            axes.plot(x, np.column_stack([y - gap, y + gap]), color=look.colour, linewidth=0.5, alpha=0.6)
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

    def _arrow(self, axes: Axes, mark: Mark) -> None:
        """Where a curve lies of which nothing is inside the axis, and its last value."""
        values, (low, high, _) = self.lines[mark.method][:, 1], self.y_range
        if ((values >= low) & (values <= high)).any():
            return
        is_below = values[-1] < low
        axes.text(
            0.5,
            0.06 if is_below else 0.94,
            f"{'▼' if is_below else '▲'} {_two_digits(values[-1])}",
            transform=axes.transAxes,
            fontsize=LABEL + 0.5,
            color=style.ink(mark.look.colour),
            ha="center",
            va="bottom" if is_below else "top",
            zorder=4,
        )

    def _grey(self, axes: Axes, marks: Sequence[Mark]) -> None:
        """Curves that are there for comparison."""
        lines = (self.lines[mark.method] for mark in marks)
        drawn_lines = [line for line in lines if len(line) > 1]
        grey = LineCollection(drawn_lines, colors=style.OTHERS, linewidths=0.7, zorder=1.5)
        axes.add_collection(grey, autolim=False)

    def _name_ends(self, axes: Axes) -> None:
        """Names right of the axes, each at its curve's end and joined to it, none on top of another."""
        (x_low, x_high), (low, high) = axes.get_xlim(), axes.get_ylim()
        width, height = self.inches
        lines = [self.lines[mark.method] for mark in self.named_marks]
        xs = [1.0 if len(line) == 1 else float(line[-1, 0] - x_low) / (x_high - x_low) for line in lines]
        ys = [min(max(float(line[-1, 1] - low) / (high - low), 0.0), 1.0) for line in lines]
        start = 1 + 0.16 / width
        names, size = self.end_names
        rows = np.array([name.count("\n") + 1 for name in names])
        places = spread(ys, rows * size * 1.2 * POINT / height)
        for mark, label, x, y, place in zip(self.named_marks, names, xs, ys, places, strict=True):
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
                va="center_baseline" if "\n" not in label else "center",
                linespacing=1.0,
            )


def _two_digits(value: float) -> str:
    """A number with one decimal, or as many as two digits that say something take."""
    decimals = 1 if value == 0 else max(1, 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def _fence(values: Numbers, side: int) -> float:
    """Tukey's end beyond which values are far from the others: below them (side -1) or above (1)."""
    lower, middle, upper = np.quantile(values, (0.25, 0.5, 0.75))
    return float((upper if side > 0 else lower) + side * 1.5 * max(upper - lower, 0.02 * abs(middle)))
