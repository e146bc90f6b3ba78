"""Names that the published tables use, whether the suite has them yet or not."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import Literal


@cache
def published_names(column: Literal["dataset", "method"]) -> frozenset[str]:
    """Every value of a column in the tables under ``results/published``."""
    names: set[str] = set()
    for file in files("bench.results").joinpath("published").iterdir():
        if file.name.endswith(".csv"):
            with file.open(encoding="utf-8") as lines:
                names.update(row[column] for row in csv.DictReader(lines) if row.get(column))
    return frozenset(names)
