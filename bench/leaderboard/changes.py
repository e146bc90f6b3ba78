"""What is new: the rows of the site that is replaced beside those of the new one, as an append-only log."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
        names = tuple(text.format_map(row) for row in rows.to_dict("records"))
        yield Change(today.isoformat(), kind, study, dataset, KINDS[kind].format(count), names)


def _by_key(cells: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """Verdicts and means of the rows, which texts of their ``key`` name."""
    table = cells[[*key, "verdict", "mean"]].round({"mean": 4})
    return table.astype(dict.fromkeys(key, "str")).drop_duplicates(key, keep="last")
