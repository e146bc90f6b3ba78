"""The papers' numbers, as printed, from ``results/published``."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from bench.errors import RequestError

FOLDER = Path(str(files("bench.results"))) / "published"
"""The numbers of the suite's own studies."""


@dataclass(frozen=True)
class Published:
    """One printed value: a row of ``PAPER.csv``. Accuracies are in percent whatever the paper's unit was.

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
    """The ``n`` runs behind a published mean."""

    n: int
    redrawn: bool = False
    """Each run draws its own clients."""
    population: bool = False
    """The printed standard deviation divides by n, as NumPy's ``std``, not by n - 1."""


@cache
def published(paper: str, folder: Path = FOLDER) -> tuple[Published, ...]:
    """Read every printed value of a paper from ``PAPER.csv`` in a folder, in the order of the tables."""
    with (folder / f"{paper}.csv").open(encoding="utf-8", newline="") as file:
        try:
            return tuple(map(_value, csv.DictReader(file)))
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise RequestError(f"published numbers {paper}.csv: {error!r}") from None


def _value(row: dict[str, str]) -> Published:
    is_share = (row["metric"], row["unit"]) == ("accuracy", "fraction")
    # Decimal: 0.5353 becomes 53.53 and not 53.529999999999994
    factor = Decimal(100 if is_share else 1)
    mean, std = (float(Decimal(row[name]) * factor) if row[name] else None for name in ("mean", "std"))
    clients = int(row["clients"]) if row["clients"] else None
    unit = "percent" if is_share else row["unit"]
    values: dict[str, Any] = {**row, "clients": clients, "mean": mean, "std": std, "unit": unit}
    return Published(**values)
