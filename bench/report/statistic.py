"""A document of statistics together with its figures and the numbers behind its tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.report.figures import Figure, write_csv
from bench.report.settings import Column, Reading
from bench.report.study import Study
from bench.report.table import Document
from bench.report.wording import AVERAGES, RULES, STAGES


@dataclass(frozen=True)
class Records:
    """Numbers in full precision for ``NAME.csv``: rows of the same columns, as text by column."""

    name: str
    rows: tuple[dict[str, str], ...]


@dataclass(frozen=True, eq=False)
class Statistic:
    """A document, its figures and its records; ``document.cells`` are the cells that it rests on."""

    document: Document
    records: tuple[Records, ...]
    figures: tuple[Figure, ...] = ()


def place(column: Column) -> dict[str, str]:
    """Where a record is from."""
    return {"dataset": column.dataset, "scenario": column.scenario, "clients": str(column.clients)}


def number(value: float | None, digits: int = 4) -> str:
    """A number of a record; empty where there is none."""
    return "" if value is None else f"{value:.{digits}f}"


def read_as(study: Study, reading: Reading) -> str:
    """What an accuracy of a statistic is, for captions."""
    return (
        f"Test accuracy in percent, {AVERAGES[study.average]}; {STAGES[reading.stage]}, "
        f"{RULES[reading.rule]} (stage {reading.stage}, rule {reading.rule})."
    )


def save(records: Iterable[Records], folder: Path) -> list[Path]:
    """Write each record as CSV."""
    paths = []
    for record in records:
        paths.append(folder / f"{record.name}.csv")
        write_csv(
            paths[-1], [tuple(row) for row in record.rows[:1]] + [tuple(row.values()) for row in record.rows]
        )
    return paths
