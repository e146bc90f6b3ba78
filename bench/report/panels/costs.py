"""Accuracy against what a run costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from bench.report import style
from bench.report.panels.panel import ACCURACY, WHERE, Panel, handle, number, where
from bench.report.settings import Column

MOST_TICKS = 5

DECADE = 10.0

FRONT = "0.75"

ALIKE = 1.01
"""Costs up to this factor apart are drawn side by side."""


@dataclass(frozen=True, eq=False)
class Priced:
    """A method's mean accuracy in percent over ``n`` seeds with its std (None for one), and its cost."""

    method: str
    label: str
    n: int
    mean: float
    std: float | None
    cost: float


@dataclass(frozen=True, eq=False)
class CostPanel(Panel):
    """Methods of one column, one at least at some cost.

    ``cost`` names the CSV's column, ``axis`` the cost with its unit.
    """

    title: str
    column: Column
    points: tuple[Priced, ...]
    cost: str
    axis: str

    @property
    def header(self) -> tuple[str, ...]:
        """One row a method; ``front`` is 1 on the Pareto front."""
        return (*WHERE, "n", "mean", "std", self.cost, "front")

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Every method's point."""
        best = front(self.points)
        for point in self.points:
            yield (
                *where(self.column, point.method),
                str(point.n),
                number(point.mean),
                number(point.std),
                number(point.cost),
                str(int(point in best)),
            )

    def draw(self, axes: Axes) -> None:
        """Points on a logarithmic axis; what costs nothing stands left of a dotted line, at 0."""
        axes.set_title(self.title)
        costs = [point.cost for point in self.points if point.cost > 0]
        low, high = math.log10(min(costs)), math.log10(max(costs))
        room = 0.08 * max(high - low, 0.3)
        free = 10 ** (low - 3 * room)
        steps = apart([point.cost for point in self.points])
        drawn = {
            point: (point.cost or free) * 10 ** (step * room / 3)
            for point, step in zip(self.points, steps, strict=True)
        }
        last = 10 ** (high + 2 * room)
        best = sorted((drawn[point], point.mean) for point in front(self.points))
        axes.plot(
            [*(x for x, _ in best), last],
            [*(y for _, y in best), best[-1][1]],
            drawstyle="steps-post",
            color=FRONT,
            linewidth=2.5,
            solid_capstyle="butt",
            zorder=1,
        )
        for point, x in drawn.items():
            look = style.of(point.method)
            axes.errorbar(
                x,
                point.mean,
                yerr=point.std,
                color=look.colour,
                marker=look.marker,
                markersize=6.5,
                markeredgecolor="white",
                markeredgewidth=0.6,
                elinewidth=1.0,
                capsize=2,
                zorder=3,
            )
        ticks = log_ticks(10 ** (low - room), 10 ** (high + room))
        start = 10 ** (low - 2 * room)
        axes.set_xscale("log")
        if any(point.cost == 0 for point in self.points):
            axes.axvline(start, color="0.6", linestyle=":", linewidth=1.0)
            ticks, start = [free, *ticks], 10 ** (low - 4 * room)
        axes.set_xticks(ticks, ["0" if tick == free else f"{tick:,.6g}" for tick in ticks])
        axes.minorticks_off()
        axes.margins(y=0.08)
        axes.set_xlim(start, last)
        axes.set_xlabel(self.axis)
        axes.set_ylabel(ACCURACY)

    def legend(self) -> Iterator[Line2D]:
        """The front, and one entry a method."""
        yield Line2D([], [], color=FRONT, linewidth=2.5, label="Pareto front")
        for point in self.points:
            yield handle(point.label, style.of(point.method), line=False)


def front(points: Sequence[Priced]) -> list[Priced]:
    """Points that no other one beats: none is as accurate at less cost, or better at no more. By cost."""
    best: list[Priced] = []
    for point in sorted(points, key=lambda each: (each.cost, -each.mean)):
        if not best or point.mean > best[-1].mean:
            best.append(point)
    return best


def apart(costs: Sequence[float]) -> list[float]:
    """Steps sideways for points of nearly the same cost, centred: 0 where a cost is alone."""
    order = sorted(range(len(costs)), key=costs.__getitem__)
    groups: list[list[int]] = []
    for place in order:
        if groups and costs[place] <= costs[groups[-1][0]] * ALIKE:
            groups[-1].append(place)
        else:
            groups.append([place])
    steps = [0.0] * len(costs)
    for group in groups:
        for step, place in enumerate(group):
            steps[place] = step - (len(group) - 1) / 2
    return steps


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers between ``low`` and ``high``; thinned out where they span decades."""
    if high < DECADE * low:
        found = MaxNLocator(MOST_TICKS, steps=[1, 2, 5, 10]).tick_values(low, high)
        return [float(tick) for tick in found if low <= tick <= high]
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in (1, 3)]
    ticks = [tick for tick in ticks if low <= tick <= high]
    return ticks[:: math.ceil(len(ticks) / MOST_TICKS)]
