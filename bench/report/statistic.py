"""A document of statistics together with its figures and the numbers behind its tables."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import pandas as pd

from bench.report.figures import Figure
from bench.report.settings import Column, Reading
from bench.report.study import Study
from bench.report.table import Document
from bench.report.wording import AVERAGES, RULES, STAGES


@dataclass(frozen=True)
class Records:
    """The numbers of ``NAME.csv``; fractions get four decimals there, texts stand as they are."""

    name: str
    rows: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Statistic:
    """A document, its figures and its records; ``document.cells`` are the cells that it rests on."""

    document: Document
    records: tuple[Records, ...]
    figures: tuple[Figure, ...] = ()


def place(column: Column) -> dict[str, str | int]:
    """Where a record is from."""
    return asdict(column)


def number(value: float | None, digits: int) -> str:
    """A number of a record as text; empty where there is none."""
    return "" if value is None else f"{value:.{digits}f}"


def read_as(study: Study, reading: Reading) -> str:
    """What an accuracy of a statistic is, for captions."""
    return (
        f"Test accuracy in percent, {AVERAGES[study.average]}; {STAGES[reading.stage]}, "
        f"{RULES[reading.rule]} (stage {reading.stage}, rule {reading.rule})."
    )
