"""Curves: a method's mean over seeds along rounds, local epochs or the points of an experiment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from bench.report import style
from bench.report.panels.panel import ACCURACY, WHERE, Panel, draw_line, handle, number, where
from bench.report.settings import Column


@dataclass(frozen=True, eq=False)
class Curve:
    """A method's mean over ``n`` seeds with its std, along ``x``. A single point is drawn as a level.

    ``look`` replaces the method's own, where several curves show the same method.
    """

    method: str
    label: str
    x: NDArray[np.float64]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    n: int
    look: style.Look | None = None

    @property
    def drawn(self) -> style.Look:
        """How the curve is drawn."""
        return self.look or style.of(self.method)


@dataclass(frozen=True, eq=False)
class CurvePanel(Panel):
    """Curves of one column; ``axis`` is what x counts, ``measured`` what y is."""

    title: str
    column: Column
    curves: tuple[Curve, ...]
    axis: str = "round"
    measured: str = ACCURACY

    @property
    def header(self) -> tuple[str, ...]:
        """One row a point."""
        return (*WHERE, self.axis, "n", "mean", "std")

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Every point of every curve."""
        for curve in self.curves:
            for x, mean, std in zip(curve.x, curve.mean, curve.std, strict=True):
                place = where(self.column, curve.method)
                yield (*place, f"{x:.6g}", str(curve.n), number(mean), number(std))

    def draw(self, axes: Axes) -> None:
        """Lines with a band of one standard deviation."""
        axes.set_title(self.title)
        for curve in self.curves:
            look = curve.drawn
            if len(curve.mean) == 1:
                axes.axhline(float(curve.mean[0]), color=look.colour, linestyle=look.dashes, linewidth=1.1)
                continue
            draw_line(axes, curve.x, curve.mean, look)
            if curve.n > 1:
                low, high = curve.mean - curve.std, curve.mean + curve.std
                axes.fill_between(curve.x, low, high, color=look.colour, alpha=0.16, linewidth=0)
        axes.set_xlim(0, 1.02 * max(float(curve.x[-1]) for curve in self.curves))
        # The first rounds start near zero for every method: what is compared lies above.
        tail = [float(curve.mean[len(curve.mean) // 10 :].min()) for curve in self.curves]
        axes.set_ylim(bottom=max(0.0, math.floor(min(tail) / 5 - 1) * 5))
        axes.set_xlabel(self.axis.capitalize())
        axes.set_ylabel(self.measured)

    def legend(self) -> Iterator[Line2D]:
        """One entry a curve."""
        for curve in self.curves:
            yield handle(curve.label, curve.drawn, marker=len(curve.mean) > 1)


@dataclass(frozen=True, eq=False)
class StagePanel(CurvePanel):
    """Curves over a few places that have names: ``names`` from x to a tick's label."""

    names: tuple[tuple[float, str], ...] = ()
    across: ClassVar[int] = 3

    def draw(self, axes: Axes) -> None:
        """Lines with a bar of one standard deviation, from zero."""
        axes.set_title(self.title)
        for curve in self.curves:
            draw_line(axes, curve.x, curve.mean, curve.drawn)
            if curve.n > 1:
                axes.errorbar(
                    curve.x, curve.mean, yerr=curve.std, fmt="none", ecolor=curve.drawn.colour, capsize=2
                )
        ticks = [x for x, _ in self.names]
        axes.set_xticks(ticks, [label for _, label in self.names])
        axes.set_xlim(ticks[0] - 0.3, ticks[-1] + 0.3)
        axes.set_ylim(0, 1.08 * max(float(curve.mean.max()) for curve in self.curves) or 1.0)
        axes.set_xlabel(self.axis.capitalize())
        axes.set_ylabel(self.measured)
