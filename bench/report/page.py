"""The report's page: HTML beside its pictures, which asks for nothing else: no network, no script."""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path

from bench import __version__
from bench.figures.layout import DPI
from bench.pages.grades import GRADES
from bench.pages.templating import environment, style_sheet
from bench.report.captions import LEGEND
from bench.report.folder import INDEX
from bench.report.parts import Part
from bench.report.table import NOWHERE, Table
from bench.report.tables import WIDTH

CSS_DPI = 96
"""Pixels of a browser to the inch."""

NARROW = 8
"""Columns of single words or numbers side by side."""


def _image(folder: Path, source: str) -> dict[str, str | int]:
    """Where a PNG of the folder lies, seen from the page, and its size in a browser's pixels."""
    with (folder / source).open("rb") as file:
        width, height = struct.unpack(">II", file.read(24)[16:])
    return {
        "source": source,
        "width": round(width * CSS_DPI / DPI),
        "height": round(height * CSS_DPI / DPI),
    }


def _blocks(table: Table) -> Iterator[Table]:
    """The table in parts that a page of 1,280 pixels shows without being scrolled."""
    has_published = any(entry.beside for _, entries in table.rows for entry in entries)
    return table.blocks(WIDTH if has_published else NARROW)


def _ranks(part: Part) -> list[dict[Hashable, object]]:
    """The ranking's rows with the ends of their intervals in percent of the axis from the first to the last
    place.
    """
    if part.ranks is None:
        return []
    table = part.ranks.copy()
    last_rank = max(len(table), 2)
    for column in ("rank", "low", "high"):
        table[f"{column}_percent"] = 100.0 * (table[column] - 1) / (last_rank - 1)
    return table.to_dict("records")


def html(parts: Sequence[Part], folder: Path) -> str:
    """The page; sizes of the figures' PNGs are read from ``folder``. Equal parts give equal text."""
    templates = environment("bench.report")
    templates.globals.update(nowhere=NOWHERE, blocks=_blocks, ranks=_ranks, grades=GRADES)
    images = {
        figure: _image(folder, f"{part.file(document, figure.name)}.png")
        for part in parts
        for document in part.documents
        for figure in document.figures
    }
    text = templates.get_template("report.html.j2").render(
        parts=parts, images=images, version=__version__, legend=LEGEND, style=style_sheet()
    )
    return text.lstrip()


def save(parts: Sequence[Part], folder: Path) -> Path:
    """Write ``index.html`` beside the figures."""
    path = folder / INDEX
    path.write_text(html(parts, folder), encoding="utf-8", newline="\n")
    return path
