"""The site's data for programs: ``data/leaderboard.json`` with its schema, ``data/cells.csv``, and an
append-only log of what is new in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, Field, create_model

from bench import __version__
from bench.errors import RequestError
from bench.leaderboard.boards import Boards
from bench.pages.templating import records
from bench.studies import frame
from bench.studies.ranking import TABLE

VERSION = 1
"""Version of the document; it grows when a field goes or changes its meaning, not when one is added."""

_PYTHON = {"string": str, "int64": int, "Int64": int, "float64": float}


def _row(name: str, types: Mapping[str, str], meaning: str) -> type[BaseModel]:
    """The schema of a row of a frame."""
    fields: dict[str, Any] = {column: (_PYTHON[kind] | None, None) for column, kind in types.items()}
    return create_model(name, __doc__=meaning, **fields)


Cell = _row(
    "Cell",
    frame.TYPES,
    "One number of a study's tables beside one published value; scores in percent.",
)
Rank = _row(
    "Rank",
    TABLE,
    "A method over the tasks of a study: mean rank with its 95 % interval, and its group of ties.",
)


class StudyRecord(BaseModel):
    """A study: its ranking, and how many of each paper's published values have which verdict."""

    name: str
    title: str
    ranking: list[Rank]  # type: ignore[valid-type]
    verdicts: dict[str, dict[str, int]]
    boards: list[str]


class Leaderboard(BaseModel):
    """All that the site shows of studies and cells."""

    format: str = "bench leaderboard"
    version: int = Field(description="grows when a field goes or changes its meaning")
    suite: str = Field(description="version of the suite")
    runs: int
    metric: str = Field(description="what clients are scored by; verdicts are of accuracy alone")
    studies: list[StudyRecord]
    cells: list[Cell]  # type: ignore[valid-type]


def write(folder: Path, boards: Boards, table: pd.DataFrame, runs: int) -> None:
    """Write the document, its JSON schema and the ``table`` of the cells as CSV into ``folder``."""
    studies = [
        StudyRecord(
            name=entry.study.name,
            title=entry.study.title,
            ranking=[Rank(**row) for row in records(entry.ranking.table)] if entry.ranking else [],
            verdicts={paper: dict(sorted(counts.items())) for paper, counts in entry.findings.counts.items()},
            boards=list(entry.boards),
        )
        for entry in boards.studies
    ]
    document = Leaderboard(
        version=VERSION,
        suite=__version__,
        runs=runs,
        metric=boards.results.metric,
        studies=studies,
        cells=records(table.round(4)),
    )
    _write(folder / "leaderboard.json", document.model_dump())
    _write(folder / "leaderboard.schema.json", Leaderboard.model_json_schema())
    frame.write(folder / "cells.csv", table)


def _write(path: Path, document: dict[str, Any]) -> None:
    text = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    path.write_text(text + "\n", encoding="ascii", newline="\n")


CELLS = "data/cells.csv"
LOG = "data/changes.json"

KEY = ["study", "table", "dataset", "scenario", "clients", "method", "line", "setting", "point", "measure"]
"""Columns of the cells' frame that name a row."""

KINDS = {
    "measured": "{} measured for the first time",
    "removed": "{} no longer there",
    "verdict": "{} with another verdict",
    "number": "{} with another number",
}
"""What can happen to rows, and how it is said."""


CHANGE = ("date", "kind", "study", "dataset", "title", "rows")
"""What an entry of the log says: what happened to the rows of a study on a data set, on a day (ISO), and
which they are.
"""

Change = dict[str, Any]


def log(old_site: Path, cells: pd.DataFrame, today: date) -> list[Change]:
    """The log of the site at ``old_site`` (which may not exist) with what is new in ``cells``, newest first.

    Raises:
        RequestError: the log there cannot be read; it is never dropped.
    """
    earlier_changes = _read_log(old_site / LOG)
    if not (old_site / CELLS).is_file():
        measured = cells[cells["mean"].notna()]
        title = f"First edition: {len(measured):,} measured rows of {measured['method'].nunique()} methods"
        return [_change(today, "first", "", "", title, []), *earlier_changes]
    old_cells = pd.read_csv(old_site / CELLS, keep_default_na=False, na_values={"mean": "", "clients": ""})
    return [*_changes(old_cells, cells, today), *earlier_changes]


def write_log(path: Path, changes: list[Change]) -> None:
    """Write the log as JSON, newest first."""
    document = {"format": "bench leaderboard changes", "version": 1, "changes": changes}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8", newline="\n")


def _read_log(path: Path) -> list[Change]:
    if not path.is_file():
        return []
    try:
        changes = json.loads(path.read_text(encoding="utf-8"))["changes"]
        return [{name: change[name] for name in CHANGE} for change in changes]
    except (ValueError, KeyError, TypeError):
        raise RequestError(
            f"{path}: the change log cannot be read: mend or move it, it is never dropped"
        ) from None


def _changes(old_cells: pd.DataFrame, new_cells: pd.DataFrame, today: date) -> Iterator[Change]:
    key = [column for column in KEY if column in old_cells]
    old, new = (_by_key(cells, key) for cells in (old_cells, new_cells))
    table = new.merge(old, "outer", key, suffixes=("", "_old"))
    is_new, was_there = table["mean"].notna(), table["mean_old"].notna()
    stayed = is_new & was_there
    texts = {
        "measured": (is_new & ~was_there, ": {mean:.2f}, {verdict}"),
        "removed": (was_there & ~is_new, ""),
        "verdict": (stayed & (table["verdict"] != table["verdict_old"]), ": {verdict_old}, now {verdict}"),
        "number": (stayed & (table["mean"] != table["mean_old"]), ": {mean_old:.2f}, now {mean:.2f}"),
    }
    table["kind"] = ""
    for kind, (is_so, _) in reversed(texts.items()):
        table.loc[is_so, "kind"] = kind
    for group, rows in table[table["kind"] != ""].groupby(["study", "dataset", "kind"]):
        study, dataset, kind = map(str, group)
        text = "{line}, {scenario}, {clients} clients" + texts[kind][1]
        count = f"{len(rows)} row{'s' if len(rows) > 1 else ''}"
        names = [text.format_map(row) for row in rows.to_dict("records")]
        yield _change(today, kind, study, dataset, KINDS[kind].format(count), names)


def _change(today: date, *values: Any) -> Change:
    return dict(zip(CHANGE, (today.isoformat(), *values), strict=True))


def _by_key(cells: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """Verdicts and means of the rows, which texts of their ``key`` name."""
    table = cells[[*key, "verdict", "mean"]].round({"mean": 4})
    return table.astype(dict.fromkeys(key, "str")).drop_duplicates(key, keep="last")
