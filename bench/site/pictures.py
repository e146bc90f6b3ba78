"""The pictures of a board: rows that share their axes, and where numbers stand on an axis."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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
        share = min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))
        return round(100 * (MARGIN + (1 - 2 * MARGIN) * share), 2)


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
        ends = usual_ends(task, ["mean", "published_mean"], ["drawn_low", "drawn_high"])
        low, high = (ends.min(), ends.max()) if len(ends) else (0.0, 0.0)
        padding = max(0.0, LEAST_WIDTH - (high - low)) / 2
        gaps = usual_ends(task, ["difference"], ["low_difference", "high_difference"])
        reach = max([1.0, *gaps.abs()])
        for _, part in task.groupby("tuning", sort=False):
            part_rows = [entries[label] for label in part.index]
            yield TaskRows(Scale(low - padding, high + padding), Scale(-reach, reach), part_rows)


def usual_ends(rows: pd.DataFrame, centres: list[str], ends: list[str]) -> pd.Series[float]:
    """The numbers in some columns that lie no further from the middle half of the ``centres`` than its width
    (at least a point): on an axis that held the others, too, nobody would see the intervals of most.
    """
    middle = pd.concat([rows[name] for name in centres])
    lower, upper = middle.quantile(0.25), middle.quantile(0.75)
    reach = max(upper - lower, 1.0)
    numbers: pd.Series[float] = pd.concat([rows[name] for name in (*centres, *ends)])
    return numbers[numbers.between(lower - reach, upper + reach)]
