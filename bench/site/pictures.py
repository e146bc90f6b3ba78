"""The pictures of a board: rows that share their axes, and where numbers stand on an axis."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

MARGIN = 0.03
"""Share of a picture's width that stays free at either end."""

LEAST_WIDTH = 2.0
"""Points that an axis of accuracy spans at least."""

TASK = ["heading", "scenario", "clients", "point"]
"""Columns of a board's rows whose values the rows of a task share."""


class Scale(NamedTuple):
    """An axis from ``low`` to ``high``."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Where a value stands, in percent of the width; values beyond an end stand at it."""
        width = self.high - self.low or 1.0
        share = min(1.0, max(0.0, (value - self.low) / width))
        return round(100 * (MARGIN + (1 - 2 * MARGIN) * share), 2)

    def end(self, value: float) -> float:
        """Where a line ends that leads to a value: at the picture's edge where the axis does not reach it."""
        return self.at(value) if not self.beyond(value) else 50.0 + 50.0 * self.beyond(value)

    def beyond(self, value: float) -> int:
        """-1 for a value below the axis, 1 for one above it, 0 for one on it."""
        return int(value > self.high) - int(value < self.low)


class TaskRows(NamedTuple):
    """A ranking of a board: the rows of one task in one kind of settings. Tasks share an axis of accuracy
    and one of differences.
    """

    axis: Scale
    differences: Scale
    rows: Sequence[Mapping[str, Any]]


def rankings(rows: pd.DataFrame, entries: Mapping[Hashable, Mapping[str, Any]]) -> Iterator[TaskRows]:
    """The rankings of a board in the order of its rows; ``entries`` are these by their labels."""
    for _, task in rows.groupby(TASK, sort=False):
        ends = _usual(task, ["mean", "published_mean"], ["drawn_low", "drawn_high"]) or [0.0]
        padding = max(0.0, LEAST_WIDTH - (max(ends) - min(ends))) / 2
        axis = Scale(min(ends) - padding, max(ends) + padding)
        gaps = _usual(task, ["difference"], ["low_difference", "high_difference"])
        reach = max([1.0, *map(abs, gaps)])
        for _, part in task.groupby("tuning", sort=False):
            yield TaskRows(axis, Scale(-reach, reach), [entries[label] for label in part.index])


def _usual(rows: pd.DataFrame, centres: list[str], ends: list[str]) -> list[float]:
    """Those of the numbers in some columns that do not lie far from most of the ``centres``."""
    values = [value for name in centres for value in rows[name].dropna()]
    return usual_ends(values, [*values, *(value for name in ends for value in rows[name].dropna())])


def usual_ends(centres: Collection[float], ends: Iterable[float]) -> list[float]:
    """The ``ends`` that lie no further from the middle half of the ``centres`` than its width (at least a
    point): on an axis that held the others, too, nobody would see the intervals of most.
    """
    if not centres:
        return []
    lower, upper = np.quantile(list(centres), (0.25, 0.75))
    reach = max(upper - lower, 1.0)
    return [end for end in ends if lower - reach <= end <= upper + reach]
