"""What the grids plan, whether or not it was run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from bench.grids import Filters, Grid, Planned, expand, load_grid, plan
from bench.grids.grid import PARTITION_SEED
from bench.studies.settings import PER_SEED, Column, Settings, settings_of


@dataclass(frozen=True)
class PlannedCell:
    """The runs that a grid plans for a cell, a run a seed, all with the same settings.

    ``grid`` is what plans the cell.
    """

    settings: Settings = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    hashes: tuple[str, ...] = ()
    grid: Grid | None = field(default=None, repr=False)

    @property
    def per_seed(self) -> bool:
        """Whether every seed draws its own partition and split."""
        return self.settings.get(PARTITION_SEED) == PER_SEED


UsualCells = dict[tuple[Column, str], PlannedCell]
"""The cells whose settings are the usual ones, by column and the method whose runs they are."""


def usual_cells(grids: Iterable[str]) -> UsualCells:
    """The cells of named grids; where two name the same cell, the first one's settings stand.

    Raises:
        RequestError: an unknown grid, or one that is not valid.
    """
    cells: UsualCells = {}
    for name in grids:
        grid = load_grid(name)
        for run in expand(grid, Filters(seeds=grid.seeds[:1])):
            cells.setdefault((Column(*run.names[:3]), run.spec.method), planned_cell(grid, run))
    return cells


def settings_in_grid(grid: Grid, column: Column, method: str) -> Settings:
    """The settings that a grid would plan for another method in one of its columns: the method's own
    defaults in the grid's protocol.
    """
    run = plan(grid, column.dataset, column.scenario, column.clients, method, {}, grid.seeds[0])
    return planned_cell(grid, run).settings


def planned_cell(grid: Grid, run: Planned) -> PlannedCell:
    """The cell of a grid's run, which it makes with each of its seeds."""
    settings = settings_of(run.spec, grid.partition_per_seed)
    return PlannedCell(settings, grid.seeds, run.spec.hashes(grid.seeds, grid.partition_per_seed), grid)
