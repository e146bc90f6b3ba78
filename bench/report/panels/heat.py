"""Collaboration matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from bench.report.panels.panel import WHERE, Panel, where
from bench.report.settings import Column


@dataclass(frozen=True, eq=False)
class HeatPanel(Panel):
    """A method's weights ``[clients, clients]`` in one column, mean over ``n`` seeds.

    Row i holds the weights with which client i's model takes up the clients' models.
    """

    title: str
    column: Column
    method: str
    weights: NDArray[np.float64]
    n: int
    across: ClassVar[int] = 4

    @property
    def size(self) -> tuple[float, float]:
        """Nearly square, with a colour bar."""
        return 3.3, 2.9

    @property
    def header(self) -> tuple[str, ...]:
        """One row a weight."""
        return (*WHERE, "n", "client", "from", "weight")

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Every weight."""
        for (client, other), weight in np.ndenumerate(self.weights):
            yield (*where(self.column, self.method), str(self.n), str(client), str(other), f"{weight:.6f}")

    def draw(self, axes: Axes) -> None:
        """A square a pair of clients, darker for larger weights; the colour bar spans this panel's."""
        axes.set_title(self.title)
        image = axes.imshow(self.weights, cmap="cividis_r", interpolation="nearest")
        bar = axes.figure.colorbar(image, ax=axes, shrink=0.9)
        bar.set_label("Weight")
        bar.ax.ticklabel_format(useOffset=False)
        axes.grid(visible=False)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_xlabel("From client")
        axes.set_ylabel("Into client")
