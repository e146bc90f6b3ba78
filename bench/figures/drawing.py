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
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import zip_longest
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from unicodedata import east_asian_width

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from PIL import Image

from bench.figures import style
from bench.figures.panels import KINDS, Figure, Panel, draw_curves, draw_small_multiples

DPI = 150

LEAST_WIDTH = 5.0
"""Inches that a figure's title needs."""

WIDE, LARGE, SMALL = 7.4, 3.2, 1.1
"""Inches of a figure of many curves: its width, and the heights of the large drawing and a small one."""

MANY = 12
"""Figures for which starting further processes pays."""

KEPT_DAYS = 60
"""Days after which a drawing that no report showed is no longer kept."""


def wrapped(text: str, width: float, size: float) -> str:
    """A text in lines of about so many inches at a font size in points; wide signs count twice."""
    share_wide = sum(east_asian_width(sign) in "WF" for sign in text) / max(len(text), 1)
    room = max(10, int(width * 72 / (0.58 * size * (1 + share_wide))))
    lines = text.replace(" %", "\N{NO-BREAK SPACE}%").split("\n")
    return "\n".join(textwrap.fill(line, room) for line in lines)


def draw(figure: Figure) -> Canvas:
    """The figure on a canvas, which lays it out when it is saved."""
    first = figure.panels[0]
    canvas = _with_small_multiples(first) if first.is_crowded else _side_by_side(figure)
    handles: dict[str, Artist] = {}
    for axes in canvas.axes:
        axes_handles, labels = axes.get_legend_handles_labels()
        handles.update(zip(labels, axes_handles, strict=True))
    width = canvas.get_figwidth()
    across = int(width / (0.06 * max(map(len, handles), default=0) + 0.5))
    canvas.legend(
        list(handles.values()),
        list(handles),
        title=wrapped(figure.title, width - 0.2, 10),  # one of the figure's own would be covered
        title_fontsize=10,
        loc="outside upper left",
        alignment="left",
        ncols=max(1, min(across, len(handles))),
    )
    return canvas


def _side_by_side(figure: Figure) -> Canvas:
    """All panels, each with axes of its own."""
    kind = KINDS[figure.panels[0].kind]
    across = min(len(figure.panels), kind.across)
    rows = math.ceil(len(figure.panels) / across)
    most_marks = max(len(panel.marks) for panel in figure.panels)
    size = max(across * kind.width, LEAST_WIDTH), rows * (kind.height + kind.per_row * most_marks) + 0.7
    canvas = Canvas(figsize=size, dpi=DPI, layout="constrained")
    for axes, panel in zip_longest(canvas.subplots(rows, across, squeeze=False).flat, figure.panels):
        if panel is None:
            axes.remove()
            continue
        kind.draw(axes, panel)
        axes.set_title(wrapped(panel.title, kind.width * (0.6 if kind.per_row else 0.9), 8.5))
        if kind.per_row:
            axes.set_ylim(0.4 - most_marks, 0.6)
    return canvas


def _with_small_multiples(panel: Panel) -> Canvas:
    """Many curves: one drawing of those that matter, and below it every method before all others in grey."""
    count = len(panel.marks)
    columns = min((5, 4, 6), key=lambda columns: -count % columns)
    heights = LARGE, SMALL * math.ceil(count / columns) + 0.2
    canvas = Canvas(figsize=(WIDE, sum(heights) + 0.5), dpi=DPI, layout="constrained")
    large, small = canvas.subplots(2, 1, height_ratios=heights)
    draw_curves(large, panel)
    large.set_title(panel.title)
    titles = [wrapped(mark.label, 0.6 * WIDE / columns, 7) for mark in panel.marks]
    draw_small_multiples(small, panel, large, columns, titles)
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
        self._begun: dict[Figure, tuple[Path, bytes]] = {}
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
        if figure in self._begun:
            return
        rows = pd.concat([panel.data for panel in figure.panels], ignore_index=True)
        csv = rows.to_csv(index=False, float_format="%.4f", lineterminator="\n").encode()
        words = repr((figure.title, [(panel, len(panel.data)) for panel in figure.panels]))
        digest = hashlib.sha256(b"\0".join([_version(), words.encode(), csv])).hexdigest()
        stem = self._folder / digest
        self._begun[figure] = stem, csv
        if not all(stem.with_suffix(kind).is_file() for kind in self._kinds):
            self._queue.append((figure, style.families(words), stem, self._kinds))
        if self._workers > 1 and (self._pool or len(self._queue) >= MANY):
            self._pool = self._pool or ProcessPoolExecutor(
                self._workers, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN)
            )
            self._jobs += [self._pool.submit(_draw_files, *job) for job in self._queue]
            self._queue.clear()

    def save(self, stems: Mapping[Figure, Path]) -> None:
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
        for figure, stem in stems.items():
            stem.parent.mkdir(parents=True, exist_ok=True)
            drawn, csv = self._begun[figure]
            for kind in self._kinds:
                os.utime(drawn.with_suffix(kind))
                shutil.copyfile(drawn.with_suffix(kind), f"{stem}{kind}")
            Path(f"{stem}.csv").write_bytes(csv)
        oldest = time.time() - KEPT_DAYS * 24 * 3600
        for path in self._folder.iterdir():
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)


def _draw_files(figure: Figure, fonts: list[str], stem: Path, kinds: tuple[str, ...]) -> None:
    with mpl.rc_context(rc={**style.RC, "font.family": fonts}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # said once, by ``style.families``
        canvas = draw(figure)
        for kind in kinds:
            part = stem.with_suffix(f".{os.getpid()}.part")
            if kind == ".png":
                agg = FigureCanvasAgg(canvas)
                agg.draw()  # not savefig, which lays a figure out twice
                # 16 levels of each colour do for edges, and make the file half as large.
                pixels = np.asarray(agg.buffer_rgba())[..., :3].astype(np.uint16)
                image = Image.fromarray(((pixels + 8) // 17 * 17).astype(np.uint8))
                image.save(part, "png", dpi=(DPI, DPI), compress_level=4)
            else:
                canvas.savefig(part, format="pdf", metadata={"CreationDate": None})  # equal ones, equal bytes
            part.replace(stem.with_suffix(kind))  # at once: another report may read the same folder


@cache
def _version() -> bytes:
    """What a drawing depends on beside the figure: this code and matplotlib."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return b"\0".join([mpl.__version__.encode(), *(path.read_bytes() for path in sources)])
