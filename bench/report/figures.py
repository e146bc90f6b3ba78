"""Figures: panels with a caption, saved as vector PDF, PNG and the CSV behind them.

Drawing takes longer than everything else of a report, so the files say what they were drawn from, and a
figure whose files say so is not drawn again.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib.resources import files
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from PIL import Image

from bench.report import style
from bench.report.panels.panel import Panel

DPI = 150
PNG_END = b"IEND\xaeB`\x82"
LEGEND = 1.5
"""Inches that a legend takes beside the panels."""

MANY = 12
"""Figures for which starting further processes pays."""


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


def reduced(png: bytes, factor: int) -> bytes:
    """A PNG with a ``factor``-th of its pixels in each direction."""
    small = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        image.convert("RGB").reduce(factor).save(small, format="png")
    return small.getvalue()


def save(figure: Figure, folder: Path) -> list[Path]:
    """Write ``NAME.pdf``, ``NAME.png`` and ``NAME.csv``; equal figures give equal bytes."""
    return save_all([figure], folder)


def save_all(figures: Sequence[Figure], folder: Path, workers: int = 1) -> list[Path]:
    """Write the files of several figures; many are drawn by so many processes."""
    new = [figure for figure in figures if not _drawn(figure, folder)]
    if workers > 1 and len(new) >= MANY:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            list(pool.map(_draw_files, new, repeat(folder)))
    else:
        for figure in new:
            _draw_files(figure, folder)
    for figure in figures:
        write_csv(folder / f"{figure.name}.csv", rows(figure))
    return [folder / f"{figure.name}.{kind}" for figure in figures for kind in ("pdf", "png", "csv")]


def _draw_files(figure: Figure, folder: Path) -> None:
    mark = _mark(figure)
    pdf, png = (folder / f"{figure.name}.{kind}" for kind in ("pdf", "png"))
    with mpl.rc_context(rc=style.RC):
        canvas = draw(figure)
        canvas.savefig(pdf, format="pdf", metadata={"CreationDate": None, "Keywords": mark})
        canvas.savefig(png, format="png", dpi=DPI, metadata={"Software": None, "Source": mark})


def _drawn(figure: Figure, folder: Path) -> bool:
    """Whether the files are whole and say that they show this figure."""
    mark = _mark(figure)
    pdf, png = (folder / f"{figure.name}.{kind}" for kind in ("pdf", "png"))
    return _is_whole(pdf, b"%PDF", mark, b"%%EOF\n") and _is_whole(png, b"\x89PNG", mark, PNG_END)


def _is_whole(path: Path, first: bytes, mark: str, last: bytes) -> bool:
    """Whether a file has these ends and the mark between them."""
    content = path.read_bytes() if path.is_file() else b""
    return content.startswith(first) and content.endswith(last) and mark.encode() in content


def _mark(figure: Figure) -> str:
    """A hash over all that a figure is drawn from: its panels' values, this code and matplotlib."""
    digest = hashlib.sha256(_sources())
    for text in _content(figure.panels):
        digest.update(text + b"\0")
    return f"bench-figure-{digest.hexdigest()}"


@cache
def _sources() -> bytes:
    """What draws: the modules of ``bench.report`` that know matplotlib, and its version."""
    here = files("bench.report")
    modules = [here / "figures.py", here / "style.py"]
    modules += sorted((here / "panels").iterdir(), key=lambda path: path.name)
    texts = [path.read_bytes() for path in modules if path.name.endswith(".py")]
    return b"\0".join([mpl.__version__.encode(), repr(style.orders()).encode(), *texts])


def _content(value: object) -> Iterator[bytes]:
    """The values of nested dataclasses, sequences and arrays; equal ones give equal bytes."""
    if is_dataclass(value):
        yield type(value).__name__.encode()
        for field in fields(value):
            yield from _content(getattr(value, field.name))
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape}".encode()
        yield value.tobytes()
    elif isinstance(value, (list, tuple)):
        yield f"{type(value).__name__} {len(value)}".encode()
        for item in value:
            yield from _content(item)
    else:
        yield repr(value).encode()


def write_csv(path: Path, lines: Iterator[tuple[str, ...]] | Sequence[tuple[str, ...]]) -> None:
    """Write lines as CSV with Unix line ends."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)
