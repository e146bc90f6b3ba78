"""What the grids plan, whether or not it was run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from bench.grids import Grid, Planned, expand, load_grid, plan
from bench.report.settings import PARTITION, PER_SEED, Column, Settings, settings_of


@dataclass(frozen=True)
class PlannedCell:
    """The runs that a grid plans for a cell, a run a seed, all with the same settings.

    ``settings`` are empty and ``reason`` says why where they cannot be planned yet. ``grid`` is what plans
    the cell.
    """

    settings: Settings = field(default_factory=dict)
    reason: str = ""
    seeds: tuple[int, ...] = ()
    hashes: tuple[str, ...] = ()
    grid: Grid | None = field(default=None, repr=False)

    @property
    def state(self) -> str:
        """State of the cell before anything was run."""
        return "not_implemented" if self.reason else "not_run"

    @property
    def per_seed(self) -> bool:
        """Whether every seed draws its own partition and split."""
        return self.settings.get(PARTITION) == PER_SEED


Usual = dict[tuple[Column, str], PlannedCell]
"""The cells whose settings are the usual ones, by column and the method whose runs they are."""


def usual(grids: Iterable[str]) -> Usual:
    """The cells of named grids; where two name the same cell, the first one's settings stand.

    Raises:
        RequestError: an unknown grid, or one that is not valid.
    """
    cells: Usual = {}
    for name in grids:
        grid = load_grid(name)
        for run in expand(grid):
            method = run.spec.method if run.spec else run.method
            key = Column(*run.names[:3]), method
            if key not in cells:
                cells[key] = planned_cell(grid, [run])
    return cells


def alike(grid: Grid, column: Column, method: str) -> Settings:
    """The settings that a grid would plan for another method in one of its columns: the method's own
    defaults in the grid's protocol; empty where the method cannot be planned.
    """
    run = plan(grid, column.dataset, column.scenario, column.clients, method, {}, grid.seeds[0])
    return planned_cell(grid, [run]).settings


def planned_cell(grid: Grid, runs: list[Planned]) -> PlannedCell:
    """The cell of a grid's runs that differ in their seed alone."""
    specs = [run.spec for run in runs if run.spec]
    if not specs:
        return PlannedCell(reason=runs[0].reason)
    settings = settings_of(specs[0], grid.partition_per_seed)
    return PlannedCell(settings, seeds=grid.seeds, hashes=tuple(spec.hash for spec in specs), grid=grid)
