"""How many items of each class every client has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from bench.report.panels.panel import Panel
from bench.report.settings import Column

LARGEST = 180.0
"""Area of the largest dot, in square points."""


@dataclass(frozen=True, eq=False)
class DotPanel(Panel):
    """Counts ``[clients, classes]`` of one federation as dots; ``largest`` is what the largest dot counts."""

    title: str
    column: Column
    counts: NDArray[np.int64]
    largest: int
    across: ClassVar[int] = 3

    @property
    def header(self) -> tuple[str, ...]:
        """One row a client and class."""
        return ("dataset", "scenario", "clients", "client", "class", "items")

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Every count, zeros too."""
        place = self.column.dataset, self.column.scenario, str(self.column.clients)
        for (client, label), count in np.ndenumerate(self.counts):
            yield (*place, str(client), str(label), str(int(count)))

    def draw(self, axes: Axes) -> None:
        """A dot a client and class that it has, its area by the count."""
        axes.set_title(self.title)
        client, label = np.nonzero(self.counts)
        areas = LARGEST * self.counts[client, label] / self.largest
        axes.scatter(client, label, s=areas, color="#0072B2", linewidths=0)
        axes.set_xlim(-0.7, len(self.counts) - 0.3)
        axes.set_ylim(-0.7, self.counts.shape[1] - 0.3)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(10, integer=True))
        axes.set_xlabel("Client")
        axes.set_ylabel("Class")
