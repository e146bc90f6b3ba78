"""Texts in figures: how wide they are, and how they are made to fit."""

from __future__ import annotations

from functools import cache

import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

POINT = 1 / 72
"""Inches of a point, the unit of font sizes."""

LABEL = 7.0
"""Points of the names of curves and rows."""

NAME_ROOM = 1.6
"""Inches that a name beside the axes may take."""


@cache
def text_width(text: str, size: float) -> float:
    """Inches that the widest line of a text takes at a font size in points."""
    font = FontProperties(family="DejaVu Sans", size=size)
    lines = text.splitlines() or [""]
    return max(text_to_path.get_text_width_height_descent(line, font, False)[0] for line in lines) * POINT


def wrapped(text: str, width: float, size: float) -> list[str]:
    """A text in lines of at most so many inches."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def fitted(text: str, width: float, size: float, least: float = 5.5) -> tuple[str, float]:
    """A text and a font size at which it takes at most ``width`` inches: smaller first, then cut short."""
    while size > least and text_width(text, size) > width:
        size -= 0.25
    while len(text) > 1 and text_width(text, size) > width:
        text = f"{text[:-2].rstrip()}…"
    return text, size


def in_two_lines(text: str, width: float, size: float) -> tuple[str, float]:
    """A text in one line or, where that takes more than ``width`` inches, in two of smaller print."""
    if text_width(text, size - 1) <= width:
        return fitted(text, width, size)
    words = text.split()
    halves = ((" ".join(words[:count]), " ".join(words[count:])) for count in range(1, len(words) or 1))
    best = min(halves, key=lambda lines: max(text_width(line, size) for line in lines), default=(text, ""))
    lines = [fitted(line, width, size - 1.5)[0] for line in best if line]
    return "\n".join(lines), size - 1.5


def spread(places: ArrayLike, gap: float) -> NDArray[np.float64]:
    """The places moved as little as it takes to be ``gap`` apart, in the same order."""
    given = np.asarray(places, np.float64)
    order = np.argsort(given, kind="stable")
    steps = gap * np.arange(len(given))
    moved = np.empty(len(given))
    moved[order] = isotonic_regression(given[order] - steps).x + steps
    return moved
