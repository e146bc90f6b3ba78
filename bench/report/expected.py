"""What the grids plan, whether or not it was run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bench.grids import expand, load_grid
from bench.report.settings import PER_SEED, Column, settings_of


@dataclass(frozen=True)
class Expectation:
    """A planned cell: its settings (empty where it cannot be planned) and why it cannot run, if so.

    ``state`` is ``not_run``, ``not_implemented`` or ``no_data``.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    state: str = "not_run"
    reason: str = ""

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
        for plan in expand(grid):
            column = Column(plan.dataset, plan.scenario, plan.clients)
            if plan.spec is None:
                cells.setdefault((column, plan.method), Expectation({}, "not_implemented", plan.reason))
                continue
            settings = settings_of(plan.spec.tree())
            if grid.partition_per_seed:
                settings["protocol.partition_seed"] = PER_SEED
            cells.setdefault((column, plan.spec.method), Expectation(settings))
    return cells
