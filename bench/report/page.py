"""The report's pages: HTML beside its pictures, which asks for nothing else: no network, no script.

The front page says what was found and has the tables in which methods compete; every document has a page of
its own in its folder.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from bench import __version__
from bench.figures.layout import DPI, Figure
from bench.pages.grades import ANSWERS, GRADES
from bench.pages.templating import environment, style_sheet
from bench.report.captions import LEGEND, Document
from bench.report.folder import INDEX
from bench.report.parts import Part
from bench.report.table import Table
from bench.report.tables import WIDTH

CSS_DPI = 96
"""Pixels of a browser to the inch."""

NARROW = 8
"""Columns of single words or numbers side by side."""

SENTENCE = 36
"""Characters above which a text is broken over lines."""

SHORT = 17
"""Characters of a difference with its verdict of which ``WIDTH`` columns fit; of longer ones one less."""


def _image(stem: Path) -> dict[str, str | int]:
    """The name of a figure's files, and the size of its PNG in a browser's pixels."""
    with stem.with_name(f"{stem.name}.png").open("rb") as file:
        width, height = struct.unpack(">II", file.read(24)[16:])
    return {
        "stem": stem.name,
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


def _title(part: Part, document: Document) -> str:
    """A document's title where its study is named already."""
    return document.title.removeprefix(f"{part.title}: ")


def _address(part: Part, document: Document) -> str:
    """Where a document's page lies, seen from the front page."""
    return f"{part.folder(document)}/{INDEX}"


def _places(document: Document) -> str:
    """The data sets that a document has numbers of, and how many figures stand in it."""
    datasets = dict.fromkeys(cell.column.dataset for cell in document.cells if cell.measured)
    count = len(document.figures)
    figures = f"{count} figure{'s' if count > 1 else ''}" if count else ""
    return "; ".join(filter(None, (", ".join(datasets), figures)))


def html(parts: Sequence[Part], folder: Path) -> Iterator[tuple[str, str]]:
    """The pages' paths within ``folder``, from which sizes of the figures' PNGs are read, and their texts.
    Equal parts give equal texts.
    """
    templates = environment("bench.report")
    templates.globals.update(
        blocks=_blocks,
        wordy=_wordy,
        kinds=_kinds,
        title_of=_title,
        address=_address,
        places_of=_places,
        grades=GRADES,
        words={**GRADES, **ANSWERS},
        parts=parts,
        version=__version__,
        legend=LEGEND,
        style=style_sheet(),
    )

    def page(template: str, **values: Any) -> str:
        text = templates.get_template(template).render(values)
        return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", text.lstrip())

    yield INDEX, page("report.html.j2", root="")
    for part in parts:
        neighbours = (None, *part.documents, None)
        for before, document, after in zip(neighbours, part.documents, neighbours[2:], strict=False):
            stems = {figure: folder / part.file(document, figure.name) for figure in document.figures}
            yield (
                _address(part, document),
                page(
                    "document.html.j2",
                    root="../" * len(part.folder(document).parts),
                    part=part,
                    document=document,
                    images={figure: _image(stem) for figure, stem in stems.items()},
                    before=before,
                    after=after,
                ),
            )


def save(parts: Sequence[Part], folder: Path) -> None:
    """Write the front page, and every document's page beside its figures."""
    for path, text in html(parts, folder):
        (folder / path).write_text(text, encoding="utf-8", newline="\n")
