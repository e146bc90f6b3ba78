"""Fill the templates of this package, and copy the files that every page needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from bench import __version__
from bench.report.document import MARKS, SYMBOLS, css_class, symbol

ASSETS = files("bench.site") / "assets"


class Pages:
    """Writes the pages of one site into a folder. The style sheet and ``assets`` are copied at the start.

    Every template gets ``values``. HTML is escaped; an unknown name is an error.
    """

    def __init__(self, folder: Path, assets: Sequence[str] = (), **values: Any) -> None:
        self._folder = folder
        self.templates = Environment(
            loader=PackageLoader("bench.site"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self.templates.globals.update(grades=list(MARKS), graded_words=SYMBOLS)
        self.templates.globals.update(symbol=symbol, css_class=css_class)
        self.templates.globals.update(records=records, version=__version__, **values)
        (folder / "assets").mkdir()
        for name in ("logo.svg", "site.css", *assets):
            (folder / "assets" / name).write_bytes((ASSETS / name).read_bytes())

    def write(self, address: str, template: str, **values: Any) -> None:
        """Fill a template. It gets ``root``, the way back to the folder. Lines never break before "%"."""
        page = self.templates.get_template(template).render(root="../" * address.count("/"), **values)
        text = re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", page)
        path = self._folder / address
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as dictionaries by column name; None for a missing number."""
    columns = [table[name].astype(object).where(table[name].notna(), None).tolist() for name in table]
    return [dict(zip(map(str, table), row, strict=True)) for row in zip(*columns, strict=True)]
