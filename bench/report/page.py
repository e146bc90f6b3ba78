"""The report's pages: a front page, and one for every document beside its pictures. They ask for nothing
else: no network, no script.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any

from PIL import Image

from bench import __version__
from bench.figures.drawing import DPI
from bench.figures.panels import Figure
from bench.pages.grades import ANSWERS, GRADES
from bench.pages.templating import environment, style_sheet
from bench.report.captions import LEGEND
from bench.report.document import Document, Part
from bench.report.folder import INDEX
from bench.report.table import Table

CSS_DPI = 96
"""Pixels of a browser to the inch."""

SENTENCE = 36
"""Characters above which a text is broken over lines."""


def _image(path: Path) -> dict[str, Any]:
    """The name of a PNG, its size in a browser's pixels, and the kinds of files of the figure."""
    with Image.open(path) as image:
        width, height = (round(pixels * CSS_DPI / DPI) for pixels in image.size)
    kinds = [kind for kind in ("png", "pdf", "csv") if path.with_suffix(f".{kind}").exists()]
    return {"source": path.name, "width": width, "height": height, "kinds": kinds}


def _wordy(table: Table) -> frozenset[int]:
    """The columns that hold whole sentences."""
    values = [(place, value) for _, row in table.rows for place, value in enumerate(row)]
    return frozenset(place for place, value in values if value is not None and len(value.text) > SENTENCE)


def _kinds(document: Document) -> list[tuple[str, list[Figure]]]:
    """A document's figures by what is to be known of them, which those of a kind share."""
    return [(caption, list(part)) for caption, part in groupby(document.figures, lambda each: each.caption)]


def save(parts: Sequence[Part], folder: Path) -> None:
    """Write the front page and the documents' beside the figures, whose PNGs tell their sizes; equal parts
    give equal text.
    """
    templates = environment("bench.report")
    words = {**GRADES, **ANSWERS}
    templates.globals.update(
        wordy=_wordy,
        kinds=_kinds,
        grades=GRADES,
        words=words,
        version=__version__,
        style=style_sheet(),
    )

    def write(place: PurePosixPath, template: str, **values: Any) -> None:
        page = templates.get_template(template).render(**values).lstrip()
        text = re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", page)
        (folder / place).write_text(text, encoding="utf-8", newline="\n")

    write(PurePosixPath(INDEX), "front.html.j2", parts=parts, legend=LEGEND, root="")
    for part in parts:
        neighbours = zip(part.documents, [None, *part.documents], [*part.documents[1:], None], strict=False)
        for document, previous, following in neighbours:
            images = {figure: _image(folder / f"{document.stem(figure)}.png") for figure in document.figures}
            write(
                document.folder / INDEX,
                "document.html.j2",
                part=part,
                document=document,
                previous=previous,
                following=following,
                images=images,
                root="../../",
            )
