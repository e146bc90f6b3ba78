"""Texts in figures: their font, how wide they are, and how they are made to fit.

The font is DejaVu Sans without what only typesetting needs. Every PDF embeds the letters it uses. Taking
them out of the whole font takes as long as drawing a small figure, most of it for tables of ligatures,
scripts and formulas that no figure needs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from fontTools import subset  # type: ignore[import-untyped]
from matplotlib.font_manager import FontProperties, findfont, fontManager
from matplotlib.textpath import text_to_path
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

ORIGIN = "DejaVu Sans"

NAME = "Bench Sans"

LETTERS = ((0x20, 0x24F), (0x370, 0x3FF), (0x2000, 0x206F), (0x2100, 0x22FF), (0x2500, 0x27BF))
"""Latin, Greek, punctuation, arrows, operators and symbols; others are taken from the whole font."""

UNUSED = ("GSUB", "GPOS", "GDEF", "MATH", "kern", "FFTM")

WORD = re.compile(r"(?:\d+(?:[.,]\d+)*\s+)*\S+")
"""A word, with the numbers before it."""

NUMBER = re.compile(r"\n\d")

_folder = TemporaryDirectory(prefix="bench-font-")

POINT = 1 / 72
"""Inches of a point, the unit of font sizes."""

LABEL = 7.0
"""Points of the names of curves and rows."""

NAME_ROOM = 1.6
"""Inches that a name beside the axes may take."""


@cache
def families() -> list[str]:
    """The fonts in which figures are drawn, in their order; the first is made once a process."""
    options = subset.Options(glyph_names=True, layout_features=[])
    options.drop_tables += list(UNUSED)
    font = subset.load_font(findfont(ORIGIN), options)
    font.recalcTimestamp = False  # equal figures give equal bytes
    letters = subset.Subsetter(options)
    letters.populate(unicodes=[code for start, end in LETTERS for code in range(start, end + 1)])
    letters.subset(font)
    for record in font["name"].names:
        if record.nameID in (1, 4, 6, 16):
            record.string = NAME.replace(" ", "") if record.nameID == 6 else NAME
    path = Path(_folder.name) / "sans.ttf"
    font.save(path)
    fontManager.addfont(path)
    return [NAME, ORIGIN]


@cache
def text_width(text: str, size: float) -> float:
    """Inches that the widest line of a text takes at a font size in points."""
    font = FontProperties(family=ORIGIN, size=size)
    lines = text.splitlines() or [""]
    return max(text_to_path.get_text_width_height_descent(line, font, False)[0] for line in lines) * POINT


def wrapped_lines(text: str, width: float, size: float) -> list[str]:
    """A text in lines of at most so many inches; a number stays with the word after it, its unit."""
    lines: list[str] = []
    for word in WORD.findall(text):
        candidate = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(candidate, size) <= width:
            lines[-1] = candidate
        else:
            lines.append(word)
    return lines


def fitted_text(text: str, width: float, size: float, min_size: float = 5.5) -> tuple[str, float]:
    """A text and a font size at which it takes at most ``width`` inches: smaller first, then cut short."""
    while size > min_size and text_width(text, size) > width:
        size -= 0.25
    while len(text) > 1 and text_width(text, size) > width:
        text = f"{text[:-2].rstrip()}…"
    return text, size


def in_two_lines(text: str, width: float, size: float) -> tuple[str, float]:
    """A text in one line or, where that takes more than ``width`` inches, in two of smaller print."""
    if text_width(text, size - 1) <= width:
        return fitted_text(text, width, size)
    lines = [fitted_text(line, width, size - 1.5)[0] for line in _halves(text, size).splitlines()]
    return "\n".join(lines), size - 1.5


def _halves(text: str, size: float) -> str:
    """A text in the two lines that take the least room beside each other, the second of which begins with no
    number if that can be; a single word in one.
    """
    words = text.split()
    pairs = [f"{' '.join(words[:count])}\n{' '.join(words[count:])}" for count in range(1, len(words))]
    return min(pairs, key=lambda pair: (bool(NUMBER.search(pair)), text_width(pair, size)), default=text)


def names_in(texts: Sequence[str], width: float, size: float) -> tuple[list[str], float]:
    """Texts below each other, all in one size: in a line each, where that takes much smaller print in two,
    and cut short where they fit in neither.
    """
    trials = [(1, size - less) for less in (0.0, 0.25, 0.5, 0.75, 1.0)]
    trials += [(2, step) for step in np.arange(size, 5.4, -0.25).tolist()]
    for lines, step in trials:
        names = [
            text if lines == 1 or text_width(text, step) <= width else _halves(text, step) for text in texts
        ]
        if all(text_width(name, step) <= width for name in names):
            return names, step
    cut = [[fitted_text(line, width, step, step)[0] for line in name.splitlines()] for name in names]
    return ["\n".join(lines) for lines in cut], step


def spread(places: ArrayLike, heights: ArrayLike) -> NDArray[np.float64]:
    """The centres of things of some heights, one or one each, moved as little as it takes for them to lie
    beside each other, in the same order.
    """
    wanted_places = np.asarray(places, np.float64)
    order = np.argsort(wanted_places, kind="stable")
    ordered = np.broadcast_to(np.asarray(heights, np.float64), wanted_places.shape)[order]
    steps = np.cumsum(ordered) - ordered / 2
    spread_places = np.empty(len(wanted_places))
    spread_places[order] = isotonic_regression(wanted_places[order] - steps).x + steps
    return spread_places
