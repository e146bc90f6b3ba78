"""The folder of a report: a front page, and a folder for every document with page, files and figures."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image

from bench.figures.drawing import DPI, Drawings
from bench.frames.graded_cells import WRITTEN, Results
from bench.paths import replacing_folder, write_csv
from bench.report import render, terminal
from bench.report.captions import LEGEND
from bench.report.document import Document, Part, Table
from bench.report.report import compose
from bench.report.request import Request
from bench.site import folder
from bench.site.templating import Pages
from bench.store.tables import Tables
from bench.studies.study import Study

CSS_DPI = 96
"""Pixels per inch in a browser."""

SENTENCE = 36
"""A longer text (in characters) is broken over lines."""


def write(report: list[Part], out: Path, drawings: Drawings, stamp: str = "") -> list[str]:
    """Write a report and replace an earlier one; unchanged results give byte-identical files.

    Return three texts for the terminal: a summary with the escapes of its colours, a line on runs that come
    with the suite, and a line on the files beside the front page.

    ``stamp`` identifies the inputs of the report (see ``bench.site.folder``).

    Raises:
        RequestError: the folder holds files that are not of a report, or cannot be written.
    """
    folder.check(out)
    with replacing_folder(out) as new_folder:
        documents = [document for part in report for document in part.documents]
        for document in documents:
            _write_files(document, new_folder / document.folder)
        cells = pd.concat([document.cells for document in documents if not document.is_statistic])
        write_csv(new_folder / "cells.csv", cells.loc[cells["primary"], WRITTEN])
        links = {"cells.csv": "All cells as CSV"}
        pages = Pages(new_folder, site="report", links=links, files=list(links), wordy=_wordy)
        pages.write(folder.INDEX, "report.html.j2", sections=report, legend=LEGEND)
        brief = terminal.text_of(terminal.brief(report), colours=True)
        texts = [brief, terminal.remarks(report), terminal.beside(report)]
        for part in report:
            for document in part.documents:
                stems = {figure: new_folder / document.stem(figure) for figure in document.figures}
                drawings.save(stems)  # waits for these drawings
                kinds = [list(figures) for _, figures in groupby(document.figures, lambda one: one.caption)]
                images = {figure: _image(stem) for figure, stem in stems.items()}
                address, names = f"{document.folder}/{folder.INDEX}", {"kinds": kinds, "images": images}
                pages.write(address, "document.html.j2", part=part, document=document, **names)
        folder.seal(new_folder, stamp, texts)
    return texts


def build(
    source: Tables,
    request: Request,
    studies: dict[str, type[Study]],
    out: Path,
    results: Results | None = None,
) -> list[Part]:
    """Call ``compose``, then ``write``. If the request is wrong, nothing is written."""
    with Drawings() as drawings:
        report = compose(source, request, studies, drawings, results)
        write(report, out, drawings)
    return report


def _write_files(document: Document, place: Path) -> None:
    """Write the files of a document except its page and figures: Markdown, LaTeX, text and CSV."""
    place.mkdir(parents=True)
    file_names = {figure: document.stem(figure).name for figure in document.figures}
    texts = {
        "md": render.markdown(document, file_names),
        "tex": render.latex(document),
        "txt": terminal.text_of(terminal.show(document)),
    }
    for kind, text in texts.items():
        (place / f"table.{kind}").write_text(text, encoding="utf-8", newline="\n")
    write_csv(place / "table.csv", document.cells[WRITTEN])
    for name, rows in document.records.items():
        write_csv(place / f"{name}.csv", rows)


def _image(stem: Path) -> dict[str, Any]:
    """The width and height of a figure in a browser's pixels, and the names of its files."""
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "pdf", "csv")]
    with Image.open(paths[0]) as image:
        width, height = (round(pixels * CSS_DPI / DPI) for pixels in image.size)
    return {"width": width, "height": height, "files": [path.name for path in paths if path.exists()]}


def _wordy(table: Table) -> frozenset[int]:
    """The positions of the columns that have a text of more than ``SENTENCE`` characters."""
    values = [(place, value) for _, row in table.rows for place, value in enumerate(row)]
    return frozenset(place for place, value in values if len(value.text) > SENTENCE)
