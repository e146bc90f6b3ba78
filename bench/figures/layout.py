"""Figures: panels with a caption, and how they are laid out on a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from bench.figures import style
from bench.figures.lettering import POINT, families, wrapped_lines
from bench.figures.panels import Corner, Margins, Panel

DPI = 150
TITLE = 10.5
"""Points of a figure's title."""

LINE = 1.35
"""Height of a line of text, in its font size."""

EDGE = 0.06
"""Inches around a figure."""


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure of one or more panels of the same kind.

    ``title`` says in a line what is shown; what a reader has to know beyond stands in the ``caption``.
    """

    name: str
    caption: str
    panels: Sequence[Panel]
    title: str = ""


def draw(figure: Figure) -> Canvas:
    """The figure, ready to be saved. Every panel knows its size, so nothing is laid out twice."""
    panels_a_row = min(len(figure.panels), figure.panels[0].across)
    row_count = math.ceil(len(figure.panels) / panels_a_row)
    handles: dict[str, Line2D] = {}
    for panel in figure.panels:
        for handle in panel.legend():
            handles.setdefault(str(handle.get_label()), handle)
    margins = Margins(*np.max([panel.margins for panel in figure.panels], axis=0).tolist())
    heights = [
        max(panel.inches[1] for panel in figure.panels[row * panels_a_row : (row + 1) * panels_a_row])
        for row in range(row_count)
    ]
    column = max(panel.inches[0] for panel in figure.panels) + margins.left + margins.right
    width = column * panels_a_row + 2 * EDGE
    title = wrapped_lines(figure.title, width - 2 * EDGE, TITLE)
    key = style.RC["legend.fontsize"] * LINE * 1.6 * POINT if handles else 0.0
    head = len(title) * TITLE * LINE * POINT
    height = head + key + sum(heights) + row_count * (margins.top + margins.bottom) + 2 * EDGE
    with mpl.rc_context(rc=settings()):
        canvas = Canvas(figsize=(width, height))
        top = height - EDGE
        canvas.text(EDGE / width, top / height, "\n".join(title), fontsize=TITLE, va="top")
        if handles:
            canvas.legend(
                handles=list(handles.values()),
                loc="upper left",
                bbox_to_anchor=(EDGE / width, (top - head) / height),
                borderaxespad=0.2,
                borderpad=0.0,
                ncols=len(handles),
                columnspacing=1.5,
                frameon=False,
            )
        top -= head + key
        for row, high in enumerate(heights):
            for place, panel in enumerate(figure.panels[row * panels_a_row : (row + 1) * panels_a_row]):
                panel_left = EDGE + place * column + margins.left
                panel.draw_on(canvas, Corner(panel_left, top - margins.top - panel.inches[1]))
            top -= high + margins.top + margins.bottom
    return canvas


def settings() -> Any:
    """Matplotlib's settings with the font, which each process makes once."""
    return {**style.RC, "font.family": families()}
