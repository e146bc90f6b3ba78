"""Jinja environments that know the common elements, and the files that every page needs beside it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from bench.pages.grades import grade_look

if TYPE_CHECKING:
    import pandas as pd


def environment(package: str) -> Environment:
    """An environment over ``package/templates`` and the common ``elements.html.j2``; HTML is escaped, an
    unknown name is an error.
    """
    templates = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("bench.pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.globals.update(grade_look=grade_look, records=records)
    return templates


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame by column, None where a number is missing."""
    values = table.astype(object).where(table.notna(), None)
    return [{str(column): value for column, value in row.items()} for row in values.to_dict("records")]


def style_sheet() -> str:
    """The text of ``site.css``, for a page that carries its style in itself."""
    return files("bench.pages").joinpath("assets", "site.css").read_text(encoding="utf-8")


def write_assets(folder: Path, package: str = "bench.pages") -> None:
    """Write the assets of a package into a folder that exists: by default ``site.css`` and ``logo.svg``."""
    for asset in sorted(files(package).joinpath("assets").iterdir(), key=lambda file: file.name):
        (folder / asset.name).write_bytes(asset.read_bytes())
