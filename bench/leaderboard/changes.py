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


def log(old: Path, cells: pd.DataFrame, today: date) -> list[Change]:
    """The log of the site at ``old`` (which may not be there) with what is new in ``cells``, newest first.

    Raises:
        RequestError: the log there cannot be read; it is never dropped.
    """
    earlier = _read(old / LOG)
    if not (old / CELLS).is_file():
        count, methods = (
            int(cells["mean"].notna().sum()),
            cells.loc[cells["mean"].notna(), "method"].nunique(),
        )
        title = f"First edition: {count:,} measured rows of {methods} methods"
        return [Change(today.isoformat(), "first", "", "", title), *earlier]
    before = pd.read_csv(old / CELLS, keep_default_na=False, na_values={"mean": "", "clients": ""})
    return [*_changes(before, cells, today), *earlier]


def write(path: Path, changes: list[Change]) -> None:
    """Write the log as JSON, newest first."""
    document = {
        "format": "bench leaderboard changes",
        "version": 1,
        "changes": [asdict(one) for one in changes],
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8", newline="\n")


def _read(path: Path) -> list[Change]:
    if not path.is_file():
        return []
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["changes"]
        return [Change(**{**one, "rows": tuple(one["rows"])}) for one in found]
    except (ValueError, KeyError, TypeError):
        raise RequestError(
            f"{path}: the change log cannot be read: mend or move it, it is never dropped"
        ) from None


def _changes(before: pd.DataFrame, now: pd.DataFrame, today: date) -> Iterator[Change]:
    key = [column for column in KEY if column in before]
    rows: dict[tuple[str, str, str], list[str]] = {}
    old, new = _by_key(before, key), _by_key(now, key)
    for name in dict.fromkeys((*new, *old)):
        row = (new.get(name) or old[name])[0]
        kind, what = _happened(old[name][1] if name in old else None, new[name][1] if name in new else None)
        if kind:
            where = f"{row['line']}, {row['scenario']}, {row['clients']} clients"
            rows.setdefault((row["study"], row["dataset"], kind), []).append(where + what)
    for (study, dataset, kind), names in rows.items():
        count = f"{len(names)} row{'s' if len(names) > 1 else ''}"
        yield Change(today.isoformat(), kind, study, dataset, KINDS[kind].format(count), tuple(names))


Number = tuple[str, float] | None
"""Verdict and mean of a row with numbers."""


def _by_key(cells: pd.DataFrame, key: list[str]) -> dict[tuple[str, ...], tuple[Mapping[str, str], Number]]:
    found: dict[tuple[str, ...], tuple[Mapping[str, str], Number]] = {}
    for row in cells.to_dict("records"):
        text = {str(column): str(value) for column, value in row.items()}
        number = None if pd.isna(row["mean"]) else (text["verdict"], round(float(row["mean"]), 4))
        found[tuple(text[column] for column in key)] = text, number
    return found


def _happened(was: Number, is_now: Number) -> tuple[str, str]:
    """A key of ``KINDS`` (or nothing), and the details for the row's name."""
    if was is None or is_now is None:
        kind = "" if was is is_now else "measured" if is_now else "removed"
        return kind, f": {is_now[1]:.2f}, {is_now[0]}" if is_now else ""
    if was[0] != is_now[0]:
        return "verdict", f": {was[0]}, now {is_now[0]}"
    return ("number", f": {was[1]:.2f}, now {is_now[1]:.2f}") if was[1] != is_now[1] else ("", "")
