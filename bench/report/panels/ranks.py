"""Critical-difference diagrams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scikit_posthocs import critical_difference_diagram

from bench.report import style
from bench.report.panels.panel import WIDTH, Panel, number


@dataclass(frozen=True, eq=False)
class RankPanel(Panel):
    """Mean ranks of methods over ``tasks``, with the p values ``[methods, methods]`` of their differences.

    ``difference`` is the critical difference of mean ranks.
    """

    title: str
    methods: tuple[str, ...]
    labels: tuple[str, ...]
    ranks: NDArray[np.float64]
    p: NDArray[np.float64]
    difference: float
    tasks: int
    across: ClassVar[int] = 1

    @property
    def size(self) -> tuple[float, float]:
        """Wide enough for labels on both sides."""
        return 1.6 * WIDTH, 1.2 + 0.22 * len(self.p)

    @property
    def header(self) -> tuple[str, ...]:
        """One row a method, its p value against each method last."""
        shared = ("method", "mean_rank", "tasks", "critical_difference")
        return (*shared, *(f"p_{name}" for name in self.methods))

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Ranks and p values."""
        for method, rank, line in zip(self.methods, self.ranks, self.p, strict=True):
            shared = (number(rank), str(self.tasks), number(self.difference))
            yield (method, *shared, *(f"{value:.6g}" for value in line))

    def draw(self, axes: Axes) -> None:
        """Ranks on a line, bars over those that do not differ."""
        axes.set_title(self.title)
        # Numbers stand for the methods: the library keeps them in sets, whose order differs between
        # processes for text, and with it the bytes of the file.
        numbers = range(len(self.methods))
        made = critical_difference_diagram(
            pd.Series(self.ranks, numbers),
            pd.DataFrame(self.p, numbers, numbers),
            ax=axes,
            label_fmt_left="{label}",
            label_fmt_right="{label}",
            label_props={"fontsize": 8},
            color_palette={place: style.of(self.methods[place]).colour for place in numbers},
            crossbar_props={"color": "0.2"},
            elbow_props={"linewidth": 1.0},
            text_h_margin=0.1,
        )
        for text in made["labels"]:
            place = int(text.get_text())
            text.set_text(f"{self.labels[place]} ({self.ranks[place]:.2f})")
            text.set_color("black")
        # Above the axis' numbers: the library's own bar runs through them.
        best = float(self.ranks.min())
        axes.plot([best, best + self.difference], [1.6, 1.6], color="0.2", linewidth=2)
        axes.text(best + self.difference / 2, 1.8, f"CD {self.difference:.2f}", ha="center", fontsize=8)
        axes.spines["top"].set_visible(True)
        axes.grid(visible=False)
