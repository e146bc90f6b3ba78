"""Figures as files: PNG, PDF on demand, CSV; drawings are kept by the hash of all that they show."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import signal
import textwrap
import time
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import zip_longest
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from unicodedata import east_asian_width

import matplotlib as mpl
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.figure import SubFigure

from bench.figures import style
from bench.figures.panels import KINDS, ROW_LABEL, Figure, Panel, draw_curves, draw_small_drawings

DPI = 150

LEAST_WIDTH = 5.0
"""Inches that a figure's title needs."""

WIDE, LARGE, SMALL = 7.4, 3.1, 1.1
"""Inches of a figure with a small drawing for every curve: its width, the height of the large drawing, and
that of a row of small ones.
"""

LETTER = 0.056
"""Inches that a letter of a row's label takes on average."""

MANY = 12
"""Figures for which starting further processes pays."""

KEPT_DAYS = 60
"""Days after which a drawing that no report showed is no longer kept."""


def wrapped(text: str, width: float, size: float) -> str:
    """A text in lines of about so many inches at a font size in points; wide signs count twice."""
    share_wide = sum(east_asian_width(sign) in "WF" for sign in text) / max(len(text), 1)
    room = width * 72 / (0.58 * size * (1 + share_wide))
    lines = text.replace(" %", "\N{NO-BREAK SPACE}%").split("\n")
    return "\n".join(textwrap.fill(line, max(10, int(room))) for line in lines)


def draw(figure: Figure) -> Canvas:
    """The figure on a canvas, which lays it out when it is saved."""
    first = figure.panels[0]
    canvas = _with_small_drawings(first) if first.is_crowded else _side_by_side(figure.panels)
    width = canvas.get_figwidth()
    canvas.suptitle(wrapped(figure.title, width - 0.2, 10), x=0.1 / width, ha="left")
    return canvas


def _side_by_side(panels: Sequence[Panel]) -> Canvas:
    kind = KINDS[panels[0].kind]
    across = min(len(panels), kind.across)
    rows = [panels[start : start + across] for start in range(0, len(panels), across)]
    most_marks = [max(len(panel.marks) for panel in row) for row in rows]
    heights = [kind.height + kind.per_row * marks for marks in most_marks]
    size = max(across * kind.width, LEAST_WIDTH), sum(heights) + 0.7
    canvas = Canvas(figsize=size, dpi=DPI, layout="constrained")
    # Below the title, which a legend of the whole figure would cover.
    body = canvas.add_subfigure(canvas.add_gridspec(1, 1)[0])
    grid = body.subplots(len(rows), across, squeeze=False, gridspec_kw={"height_ratios": heights})
    for row, places, marks in zip(rows, grid, most_marks, strict=True):
        for panel, axes in zip_longest(row, places):
            if panel is None:
                axes.remove()
                continue
            kind.draw(axes, panel, **panel.options)
            longest = max((len(mark.label) for mark in panel.marks), default=0)
            beside = LETTER * min(longest, ROW_LABEL) if kind.per_row else 0.0
            axes.set_title(wrapped(panel.title, kind.width - max(0.4, beside), 8.5))
            if kind.per_row:  # rows are as high as those of the panel beside
                axes.set_ylim(bottom=0.4 - marks)
    _add_legend(body)
    return canvas


def _add_legend(body: SubFigure) -> None:
    """A legend above all panels, with every label once."""
    handles: dict[str, Artist] = {}
    for axes in body.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        across = int(body.bbox.width / DPI / (0.06 * max(map(len, handles)) + 0.5))
        columns = min(max(across, 1), len(handles))
        body.legend(list(handles.values()), list(handles), loc="outside upper left", ncols=columns)


def _with_small_drawings(panel: Panel) -> Canvas:
    """Many curves: one drawing of those that matter, and below it every method before all others in grey."""
    count = len(panel.marks)
    columns = min((5, 4, 6), key=lambda columns: -count % columns)
    heights = LARGE, SMALL * math.ceil(count / columns) + 0.3
    canvas = Canvas(figsize=(WIDE, sum(heights) + 0.3), dpi=DPI, layout="constrained")
    grid = canvas.add_gridspec(2, 1, height_ratios=heights)
    above, below = canvas.add_subfigure(grid[0]), canvas.add_subfigure(grid[1])
    large = above.subplots()
    draw_curves(large, panel, shown=[mark for mark in panel.marks if mark.key], **panel.options)
    large.set_title(panel.title)
    _add_legend(above)
    titles = [wrapped(mark.label, 0.6 * WIDE / columns, 7) for mark in panel.marks]
    draw_small_drawings(below.subplots(), panel, large, columns, titles)
    return canvas


