"""Figures as files: PNG, PDF on demand, CSV."""

from __future__ import annotations

import shutil
import signal
import textwrap
import warnings
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor
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
from bench.figures.panels import KINDS, Figure
from bench.paths import write_csv

DPI = 150

LEAST_WIDTH = 5.0
"""Inches that a figure's title needs."""

MANY = 12
"""Figures for which starting further processes pays."""


def wrapped(text: str, width: float, size: float) -> str:
    """A text in lines of about so many inches at a font size in points; wide signs count twice."""
    share_wide = sum(east_asian_width(sign) in "WF" for sign in text) / max(len(text), 1)
    room = max(10, int(width * 72 / (0.58 * size * (1 + share_wide))))
    lines = text.replace(" %", "\N{NO-BREAK SPACE}%").split("\n")
    return "\n".join(textwrap.fill(line, room) for line in lines)


def draw(figure: Figure) -> Canvas:
    """The figure on a canvas, which lays it out when it is saved."""
    kind = KINDS[figure.panels[0].kind]
    across = min(len(figure.panels), kind.across)
    heights = [kind.height + kind.per_mark * len(panel.marks) for panel in figure.panels]
    rows = [max(heights[start : start + across]) for start in range(0, len(heights), across)]
    width = max(across * kind.width, LEAST_WIDTH)
    canvas = Canvas(figsize=(width, sum(rows) + 0.7), dpi=DPI, layout="constrained")
    grid = canvas.add_gridspec(len(rows), across, height_ratios=rows)
    handles: dict[str, Artist] = {}
    for number, panel in enumerate(figure.panels):
        axes = canvas.add_subplot(grid[number])
        kind.draw(axes, panel)
        axes.set_title(wrapped(panel.title, kind.width * (0.6 if kind.per_mark else 0.9), 8.5))
        axes_handles, labels = axes.get_legend_handles_labels()
        handles.update(zip(labels, axes_handles, strict=True))
    columns = int(width / (0.06 * max(map(len, handles), default=0) + 0.5))
    canvas.legend(
        list(handles.values()),
        list(handles),
        title=wrapped(figure.title, width - 0.2, 10),  # one of the figure's own would be covered
        title_fontsize=10,
        loc="outside upper left",
        alignment="left",
        ncols=max(1, min(columns, len(handles))),
    )
    return canvas


class Drawings:
    """Draws figures, many of them in so many processes, while the caller goes on making others. A context
    manager. ``pdf``: as PDF, too.
    """

    def __init__(self, workers: int = 1, pdf: bool = False) -> None:
        self._workers = workers
        self._kinds = (".png", ".pdf") if pdf else (".png",)
        self._folder = TemporaryDirectory()
        self._begun: dict[Figure, Path] = {}
        self._queue: list[tuple[Figure, list[str], Path, tuple[str, ...]]] = []
        self._pool: ProcessPoolExecutor | None = None
        self._jobs: list[Future[None]] = []

    def __enter__(self) -> Drawings:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)
        self._folder.cleanup()

    def begin(self, figure: Figure) -> None:
        """Have a figure drawn, as soon as there are enough for further processes."""
        if figure in self._begun:
            return
        stem = self._begun[figure] = Path(self._folder.name) / str(len(self._begun))
        self._queue.append((figure, style.families(repr(figure)), stem, self._kinds))
        if self._workers > 1 and (self._pool or len(self._queue) >= MANY):
            self._pool = self._pool or ProcessPoolExecutor(
                self._workers, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN)
            )
            self._jobs += [self._pool.submit(_draw_files, *job) for job in self._queue]
            self._queue.clear()

    def save(self, stems: Mapping[Figure, Path]) -> None:
        """Write ``STEM.png`` and ``STEM.csv`` of figures, and ``STEM.pdf`` if asked; equal figures give equal
        bytes.
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
            for kind in self._kinds:
                shutil.move(self._begun[figure].with_suffix(kind), f"{stem}{kind}")
            rows = pd.concat([panel.data for panel in figure.panels], ignore_index=True)
            write_csv(Path(f"{stem}.csv"), rows)


def _draw_files(figure: Figure, fonts: list[str], stem: Path, kinds: tuple[str, ...]) -> None:
    with mpl.rc_context(fname=style.RC), warnings.catch_warnings():
        mpl.rcParams["font.family"] = fonts
        warnings.filterwarnings("ignore", "Glyph .* missing")  # said once, by ``style.families``
        canvas = draw(figure)
        agg = FigureCanvasAgg(canvas)
        agg.draw()  # not savefig, which lays a figure out twice
        # 16 levels of each colour do for edges, and make the file half as large.
        pixels = np.asarray(agg.buffer_rgba())[..., :3].astype(np.uint16)
        image = Image.fromarray(((pixels + 8) // 17 * 17).astype(np.uint8))
        image.save(stem.with_suffix(".png"), "png", dpi=(DPI, DPI), compress_level=4)
        if ".pdf" in kinds:  # equal ones, equal bytes
            canvas.savefig(stem.with_suffix(".pdf"), format="pdf", metadata={"CreationDate": None})
