"""Rows: a method a row, named at the left, with boxes, pairs of means or ranks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib import colors
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from bench.figures.lettering import LABEL, NAME_ROOM, POINT, names_in, text_width
from bench.figures.panels import ACCURACY, OUTLINED, Margins, Mark, Panel, axis_of


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
