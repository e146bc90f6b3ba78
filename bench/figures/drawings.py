"""Drawings of figures as vector PDF and PNG, kept by the hash of all that they show: drawing takes long."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import fields, is_dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

import matplotlib as mpl
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from bench.figures import layout, style
from bench.figures.layout import DPI, Figure
from bench.studies.frame import write

KINDS = ("pdf", "png")

MANY = 12
"""Figures for which starting further processes pays."""

KEPT_DAYS = 60
"""Days after which a drawing that no report showed is no longer kept."""


class Drawings:
    """Draws figures in so many processes, while the caller goes on making others. A context manager.

    ``folder`` keeps drawings from one report to the next: what is there is not drawn again; None: nothing is
    kept. Further processes are started for ``many`` figures.
    """

    def __init__(self, folder: Path | None = None, workers: int = 1, many: int = MANY) -> None:
        self._workers = workers
        self._many = many
        self._cache = folder
        self._stack = ExitStack()
        self._folder = folder or Path(self._stack.enter_context(TemporaryDirectory()))
        self._digests: dict[Figure, str] = {}
        self._queue: dict[str, Figure] = {}
        self._pool: ProcessPoolExecutor | None = None
        self._jobs: list[Future[None]] = []

    def __enter__(self) -> Drawings:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)
        self._stack.close()

    def begin(self, figure: Figure) -> None:
        """Have a figure drawn, as soon as there are enough for further processes."""
        if figure in self._digests:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        digest = self._digests[figure] = _digest(figure)
        if not all((self._folder / f"{digest}.{kind}").is_file() for kind in KINDS):
            self._queue[digest] = figure
        if self._workers > 1 and (self._pool or len(self._queue) >= self._many):
            self._pool = self._pool or ProcessPoolExecutor(
                self._workers, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN)
            )
            self._jobs += [self._pool.submit(_draw_files, *job, self._folder) for job in self._queue.items()]
            self._queue.clear()

    def save(self, stems: Mapping[Figure, Path]) -> list[Path]:
        """Write ``STEM.pdf``, ``STEM.png`` and ``STEM.csv`` of figures; equal figures give equal bytes."""
        for figure, stem in stems.items():
            self.begin(figure)
            stem.parent.mkdir(parents=True, exist_ok=True)
            write(Path(f"{stem}.csv"), pd.concat([panel.data for panel in figure.panels], ignore_index=True))
        while self._queue:
            _draw_files(*self._queue.popitem(), self._folder)
        for job in self._jobs:
            job.result()
        for figure, stem in stems.items():
            for kind in KINDS:
                drawing = self._folder / f"{self._digests[figure]}.{kind}"
                os.utime(drawing)
                shutil.copyfile(drawing, f"{stem}.{kind}")
        if stems and self._cache is not None:
            _forget(self._cache)
        return [Path(f"{stem}.{kind}") for stem in stems.values() for kind in (*KINDS, "csv")]


def save(figure: Figure, folder: Path) -> list[Path]:
    """Write ``NAME.pdf``, ``NAME.png`` and ``NAME.csv`` into a folder."""
    with Drawings() as drawings:
        return drawings.save({figure: folder / figure.name})


def _draw_files(digest: str, figure: Figure, folder: Path) -> None:
    stem = folder / f"{digest}.{os.getpid()}"
    pdf, png = (stem.with_suffix(f".{kind}.part") for kind in KINDS)
    with mpl.rc_context(rc=style.RC):
        canvas = layout.draw(figure)
        canvas.savefig(pdf, format="pdf", dpi=DPI, metadata={"CreationDate": None})
        canvas.set_dpi(DPI)
        raster = FigureCanvasAgg(canvas)
        raster.draw()
        # Nothing shines through: without that channel files are smaller, and packed in less time.
        size = raster.get_width_height(physical=True)
        image = Image.frombuffer("RGBA", size, raster.buffer_rgba()).convert("RGB")
        image.save(png, "png", dpi=(DPI, DPI), compress_level=4)
    for part, kind in zip((pdf, png), KINDS, strict=True):
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
    """What draws, the modules beside this one that know matplotlib, and its version."""
    sources = (path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    drawing = (text for text in sources if re.search(rb"^(from|import) matplotlib", text, re.MULTILINE))
    return b"\0".join([mpl.__version__.encode(), *drawing])


def _content(value: object) -> Iterator[bytes]:
    """The values of nested dataclasses, sequences and frames; equal ones give equal bytes."""
    if is_dataclass(value):
        yield type(value).__name__.encode()
        for field in fields(value):
            yield from _content(getattr(value, field.name))
    elif isinstance(value, pd.DataFrame):
        for name in value:
            yield f"{name} {value[name].dtype} {value[name].tolist()}".encode()
    elif isinstance(value, (list, tuple)):
        yield f"{type(value).__name__} {len(value)}".encode()
        for item in value:
            yield from _content(item)
    else:
        yield repr(value).encode()
