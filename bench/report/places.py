"""Best and second best of a column, among cells that hold the same seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from bench.report.cells import Cell

Name = TypeVar("Name", bound=Hashable)


def places(values: Mapping[Name, float]) -> dict[Name, int]:
    """1 for the best, 2 for the second best, as printed with two decimals; ties share a place."""
    rounded = {name: round(value, 2) for name, value in values.items()}
    order = sorted(set(rounded.values()), reverse=True)[:2]
    return {name: order.index(value) + 1 for name, value in rounded.items() if value in order}


def compared_seeds(cells: Iterable[Cell]) -> tuple[int, ...]:
    """The seeds on which the cells of a column are compared; a cell with others has no place.

    They are those that most cells hold, and of equally frequent ones the more. Cells of one seed and
    cells that lost runs have no say beside others.
    """
    every = [cell for cell in cells if cell.measured]
    sound = [cell for cell in every if len(cell.seeds) > 1 and not cell.lost]
    counts = Counter(cell.seeds for cell in sound or every)
    return min(counts, key=lambda seeds: (-counts[seeds], -len(seeds), seeds), default=())


def measured_places(competing: Mapping[Name, Cell]) -> dict[Name, int]:
    """The places of cells by what they measure."""
    seeds = compared_seeds(competing.values())
    return places(
        {
            name: cell.measured.mean
            for name, cell in competing.items()
            if cell.measured and cell.seeds == seeds
        }
    )


def other_seeds(cell: Cell, seeds: tuple[int, ...]) -> str:
    """What an entry says of a cell that does not hold the seeds compared: how many it has."""
    return f" (n={len(cell.seeds)})" if seeds and cell.measured and cell.seeds != seeds else ""
