"""The whole report as one HTML file that needs nothing else: no network, no script, no other file."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from bench import __version__
from bench.report.captions import LEGEND
from bench.report.figures import DPI, Figure, reduced
from bench.report.table import Document
from bench.report.wording import MARKS

NAME = "report.html"

HEAVY = 11_000_000
"""Bytes of PNG above which figures are embedded with a ``REDUCED``-th of their resolution: as text they grow
by a third.
"""

REDUCED = 2

CSS_DPI = 96
"""Pixels of a browser to the inch."""


@dataclass(frozen=True, eq=False)
class Part:
    """A study: its title, its documents, and their figures."""

    title: str
    documents: Sequence[Document]
    figures: Sequence[Figure]


@dataclass(frozen=True)
class Image:
    """A PNG as a data URI and its width in a browser's pixels."""

    source: str
    width: int


def _image(data: bytes, dpi: int) -> Image:
    (pixels,) = struct.unpack(">I", data[16:20])
    source = f"data:image/png;base64,{base64.b64encode(data).decode('ascii')}"
    return Image(source, round(pixels * CSS_DPI / dpi))


def _images(figures: Iterable[Figure], folder: Path) -> dict[str, Image]:
    """The figures' PNGs out of ``folder``, or smaller ones where those are heavy."""
    found = {figure: (folder / f"{figure.name}.png").read_bytes() for figure in figures}
    if sum(map(len, found.values())) > HEAVY:
        return {figure.name: _image(reduced(data, REDUCED), DPI // REDUCED) for figure, data in found.items()}
    return {figure.name: _image(data, DPI) for figure, data in found.items()}


def _verdict(text: str) -> str:
    """The verdict that an entry ends with, for its colour; empty where there is none."""
    last = text.rpartition(" ")[2]
    return last if last in MARKS else ""


def html(parts: Sequence[Part], folder: Path) -> str:
    """The page; the figures' PNGs are read from ``folder``. Equal parts give equal text."""
    environment = Environment(
        loader=PackageLoader("bench.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["verdict"] = _verdict
    images = _images((figure for part in parts for figure in part.figures), folder)
    template = environment.get_template("report.html.j2")
    return template.render(parts=parts, images=images, version=__version__, legend=LEGEND).lstrip()


def save(parts: Sequence[Part], folder: Path) -> Path:
    """Write ``report.html`` beside the figures."""
    path = folder / NAME
    path.write_text(html(parts, folder), encoding="utf-8", newline="\n")
    return path
