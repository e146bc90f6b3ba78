"""The papers' numbers, as printed, from ``results/published``."""

from __future__ import annotations

import csv
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
        raise ValueError(f"{text} is no finite number")
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
        RequestError: there is no such paper, its file cannot be read, or has two values of one place.
    """
    papers = sorted(file.stem for file in folder.glob("*.csv"))
    if paper not in papers:
        raise unknown("paper", paper, papers)
    file, line = folder / f"{paper}.csv", 1
    values: dict[tuple[object, ...], Published] = {}
    try:
        for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
            line += 1
            value = _value(row)
            place = tuple(getattr(value, name) for name in PLACE)
            if place in values:
                raise ValueError(f"a second value of {', '.join(map(str, place))}")
            values[place] = value
    except (KeyError, ValueError, ArithmeticError) as error:
        raise RequestError(f"published numbers {file.name}: line {line}: {error}") from None
    return tuple(values.values())