class Drawings:
    """Draws figures in so many processes, while the caller goes on making others. A context manager.

    ``folder`` keeps drawings from one report to the next: what is there is not drawn again. None, or a folder
    that cannot be written: nothing is kept. ``pdf``: as PDF, too.
    """

    def __init__(self, folder: Path | None = None, workers: int = 1, pdf: bool = False) -> None:
        self._workers = workers
        self._kinds = (".png", ".pdf") if pdf else (".png",)
        self._temporary = TemporaryDirectory()
        self._folder = Path(self._temporary.name)
        if folder is not None:
            with suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
                TemporaryDirectory(dir=folder).cleanup()
                self._folder = folder
        self._stems: dict[Figure, Path] = {}
        self._queue: list[tuple[Figure, list[str], Path, tuple[str, ...]]] = []
        self._pool: ProcessPoolExecutor | None = None
        self._jobs: list[Future[None]] = []

    def __enter__(self) -> Drawings:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)
        self._temporary.cleanup()

    def begin(self, figure: Figure) -> None:
        """Have a figure drawn, as soon as there are enough for further processes."""
        if figure in self._stems:
            return
        words = _words(figure)
        stem = self._stems[figure] = self._folder / _digest(figure, words)
        if not all(stem.with_suffix(kind).is_file() for kind in self._kinds):
            self._queue.append((figure, style.families(words), stem, self._kinds))
        if self._workers > 1 and (self._pool or len(self._queue) >= MANY):
            self._pool = self._pool or ProcessPoolExecutor(
                self._workers, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN)
            )
            self._jobs += [self._pool.submit(_draw_files, *job) for job in self._queue]
            self._queue.clear()

    def save(self, stems: Mapping[Figure, Path]) -> list[Path]:
        """Write ``STEM.png`` and ``STEM.csv`` of figures, and ``STEM.pdf`` if asked; equal figures give equal
        bytes. Drawings that no report showed for long are forgotten.
        """
        for figure in stems:
            self.begin(figure)
        for job in self._queue:
            _draw_files(*job)
        self._queue.clear()
        for running in self._jobs:
            running.result()
        written = []
        for figure, stem in stems.items():
            stem.parent.mkdir(parents=True, exist_ok=True)
            for kind in self._kinds:
                drawing = self._stems[figure].with_suffix(kind)
                os.utime(drawing)
                written.append(shutil.copyfile(drawing, Path(f"{stem}{kind}")))
            written.append(Path(f"{stem}.csv"))
            written[-1].write_bytes(_csv(figure))
        oldest = time.time() - KEPT_DAYS * 24 * 3600
        for path in self._folder.iterdir():
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)
        return written


def save(figure: Figure, folder: Path) -> list[Path]:
    """Write ``NAME.png``, ``NAME.pdf`` and ``NAME.csv`` into a folder."""
    with Drawings(pdf=True) as drawings:
        return drawings.save({figure: folder / figure.name})


def _draw_files(figure: Figure, fonts: Sequence[str], stem: Path, kinds: Sequence[str]) -> None:
    with mpl.rc_context(rc={**style.RC, "font.family": fonts}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # said once, by ``style.families``
        canvas = draw(figure)
        for kind in kinds:
            part = stem.with_suffix(f".{os.getpid()}.part")
            if kind == ".png":
                # Not by savefig, which draws a figure with a layout twice.
                FigureCanvasAgg(canvas).print_png(part, pil_kwargs={"compress_level": 4})
            else:
                canvas.savefig(part, format="pdf", metadata={"CreationDate": None})  # equal ones, equal bytes
            part.replace(stem.with_suffix(kind))  # at once: another report may read the same folder


def _csv(figure: Figure) -> bytes:
    data = pd.concat([panel.data for panel in figure.panels], ignore_index=True)
    return data.to_csv(index=False, float_format="%.4f", lineterminator="\n").encode()


def _words(figure: Figure) -> str:
    """All that a drawing depends on beside its rows, what is written on it included."""
    panels = [
        (panel.kind, panel.title, len(panel.data), panel.marks, panel.options) for panel in figure.panels
    ]
    return repr((figure.title, panels))


def _digest(figure: Figure, words: str) -> str:
    """A hash over all that a drawing depends on: its rows, kind and words, this code and matplotlib."""
    parts = [_version(), words.encode(), _csv(figure)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


@cache
def _version() -> bytes:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return b"\0".join([mpl.__version__.encode(), *(path.read_bytes() for path in sources)])
