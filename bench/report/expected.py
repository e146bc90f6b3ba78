"""What the grids plan, whether or not it was run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bench.grids import Grid, expand, load_grid, plan
from bench.report.settings import PER_SEED, Column, Settings, settings_of
from bench.spec import RunSpec


@dataclass(frozen=True)
class Expectation:
    """A planned cell: its settings (empty where it cannot be planned) and why it cannot run, if so.

    ``state`` is ``not_run``, ``not_implemented`` or ``no_data``. ``seeds`` are the planned ones, ``grid``
    is what plans the cell.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    state: str = "not_run"
    reason: str = ""
    seeds: tuple[int, ...] = ()
    grid: Grid | None = field(default=None, repr=False)

    @property
    def per_seed(self) -> bool:
        """Whether every seed draws its own partition and split."""
        return self.settings.get("protocol.partition_seed") == PER_SEED


Expected = dict[tuple[Column, str], Expectation]
"""Planned cells by column and the method whose runs they are."""


def planned(grids: Iterable[str]) -> Expected:
    """The cells of named grids; where two name the same cell, the first one's settings stand.

    Raises:
        RequestError: an unknown grid, or one that is not valid.
    """
    cells: Expected = {}
    for name in grids:
        grid = load_grid(name)
        for each in expand(grid):
            column = Column(each.dataset, each.scenario, each.clients)
            if each.spec is None:
                cells.setdefault((column, each.method), Expectation({}, "not_implemented", each.reason))
                continue
            settings = _settings(grid, each.spec)
            cells.setdefault((column, each.spec.method), Expectation(settings, seeds=grid.seeds, grid=grid))
    return cells


def alike(grid: Grid, column: Column, method: str) -> Settings:
    """The settings that a grid would plan for another method in one of its columns: the method's own
    defaults in the grid's protocol; empty where the method cannot be planned.
    """
    made = plan(grid, column.dataset, column.scenario, column.clients, method, {}, grid.seeds[0])
    return _settings(grid, made.spec) if made.spec else {}


def _settings(grid: Grid, spec: RunSpec) -> dict[str, Any]:
    settings = settings_of(spec)
    if grid.partition_per_seed:
        settings["protocol.partition_seed"] = PER_SEED
    return settings
