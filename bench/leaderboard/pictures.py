"""Where numbers stand in the pictures of a page."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

MARGIN = 0.03
"""Share of a picture's width that stays free at either end."""


@dataclass(frozen=True)
class Scale:
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


def scale(values: Iterable[float | None], min_width: float = 0.0) -> Scale:
    """An axis that holds the values, and is at least so wide."""
    numbers = [value for value in values if value is not None] or [0.0]
    low, high = min(numbers), max(numbers)
    padding = max(0.0, min_width - (high - low)) / 2
    return Scale(low - padding, high + padding)


def usual_ends(centres: Collection[float], ends: Iterable[float]) -> list[float]:
    """The ``ends`` that lie no further from the middle half of the ``centres`` than its width (at least a
    point): on an axis that held the others, too, nobody would see the intervals of most.
    """
    if not centres:
        return []
    lower, upper = np.quantile(list(centres), (0.25, 0.75))
    reach = max(upper - lower, 1.0)
    return [end for end in ends if lower - reach <= end <= upper + reach]
