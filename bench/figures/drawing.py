"""Draw figures into files: PNG, CSV and, on demand, PDF."""

from __future__ import annotations

import os
import shutil
import signal
import sys
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
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.transforms import Bbox
from PIL import Image

from bench.figures import style
from bench.figures.panels import KINDS, Figure
from bench.paths import write_csv

DPI = 150

LEAST_WIDTH, MOST_WIDTH = 5.0, 8.0
"""In inches: the least width of a figure (its title needs it), the most for panels side by side."""

MANY = 12
"""The number of figures from which starting more processes saves time."""


def wrapped(text: str, width: float, size: float) -> str:
    """Wrap a text to lines of about ``width`` inches at a font ``size`` in points. Wide signs count twice."""
    share_wide = sum(east_asian_width(sign) in "WF" for sign in text) / max(len(text), 1)
    room = max(10, int(width * 72 / (0.58 * size * (1 + share_wide))))
    lines = text.replace(" %", "\N{NO-BREAK SPACE}%").split("\n")
    return "\n".join(textwrap.fill(line, room) for line in lines)


def draw(figure: Figure) -> Canvas:
    """Draw the figure on a canvas. The layout is computed when the canvas is saved."""
    draw_panel, panel_width, height, per_method = KINDS[figure.kind]
    panels = figure.panels
    across = min(len(panels), int(MOST_WIDTH // panel_width))
    heights = [height + per_method * rows["method"].nunique() for rows in panels.values()]
    row_heights = [max(heights[start : start + across]) for start in range(0, len(heights), across)]
    width = max(across * panel_width, LEAST_WIDTH)
    canvas = Canvas(figsize=(width, sum(row_heights) + 0.7), dpi=DPI, layout="constrained")
    grid = canvas.add_gridspec(len(row_heights), across, height_ratios=row_heights)
    handles: dict[str, Artist] = {}
    for number, (title, rows) in enumerate(panels.items()):
        axes = canvas.add_subplot(grid[number])
        draw_panel(axes, figure, rows)
        axes.set_title(wrapped(title, panel_width * (0.6 if per_method else 0.9), 8.5))
        axes_handles, labels = axes.get_legend_handles_labels()
        handles.update(zip(labels, axes_handles, strict=True))
    columns = int(width / (0.06 * max(map(len, handles), default=0) + 0.5))
    canvas.legend(
        list(handles.values()),
        list(handles),
        title=wrapped(figure.title, width - 0.2, 10),  # the legend would cover a figure title
        title_fontsize=10,
        loc="outside upper left",
        alignment="left",
        ncols=max(1, min(columns, len(handles))),
    )
    return canvas


class Drawings:
    """Context manager that draws figures. From ``MANY`` figures on, ``workers`` processes draw them while the
    caller continues. ``pdf``: also draw PDF files.
    """

    def __init__(self, workers: int = 1, pdf: bool = False) -> None:
        self._workers = workers
        self._kinds = (".png", ".pdf") if pdf else (".png",)
        self._folder = TemporaryDirectory()
        self._begun: dict[Figure, Path] = {}
        self._queue: list[tuple[Figure, list[str], Path, tuple[str, ...]]] = []
        self._pool: ProcessPoolExecutor | None = None
        self._jobs: dict[Figure, Future[None]] = {}

    def __enter__(self) -> Drawings:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)
        self._folder.cleanup()

    def begin(self, figure: Figure) -> None:
        """Queue a figure. Drawing starts when enough figures wait for more processes, or in ``save``."""
        if figure in self._begun:
            return
        stem = self._begun[figure] = Path(self._folder.name) / str(len(self._begun))
        self._queue.append((figure, style.families(f"{figure} {' '.join(figure.panels)}"), stem, self._kinds))
        if self._workers > 1 and (self._pool or len(self._queue) >= MANY):
            self._pool = self._pool or ProcessPoolExecutor(
                self._workers, get_context("spawn"), _stay_in_the_background
            )
            self._jobs |= {job[0]: self._pool.submit(_draw_files, *job) for job in self._queue}
            self._queue.clear()

    def save(self, stems: Mapping[Figure, Path]) -> None:
        """Write ``STEM.png`` and ``STEM.csv`` of every figure, and ``STEM.pdf`` if asked. Equal figures give
        equal bytes.
        """
        for figure in stems:
            self.begin(figure)
        for job in self._queue:
            _draw_files(*job)
        self._queue.clear()
        for figure, stem in stems.items():
            if figure in self._jobs:
                self._jobs[figure].result()
            stem.parent.mkdir(parents=True, exist_ok=True)
            for kind in self._kinds:
                shutil.move(self._begun[figure].with_suffix(kind), f"{stem}{kind}")
            write_csv(Path(f"{stem}.csv"), figure.data.drop(columns="panel"))


def _stay_in_the_background() -> None:
    """Leave interrupts to the caller, and the first place at a core."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        os.nice(5)


def _draw_files(figure: Figure, fonts: list[str], stem: Path, kinds: tuple[str, ...]) -> None:
    with mpl.rc_context(fname=style.RC), warnings.catch_warnings():
        mpl.rcParams["font.family"] = fonts
        warnings.filterwarnings("ignore", "Glyph .* missing")  # ``style.families`` warns once
        canvas = draw(figure)
        agg = FigureCanvasAgg(canvas)
        ConstrainedLayoutEngine().execute(canvas)
        canvas.set_layout_engine("none")  # drawing and saving would compute the layout again
        for axes in canvas.axes:  # the last digits of a layout change from process to process, and so pixels
            axes.set_position(Bbox(axes.get_position().get_points().round(6)))
        agg.draw()
        # 16 levels of each colour are enough for edges and halve the file.
        image = Image.fromarray(np.asarray(agg.buffer_rgba())[..., :3])
        image = image.point([(level + 8) // 17 * 17 for level in range(256)] * 3)
        image.save(stem.with_suffix(".png"), "png", dpi=(DPI, DPI), compress_level=4)
        if ".pdf" in kinds:  # no date: equal bytes
            canvas.savefig(stem.with_suffix(".pdf"), format="pdf", metadata={"CreationDate": None})
