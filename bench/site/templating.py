"""Pages from the templates of this package, and the files that every page needs beside it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from bench import __version__
from bench.frames.ranking import Ranking
from bench.report.document import Document, Score
from bench.report.grades import ANSWERS, GRADES, grade_look
from bench.report.table import Table
from bench.studies.study import Study

ASSETS = files("bench.site") / "assets"


class Section(NamedTuple):
    """A study on a front page. A field is empty where the site does not have it.

    notes     sentences below its ranking
    maps      verdicts of the documents in which methods compete with each other, by the documents' names
    boards    data set -> the rows of its board, as ``bench.site.boards.board_rows`` gives them
    counts    paper -> how many of its published values have each verdict
    waiting   methods that are no part of the suite and not ranked: a run of theirs is unverified or
              contradicted, or no run of theirs in a bundle was made again
    measured  number of rows of main tables with numbers, in the usual settings
    study     the study, where it has boards
    """

    name: str
    title: str
    sentences: Sequence[str]
    scores: Sequence[Score]
    ranking: Ranking | None
    notes: Sequence[str] = ()
    maps: Mapping[str, Table] = {}
    documents: Sequence[Document] = ()
    boards: Mapping[str, pd.DataFrame] = {}
    counts: Mapping[str, Counter[str]] = {}
    waiting: Sequence[str] = ()
    measured: int = 0
    study: Study | None = None


def environment(**values: Any) -> Environment:
    """The templates, which all know some values. HTML is escaped, an unknown name is an error."""
    templates = Environment(
        loader=PackageLoader("bench.site"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.globals.update(
        grades=GRADES,
        words={**GRADES, **ANSWERS},
        grade_look=grade_look,
        records=records,
        version=__version__,
        **values,
    )
    return templates


class Pages:
    """Writes the pages of one site into a folder, which gets the style sheet and other ``assets`` at once."""

    def __init__(self, folder: Path, assets: Sequence[str] = (), **values: Any) -> None:
        self._folder, self._templates = folder, environment(**values)
        (folder / "assets").mkdir()
        for name in ("logo.svg", "site.css", *assets):
            (folder / "assets" / name).write_bytes((ASSETS / name).read_bytes())

    def write(self, address: str, template: str, **values: Any) -> None:
        """Fill a template. ``root`` leads it back to the folder; a number keeps its percent sign."""
        page = self._templates.get_template(template).render(root="../" * address.count("/"), **values)
        text = re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", page)
        path = self._folder / address
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame by column, None where a number is missing."""
    columns = [table[name].astype(object).where(table[name].notna(), None).tolist() for name in table]
    return [dict(zip(map(str, table), row, strict=True)) for row in zip(*columns, strict=True)]
