"""The picture of the site that other sites show beside a link: what was found, and the ranks behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from bench.figures.layout import settings
from bench.figures.style import ORIGIN, POINT, fitted_text, text_width, wrapped_lines
from bench.pages.templating import records
from bench.studies.ranking import Ranking

FILE = "card.png"
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


def write(path: Path, title: str, sentence: str, ranking: Ranking | None) -> None:
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
        lines = _lines(sentence, width - 2 * EDGE)
        text = "\n".join(lines)
        canvas.text(EDGE / width, top / height, text, fontsize=SENTENCE, color=INK, va="top", linespacing=1.3)
        top -= len(lines) * 1.42 * SENTENCE * POINT + 0.15
        note = ""
        if ranking:
            bottom = EDGE + 2.6 * NOTE * POINT
            rows = _rows(ranking)[: max(1, int((top - bottom) / ROW))]
            count = len(rows)
            names = [fitted_text(" ".join(row["title"].split()), NAME_ROOM, NAME, 15.0) for row in rows]
            room = max(text_width(*name) for name in names) + 0.3
            left = EDGE + room
            box = (left, top - count * ROW, width - left - EDGE - 0.9, count * ROW)
            axes = canvas.add_axes((box[0] / width, box[1] / height, box[2] / width, box[3] / height))
            _draw_ranks(axes, rows)
            _write_names(axes, names, room)
            note = _note(ranking, count)
        canvas.text(EDGE / width, 0.42 / height, note, fontsize=NOTE, color=SOFT, linespacing=1.25)
        canvas.text(1 - EDGE / width, 0.42 / height, "bench", fontsize=NAME, color=ACCENT, ha="right", **bold)
        canvas.savefig(path, format="png", dpi=DPI, facecolor=GROUND, metadata={"Software": None})


def _lines(sentence: str, width: float) -> list[str]:
    """The sentence in at most ``LINES`` lines; a longer one ends in an ellipsis."""
    lines = wrapped_lines(sentence, width, SENTENCE)
    if len(lines) > LINES:
        lines = [*lines[: LINES - 1], fitted_text(f"{lines[LINES - 1]} …", width, SENTENCE, SENTENCE)[0]]
    return lines


def _rows(ranking: Ranking) -> list[dict[str, Any]]:
    """The methods that are measured in every task, as ranks over fewer mean less; all, if none is."""
    rows = records(ranking.table)
    return [row for row in rows if row["tasks"] == len(ranking.tasks)] or rows


def _draw_ranks(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """A row a method: interval and mean rank; filled and coloured in group 1, as on the front page."""
    for place, row in enumerate(rows):
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
        axes.annotate(
            f"{row['rank']:.1f}",
            (1.0, place),
            xycoords=("axes fraction", "data"),
            xytext=(0.85 / POINT, 0),
            textcoords="offset points",
            fontsize=NAME,
            color=INK,
            ha="right",
            va="center_baseline",
        )
    ends = [row[name] for row in rows for name in ("rank", "high") if row[name] is not None]
    axes.set_xlim(0.7, max([*ends, 2.0]) + 0.3)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_axis_off()


def _write_names(axes: Axes, names: Sequence[tuple[str, float]], room: float) -> None:
    """The rows' names, each in its size, so many inches left of the axes."""
    for place, (name, size) in enumerate(names):
        axes.annotate(
            name,
            (0.0, place),
            xycoords=("axes fraction", "data"),
            xytext=(-room / POINT, 0),
            textcoords="offset points",
            fontsize=size,
            color=INK,
            va="center_baseline",
        )


def _note(ranking: Ranking, count: int) -> str:
    """What the ranks are, in two lines."""
    tasks = len(ranking.tasks)
    rows = f"{count} of {len(ranking.table)} methods" if count < len(ranking.table) else "all methods"
    filled = "Filled: cannot be told apart from the best. " if ranking.groups else ""
    return (
        f"Mean rank over {tasks} federation{'s' if tasks != 1 else ''} with 95 % interval, left is better.\n"
        f"{filled}Shown: {rows}."
    )
