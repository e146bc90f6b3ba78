"""What is new: the rows of the site that is replaced beside those of the new one, as an append-only log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import pandas as pd

from bench.errors import RequestError

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


@dataclass(frozen=True)
class Change:
    """What happened to the rows of a study on a data set, on a day (ISO); ``rows`` names them."""

    date: str
    kind: str
    study: str
    dataset: str
    title: str
    rows: tuple[str, ...] = ()


def log(old_site: Path, cells: pd.DataFrame, today: date) -> list[Change]:
    """The log of the site at ``old_site`` (which may not exist) with what is new in ``cells``, newest first.

    Raises:
        RequestError: the log there cannot be read; it is never dropped.
    """
    earlier_changes = _read_log(old_site / LOG)
    if not (old_site / CELLS).is_file():
        count, methods = (
            int(cells["mean"].notna().sum()),
            cells.loc[cells["mean"].notna(), "method"].nunique(),
        )
        title = f"First edition: {count:,} measured rows of {methods} methods"
        return [Change(today.isoformat(), "first", "", "", title), *earlier_changes]
    old_cells = pd.read_csv(old_site / CELLS, keep_default_na=False, na_values={"mean": "", "clients": ""})
    return [*_changes(old_cells, cells, today), *earlier_changes]


def write(path: Path, changes: list[Change]) -> None:
    """Write the log as JSON, newest first."""
    document = {
        "format": "bench leaderboard changes",
        "version": 1,
        "changes": [asdict(change) for change in changes],
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8", newline="\n")


def _read_log(path: Path) -> list[Change]:
    if not path.is_file():
        return []
    try:
        records = json.loads(path.read_text(encoding="utf-8"))["changes"]
        return [Change(**{**record, "rows": tuple(record["rows"])}) for record in records]
    except (ValueError, KeyError, TypeError):
        raise RequestError(
            f"{path}: the change log cannot be read: mend or move it, it is never dropped"
        ) from None


def _changes(old_cells: pd.DataFrame, new_cells: pd.DataFrame, today: date) -> Iterator[Change]:
    key = [column for column in KEY if column in old_cells]
    rows: dict[tuple[str, str, str], list[str]] = {}
    old, new = _by_key(old_cells, key), _by_key(new_cells, key)
    for name in dict.fromkeys((*new, *old)):
        row = (new.get(name) or old[name])[0]
        kind, detail = _kind(old[name][1] if name in old else None, new[name][1] if name in new else None)
        if kind:
            place = f"{row['line']}, {row['scenario']}, {row['clients']} clients"
            rows.setdefault((row["study"], row["dataset"], kind), []).append(place + detail)
    for (study, dataset, kind), names in rows.items():
        count = f"{len(names)} row{'s' if len(names) > 1 else ''}"
        yield Change(today.isoformat(), kind, study, dataset, KINDS[kind].format(count), tuple(names))


Number = tuple[str, float] | None
"""Verdict and mean of a row with numbers."""


def _by_key(cells: pd.DataFrame, key: list[str]) -> dict[tuple[str, ...], tuple[Mapping[str, str], Number]]:
    rows_by_key: dict[tuple[str, ...], tuple[Mapping[str, str], Number]] = {}
    for row in cells.to_dict("records"):
        text = {str(column): str(value) for column, value in row.items()}
        number = None if pd.isna(row["mean"]) else (text["verdict"], round(float(row["mean"]), 4))
        rows_by_key[tuple(text[column] for column in key)] = text, number
    return rows_by_key


def _kind(old: Number, new: Number) -> tuple[str, str]:
    """A key of ``KINDS`` (or nothing), and the details for the row's name."""
    if old is None or new is None:
        kind = "" if old is new else "measured" if new else "removed"
        return kind, f": {new[1]:.2f}, {new[0]}" if new else ""
    if old[0] != new[0]:
        return "verdict", f": {old[0]}, now {new[0]}"
    return ("number", f": {old[1]:.2f}, now {new[1]:.2f}") if old[1] != new[1] else ("", "")
