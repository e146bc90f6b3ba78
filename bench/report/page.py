"""The report's page: HTML beside its pictures, which asks for nothing else: no network, no script."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from bench import __version__
from bench.figures.layout import DPI, Figure
from bench.pages.grades import ANSWERS, GRADES
from bench.pages.templating import environment, style_sheet
from bench.report.captions import LEGEND
from bench.report.folder import INDEX
from bench.report.parts import Part
from bench.report.table import Document, Table
from bench.report.tables import WIDTH

CSS_DPI = 96
"""Pixels of a browser to the inch."""

NARROW = 8
"""Columns of single words or numbers side by side."""

SENTENCE = 36
"""Characters above which a text is broken over lines."""

SHORT = 17
"""Characters of a difference with its verdict of which ``WIDTH`` columns fit; of longer ones one less."""


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
    """The table in parts that a page of 1,280 pixels shows without being scrolled; whole where rows share
    names, by which nobody would find them again in another part.
    """
    labels = [label for label, _ in table.rows]
    if len(set(labels)) < len(labels):
        yield table
        return
    judgements = [
        f"{entry.beside.difference} {entry.beside.verdict}"
        for _, entries in table.rows
        for entry in entries
        if entry.beside
    ]
    longest = max(map(len, judgements), default=0)
    yield from table.blocks((WIDTH if longest <= SHORT else WIDTH - 1) if judgements else NARROW)


def _wordy(table: Table) -> frozenset[int]:
    """The columns that hold whole sentences."""
    lengths = [max(len(row[place].text) for _, row in table.rows) for place in range(len(table.columns))]
    return frozenset(place for place, length in enumerate(lengths) if length > SENTENCE)


def _kinds(document: Document) -> list[tuple[str, list[Figure]]]:
    """A document's figures by what is to be known of them, which those of a kind share."""
    return [(caption, list(part)) for caption, part in groupby(document.figures, lambda each: each.caption)]


def html(parts: Sequence[Part], folder: Path) -> str:
    """The page; sizes of the figures' PNGs are read from ``folder``. Equal parts give equal text."""
    templates = environment("bench.report")
    words = {**GRADES, **ANSWERS}
    templates.globals.update(blocks=_blocks, wordy=_wordy, kinds=_kinds, grades=GRADES, words=words)
    images = {
        figure: _image(folder, f"{part.file(document, figure.name)}.png")
        for part in parts
        for document in part.documents
        for figure in document.figures
    }
    text = templates.get_template("report.html.j2").render(
        parts=parts, images=images, version=__version__, legend=LEGEND, style=style_sheet()
    )
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", text.lstrip())


def save(parts: Sequence[Part], folder: Path) -> Path:
    """Write ``index.html`` beside the figures."""
    path = folder / INDEX
    path.write_text(html(parts, folder), encoding="utf-8", newline="\n")
    return path
