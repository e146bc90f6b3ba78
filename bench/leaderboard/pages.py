"""Writing pages: templates with every value escaped, and addresses from one page to another."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from bench.leaderboard.columns import NONE
from bench.leaderboard.names import file_name
from bench.leaderboard.rows import Row
from bench.report.wording import with_std


def board_page(study: str, dataset: str) -> str:
    """Address of a study's board on a data set, from the site's root."""
    return f"board/{file_name(f'{study}-{dataset}')}.html"


def method_page(method: str) -> str:
    """Address of a method's page, from the site's root."""
    return f"method/{file_name(method)}.html"


def run_page(spec_hash: str) -> str:
    """Address of a run, from the site's root."""
    return f"run.html#{quote(spec_hash)}"


def measured(row: Row) -> str:
    """A row's mean with its std; a dash where there is none."""
    return with_std(row.cell.measured.mean, row.cell.measured.std) if row.cell.measured else NONE


class Pages:
    """The templates of the site; ``write`` fills one and writes it below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._templates = Environment(
            loader=PackageLoader("bench.leaderboard"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self._templates.filters["measured"] = measured
        self._templates.globals.update(board_page=board_page, method_page=method_page, run_page=run_page)

    def write(self, address: str, template: str, **values: Any) -> None:
        """Fill a template; ``root`` leads it back to the site's root."""
        text = self._templates.get_template(template).render(root="../" * address.count("/"), **values)
        (self._folder / address).write_text(text, encoding="utf-8", newline="\n")
