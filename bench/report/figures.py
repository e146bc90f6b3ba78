"""Figures: panels with a caption, saved as vector PDF, PNG and the CSV behind them.

Drawing takes long: what was drawn is kept by the hash of all that it shows.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib.resources import files
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from bench.report import fonts, style
from bench.report.frame import write
from bench.report.plots import POINT, Corner, Margins, Panel, wrapped

DPI = 150
KINDS = ("pdf", "png")

TITLE = 10.5
"""Points of a figure's title."""

LINE = 1.35
"""Height of a line of text, in its font size."""

EDGE = 0.06
"""Inches around a figure."""

MANY = 12
"""Figures for which starting further processes pays."""

KEPT_DAYS = 60
"""Days after which a drawing that no report showed is no longer kept."""


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure of one or more panels of the same kind, shown in the document of that name.

    ``title`` says in a line what is shown; what a reader has to know beyond stands in the ``caption``.
    """

    document: str
    name: str
    caption: str
    panels: Sequence[Panel]
    title: str = ""


def data(figure: Figure) -> pd.DataFrame:
    """The numbers behind a figure, a row each."""
    return pd.concat([panel.data for panel in figure.panels], ignore_index=True)


def draw(figure: Figure) -> Canvas:
    """The figure, ready to be saved. Every panel knows its size, so nothing is laid out twice."""
    across = min(len(figure.panels), figure.panels[0].across)
    down = math.ceil(len(figure.panels) / across)
    handles: dict[str, Line2D] = {}
    for panel in figure.panels:
        for handle in panel.legend():
            handles.setdefault(str(handle.get_label()), handle)
    margins = Margins(*np.max([panel.margins for panel in figure.panels], axis=0).tolist())
    heights = [
        max(panel.inches[1] for panel in figure.panels[row * across : (row + 1) * across])
        for row in range(down)
    ]
    column = max(panel.inches[0] for panel in figure.panels) + margins.left + margins.right
    width = column * across + 2 * EDGE
    title = wrapped(figure.title, width - 2 * EDGE, TITLE)
    key = style.RC["legend.fontsize"] * LINE * 1.6 * POINT if handles else 0.0
    head = len(title) * TITLE * LINE * POINT
    height = head + key + sum(heights) + down * (margins.top + margins.bottom) + 2 * EDGE
    with mpl.rc_context(rc=_settings()):
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
            for place, panel in enumerate(figure.panels[row * across : (row + 1) * across]):
                left = EDGE + place * column + margins.left
                panel.draw_on(canvas, Corner(left, top - margins.top - panel.inches[1]))
            top -= high + margins.top + margins.bottom
    return canvas


def _settings() -> Any:
    """Matplotlib's settings with the font, which each process makes once."""
    return {**style.RC, "font.family": fonts.families()}


def save(figure: Figure, folder: Path) -> list[Path]:
    """Write ``NAME.pdf``, ``NAME.png`` and ``NAME.csv`` into a folder; equal figures give equal bytes."""
    return save_all({figure: folder / figure.name})


def save_all(stems: Mapping[Figure, Path], workers: int = 1, kept: Path | None = None) -> list[Path]:
    """Write ``STEM.pdf``, ``STEM.png`` and ``STEM.csv`` of figures; many are drawn by so many processes.

    ``kept`` is a folder of drawings made before: what is there is copied, and what is drawn goes there.
    """
    digests = {figure: _digest(figure) for figure in stems}
    with ExitStack() as stack:
        folder = kept or Path(stack.enter_context(TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        missing = {
            digest: figure
            for figure, digest in digests.items()
            if not all((folder / f"{digest}.{kind}").is_file() for kind in KINDS)
        }
        # The largest first, so that no process draws one while the others have nothing left.
        new = sorted(missing.items(), key=lambda item: -sum(panel.crowded + 1 for panel in item[1].panels))
        if workers > 1 and len(new) >= MANY:
            with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
                list(pool.map(_draw_files, new, repeat(folder)))
        else:
            for item in new:
                _draw_files(item, folder)
        for figure, stem in stems.items():
            stem.parent.mkdir(parents=True, exist_ok=True)
            for kind in KINDS:
                drawing = folder / f"{digests[figure]}.{kind}"
                os.utime(drawing)
                shutil.copyfile(drawing, f"{stem}.{kind}")
            write(Path(f"{stem}.csv"), data(figure))
        if kept is not None:
            _forget(kept)
    return [Path(f"{stem}.{kind}") for stem in stems.values() for kind in (*KINDS, "csv")]


def _draw_files(item: tuple[str, Figure], folder: Path) -> None:
    digest, figure = item
    metadata: dict[str, dict[str, str | None]] = {"pdf": {"CreationDate": None}, "png": {"Software": None}}
    with mpl.rc_context(rc=_settings()):
        canvas = draw(figure)
        for kind in KINDS:
            part = folder / f"{digest}.{os.getpid()}.part"
            canvas.savefig(part, format=kind, dpi=DPI, metadata=metadata[kind])
            part.replace(folder / f"{digest}.{kind}")  # at once: another report may read the same folder


def _forget(folder: Path) -> None:
    """Remove drawings that no report has shown for long."""
    oldest = time.time() - KEPT_DAYS * 24 * 3600
    for path in folder.iterdir():
        if path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)


def _digest(figure: Figure) -> str:
    """A hash over all that a drawing depends on: its title, its panels' values, this code and matplotlib."""
    digest = hashlib.sha256(_sources())
    for text in _content((figure.title, figure.panels)):
        digest.update(text + b"\0")
    return digest.hexdigest()


@cache
def _sources() -> bytes:
    """What draws: the modules of ``bench.report`` that know matplotlib, and its version."""
    here = files("bench.report")
    texts = [(here / name).read_bytes() for name in ("figures.py", "fonts.py", "plots.py", "style.py")]
    return b"\0".join([mpl.__version__.encode(), *texts])


def _content(value: object) -> Iterator[bytes]:
    """The values of nested dataclasses, sequences and frames; equal ones give equal bytes."""
    if is_dataclass(value):
        yield type(value).__name__.encode()
        for field in fields(value):
            yield from _content(getattr(value, field.name))
    elif isinstance(value, pd.DataFrame):
        yield value.to_csv().encode()
    elif isinstance(value, (list, tuple)):
        yield f"{type(value).__name__} {len(value)}".encode()
        for item in value:
            yield from _content(item)
    else:
        yield repr(value).encode()
