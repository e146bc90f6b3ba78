"""Figures: panels with a caption, saved as vector PDF, PNG and the CSV behind them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from bench.report import style
from bench.report.panels.panel import Panel

DPI = 150
LEGEND = 1.5
"""Inches that a legend takes beside the panels."""


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure of one or more panels of the same kind, shown in the document of that name."""

    document: str
    name: str
    caption: str
    panels: Sequence[Panel]


def rows(figure: Figure) -> Iterator[tuple[str, ...]]:
    """The numbers behind a figure, header first."""
    yield figure.panels[0].header
    for panel in figure.panels:
        yield from panel.rows()


def draw(figure: Figure) -> Canvas:
    """The figure, ready to be saved."""
    across = min(len(figure.panels), figure.panels[0].across)
    down = math.ceil(len(figure.panels) / across)
    handles: dict[str, Line2D] = {}
    for panel in figure.panels:
        for each in panel.legend():
            handles.setdefault(str(each.get_label()), each)
    width, height = (max(sizes) for sizes in zip(*(panel.size for panel in figure.panels), strict=True))
    inches = width * across + (LEGEND if handles else 0.0), height * down
    with mpl.rc_context(rc=style.RC):
        canvas = Canvas(figsize=inches, layout="constrained")
        grid = np.asarray(canvas.subplots(down, across, squeeze=False)).ravel()
        for axes, panel in zip(grid, figure.panels, strict=False):
            panel.draw(axes)
        for axes in grid[len(figure.panels) :]:
            axes.set_visible(False)
        if handles:
            canvas.legend(handles=list(handles.values()), loc="outside right upper", frameon=False)
    return canvas


def png(figure: Figure, dpi: int) -> bytes:
    """The figure as PNG; equal figures give equal bytes."""
    made = io.BytesIO()
    with mpl.rc_context(rc=style.RC):
        _save_png(draw(figure), made, dpi)
    return made.getvalue()


def _save_png(canvas: Canvas, to: Path | io.BytesIO, dpi: int) -> None:
    canvas.savefig(to, format="png", dpi=dpi, metadata={"Software": None})


def save(figure: Figure, folder: Path) -> list[Path]:
    """Write ``NAME.pdf``, ``NAME.png`` and ``NAME.csv``; equal figures give equal bytes."""
    paths = [folder / f"{figure.name}.{kind}" for kind in ("pdf", "png", "csv")]
    with mpl.rc_context(rc=style.RC):
        canvas = draw(figure)
        canvas.savefig(paths[0], format="pdf", metadata={"CreationDate": None})
        _save_png(canvas, paths[1], DPI)
    write_csv(paths[2], rows(figure))
    return paths


def write_csv(path: Path, lines: Iterator[tuple[str, ...]] | Sequence[tuple[str, ...]]) -> None:
    """Write lines as CSV with Unix line ends."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)
