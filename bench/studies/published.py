"""The papers' numbers, as printed, from ``results/published``."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cache
from importlib.resources import files
from math import isfinite
from pathlib import Path

from bench.errors import RequestError, unknown

FOLDER = Path(str(files("bench.results"))) / "published"
"""The numbers of the suite's own studies."""


@dataclass(frozen=True)
class Published:
    """One printed value. Accuracies are in percent whatever the paper's unit was; all else is as printed.

    ``clients`` is None for a value over the whole data set; ``std`` is None where none is printed;
    ``mean`` is None exactly where ``status`` says why (``OOM``). ``setting`` is ``key=value;...``.
    """

    paper: str
    table: str
    study: str
    dataset: str
    scenario: str
    clients: int | None
    method: str
    setting: str
    metric: str
    mean: float | None
    std: float | None
    unit: str
    status: str


COLUMNS = tuple(field.name for field in fields(Published))
"""Columns of a file of published numbers."""

PLACE = ("table", "dataset", "scenario", "clients", "method", "setting", "metric")
"""Columns that name a value of a paper."""


def _number(text: str, factor: int) -> float | None:
    # Decimal: 0.5353 becomes 53.53 and not 53.529999999999994
    number = float(Decimal(text) * factor) if text else None
    if number is not None and not isfinite(number):
        raise ValueError(text)
    return number


def _value(row: dict[str, str]) -> Published:
    share = row["metric"] == "accuracy" and row["unit"] == "fraction"
    factor = 100 if share else 1
    numbers = {
        "clients": int(row["clients"]) if row["clients"] else None,
        "mean": _number(row["mean"], factor),
        "std": _number(row["std"], factor),
    }
    texts = {name: row[name] for name in COLUMNS} | ({"unit": "percent"} if share else {})
    return Published(**texts | numbers)  # type: ignore[arg-type]


@cache
def published(paper: str, folder: Path = FOLDER) -> tuple[Published, ...]:
    """Every printed value of a paper, in the order of its tables, from ``PAPER.csv`` in a folder.

    Raises:
        RequestError: there is no such paper, or its file lacks a column, has a value that is no number, or
            two values of one place.
    """
    papers = sorted(file.stem for file in folder.glob("*.csv"))
    if paper not in papers:
        raise unknown("paper", paper, papers)
    values: list[Published] = []
    lines: dict[tuple[object, ...], int] = {}
    for line, row in enumerate(rows_of(folder / f"{paper}.csv", COLUMNS, "numbers"), 2):
        try:
            value = _value(row)
        except (ValueError, ArithmeticError):
            raise RequestError(
                f"published numbers {paper}.csv: line {line}: not a number, or no finite one"
            ) from None
        first_line = lines.setdefault(tuple(getattr(value, name) for name in PLACE), line)
        if first_line != line:
            raise RequestError(
                f"published numbers {paper}.csv: line {line}: a second value of what line {first_line} has: "
                "one table, data set, scenario, number of clients, method, setting and metric"
            )
        values.append(value)
    return tuple(values)


def rows_of(file: Path, columns: Iterable[str], subject: str) -> list[dict[str, str]]:
    """The rows of a CSV file with these columns.

    Raises:
        RequestError: it lacks one of them, or is no text.
    """
    try:
        rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines())
    except UnicodeDecodeError:
        raise RequestError(f"published {subject} {file.name}: not a text file in UTF-8") from None
    for name in columns:
        if name not in (rows.fieldnames or ()):
            raise RequestError(f"published {subject} {file.name}: the column '{name}' is missing")
    return list(rows)
