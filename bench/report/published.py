"""The papers' numbers, as printed, from ``results/published``."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from bench.errors import unknown

PAPERS = ("fedaghn", "fedhgn", "fedsheafhn_earlier", "fedsheafhn_final")


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


def _number(text: str, factor: int) -> float | None:
    # Decimal: 0.5353 becomes 53.53 and not 53.529999999999994
    return float(Decimal(text) * factor) if text else None


def _value(row: dict[str, str]) -> Published:
    share = row["metric"] == "accuracy" and row["unit"] == "fraction"
    factor = 100 if share else 1
    return Published(
        paper=row["paper"],
        table=row["table"],
        study=row["study"],
        dataset=row["dataset"],
        scenario=row["scenario"],
        clients=int(row["clients"]) if row["clients"] else None,
        method=row["method"],
        setting=row["setting"],
        metric=row["metric"],
        mean=_number(row["mean"], factor),
        std=_number(row["std"], factor),
        unit="percent" if share else row["unit"],
        status=row["status"],
    )


@cache
def published(paper: str) -> tuple[Published, ...]:
    """Every printed value of a paper, in the order of its tables.

    Raises:
        RequestError: there is no such paper.
    """
    if paper not in PAPERS:
        raise unknown("paper", paper, PAPERS)
    text = files("bench.results").joinpath("published", f"{paper}.csv").read_text(encoding="utf-8")
    return tuple(_value(row) for row in csv.DictReader(text.splitlines()))


class Key(NamedTuple):
    """What names a value of a comparison table."""

    table: str
    dataset: str
    scenario: str
    clients: int | None
    method: str


@cache
def accuracies(paper: str) -> dict[Key, Published]:
    """The accuracies of a paper's comparison tables: those printed without a further setting."""
    return {
        Key(value.table, value.dataset, value.scenario, value.clients, value.method): value
        for value in published(paper)
        if value.metric == "accuracy" and not value.setting
    }


@cache
def values(paper: str) -> dict[tuple[Key, str, str], Published]:
    """Every printed value of a paper by its key, its setting (``ratio=0.2``) and its metric."""
    return {
        (
            Key(value.table, value.dataset, value.scenario, value.clients, value.method),
            value.setting,
            value.metric,
        ): value
        for value in published(paper)
    }
