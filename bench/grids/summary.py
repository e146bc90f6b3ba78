"""What the grids that come with the suite are, said without making their specs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.grids.expand import combinations
from bench.grids.files import grid_names, load_grid
from bench.resolve import Overrides


@dataclass(frozen=True)
class GridSummary:
    """A grid in a line: how many runs it plans, on which data sets and numbers of clients."""

    name: str
    study: str
    title: str
    runs: int
    datasets: tuple[str, ...]
    clients: tuple[int, ...]


def grid_summary(name: str) -> GridSummary:
    """The summary of a grid by its name; raises as ``load_grid``.

    ``runs`` counts what differs by name, variant or seed, as ``expand`` does by spec.
    """
    grid = load_grid(name)
    cells = {
        (dataset, scenario, clients, method, repr(sorted(_settings(variant))))
        for dataset, scenario, clients, method, variant in combinations(grid)
    }
    datasets = dict.fromkeys(dataset for setting in grid.settings for dataset in setting.datasets)
    clients = sorted({count for setting in grid.settings for count in setting.clients})
    runs = len(cells) * len(set(grid.seeds))
    return GridSummary(name, grid.study or "", grid.title, runs, tuple(datasets), tuple(clients))


def _settings(variant: Overrides) -> Iterator[tuple[str, Any]]:
    """What of a variant makes a difference: an attack or newcomers of no client do not."""
    for key, value in variant.items():
        ratio = f"{key.partition('.')[0]}.ratio"
        if ratio not in ("attack.ratio", "newcomers.ratio") or variant.get(ratio) != 0:
            yield key, value


def grid_summaries() -> list[GridSummary]:
    """Those of every grid that comes with the suite, by study and name."""
    return sorted(map(grid_summary, grid_names()), key=lambda summary: (summary.study, summary.name))


def client_counts() -> dict[str, tuple[int, ...]]:
    """The numbers of clients that the suite's grids have of each data set, ascending, by its name."""
    counts: dict[str, set[int]] = {}
    for setting in (setting for name in grid_names() for setting in load_grid(name).settings):
        for dataset in setting.datasets:
            counts.setdefault(dataset, set()).update(setting.clients)
    return {dataset: tuple(sorted(numbers)) for dataset, numbers in counts.items()}
