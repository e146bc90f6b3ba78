"""The papers' numbers, as printed, from ``results/published``."""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True)
class PublishedRuns:
    """``n`` runs stand behind a published mean; ``redrawn``: each on clients of its own.

    ``population``: the printed deviation is the root of a mean over n, as NumPy's ``std`` is, and not over
    n - 1.
    """

    n: int
    redrawn: bool = False
    population: bool = False


COLUMNS = tuple(field.name for field in fields(Published))
"""Columns of a file of published numbers."""


@cache
def published(paper: str, folder: Path = FOLDER) -> tuple[Published, ...]:
    """Every printed value of a paper, in the order of its tables, from ``PAPER.csv`` in a folder.

    Raises:
        RequestError: there is no such paper, or its file cannot be read.
    """
    papers = sorted(file.stem for file in folder.glob("*.csv"))
    if paper not in papers:
        raise unknown("paper", paper, papers)
    lines = (folder / f"{paper}.csv").read_text(encoding="utf-8").splitlines()
    values: list[Published] = []
    try:
        values.extend(map(_value, csv.DictReader(lines)))
    except (KeyError, ValueError, ArithmeticError) as error:
        raise RequestError(f"published numbers {paper}.csv: line {len(values) + 2}: {error}") from None
    return tuple(values)


def _value(row: dict[str, str]) -> Published:
    is_share = row["metric"] == "accuracy" and row["unit"] == "fraction"
    factor = 100 if is_share else 1
    # Decimal: 0.5353 becomes 53.53 and not 53.529999999999994
    mean, std = (float(Decimal(row[name]) * factor) if row[name] else None for name in ("mean", "std"))
    clients = int(row["clients"]) if row["clients"] else None
    unit = "percent" if is_share else row["unit"]
    values: dict[str, Any] = {name: row[name] for name in COLUMNS}
    return Published(**{**values, "clients": clients, "mean": mean, "std": std, "unit": unit})
