"""Pictures: where numbers stand in those of a page, and the card that other sites show beside a link."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from bench.figures.layout import settings
from bench.figures.style import ORIGIN, POINT, fitted_text, text_width, wrapped_lines
from bench.pages.templating import records
from bench.studies.ranking import Ranking

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


CARD = "card.png"
WIDTH, HEIGHT = 1200, 630
"""Pixels, as the sites that show such pictures want them."""

DPI = 100
EDGE = 0.5
"""Inches around all that is drawn."""

TITLE, SENTENCE, NAME, NOTE = 29.0, 20.0, 18.0, 14.5
"""Points; at half the size, as phones show it, the notes are still read."""

LINES = 3
"""Lines that the sentence may take."""

ROW = 0.42
"""Inches of a row of the ranks."""

NAME_ROOM = 3.6
"""Inches that the methods' names may take."""

BOLD = 1.15
"""Width of bold letters in that of others."""

GROUND, INK, SOFT, RAIL, ACCENT = "#fbfaf7", "#16202c", "#55606c", "#dcdad3", "#0b6e75"
"""The site's colours."""


def draw_card(path: Path, title: str, sentence: str, ranking: Ranking | None) -> None:
    """Draw a title, the sentence of what was found and as many of the ranks as there is room for, the best
    first; equal ones give equal bytes.
    """
    width, height = WIDTH / DPI, HEIGHT / DPI
    with mpl.rc_context(rc=settings() | {"text.hinting": "no_hinting"}):  # letters as wide as measured
        canvas = Canvas(figsize=(width, height), dpi=DPI, facecolor=GROUND)
        top = height - EDGE
        title, size = fitted_text(title, (width - 2 * EDGE) / BOLD, TITLE, NAME)
        bold: dict[str, Any] = {"family": ORIGIN, "weight": "bold"}
        canvas.text(EDGE / width, top / height, title, fontsize=size, color=INK, va="top", **bold)
        top -= 1.7 * TITLE * POINT
        lines = wrapped_lines(sentence, width - 2 * EDGE, SENTENCE)
        if len(lines) > LINES:
            last_line = f"{lines[LINES - 1]} …"
            lines[LINES - 1 :] = [fitted_text(last_line, width - 2 * EDGE, SENTENCE, SENTENCE)[0]]
        text = "\n".join(lines)
        canvas.text(EDGE / width, top / height, text, fontsize=SENTENCE, color=INK, va="top", linespacing=1.3)
        top -= len(lines) * 1.42 * SENTENCE * POINT + 0.15
        note = ""
        if ranking:
            # Ranks over fewer tasks mean less.
            all_rows = records(ranking.table)
            rows = [row for row in all_rows if row["tasks"] == len(ranking.tasks)] or all_rows
            rows = rows[: max(1, int((top - EDGE - 2.6 * NOTE * POINT) / ROW))]
            names = [fitted_text(" ".join(row["title"].split()), NAME_ROOM, NAME, 15.0) for row in rows]
            room = max(text_width(*name) for name in names) + 0.3
            left, high = EDGE + room, len(rows) * ROW
            box = (left, top - high, width - left - EDGE - 0.9, high)
            axes = canvas.add_axes((box[0] / width, box[1] / height, box[2] / width, box[3] / height))
            _draw_ranks(axes, rows, names, room)
            note = _note(ranking, len(rows))
        canvas.text(EDGE / width, 0.42 / height, note, fontsize=NOTE, color=SOFT, linespacing=1.25)
        canvas.text(1 - EDGE / width, 0.42 / height, "bench", fontsize=NAME, color=ACCENT, ha="right", **bold)
        canvas.savefig(path, format="png", dpi=DPI, facecolor=GROUND, metadata={"Software": None})


def _draw_ranks(
    axes: Axes, rows: Sequence[Mapping[str, Any]], names: Sequence[tuple[str, float]], room: float
) -> None:
    """A row a method, its name in its size so many inches left of the axes, interval and mean rank; filled
    and coloured in group 1, as on the front page.
    """
    beside: dict[str, Any] = {
        "xycoords": ("axes fraction", "data"),
        "textcoords": "offset points",
        "color": INK,
        "va": "center_baseline",
    }
    for place, (row, (name, size)) in enumerate(zip(rows, names, strict=True)):
        colour = ACCENT if row["group"] == 1 else SOFT
        axes.axhline(place, color=RAIL, linewidth=1.2, zorder=1)
        if row["low"] is not None:
            axes.plot([row["low"], row["high"]], [place] * 2, color=colour, linewidth=4.5, zorder=2)
        axes.plot(
            row["rank"],
            place,
            marker="o",
            markersize=13,
            markerfacecolor=colour if row["group"] == 1 else GROUND,
            markeredgecolor=colour,
            markeredgewidth=2.2,
            clip_on=False,
            zorder=3,
        )
        right = (0.85 / POINT, 0)
        axes.annotate(f"{row['rank']:.1f}", (1.0, place), xytext=right, fontsize=NAME, ha="right", **beside)
        axes.annotate(name, (0.0, place), xytext=(-room / POINT, 0), fontsize=size, **beside)
    ends = [row[name] for row in rows for name in ("rank", "high") if row[name] is not None]
    axes.set_xlim(0.7, max([*ends, 2.0]) + 0.3)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_axis_off()


def _note(ranking: Ranking, count: int) -> str:
    """What the ranks are, in two lines."""
    tasks = len(ranking.tasks)
    rows = f"{count} of {len(ranking.table)} methods" if count < len(ranking.table) else "all methods"
    filled = "Filled: cannot be told apart from the best. " if ranking.groups else ""
    return (
        f"Mean rank over {tasks} federation{'s' if tasks != 1 else ''} with 95 % interval, left is better.\n"
        f"{filled}Shown: {rows}."
    )
