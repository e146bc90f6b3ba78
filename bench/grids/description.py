"""What grids are, said without making their specs: each in a line, and one in full, with its federations and
methods, what it sets for all runs, and what it varies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from bench.grids.expand import combinations
from bench.grids.files import grid_names, load_grid
from bench.grids.grid import Grid, Match
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
        (dataset, scenario, clients, method, repr(sorted(_effective_settings(variant))))
        for dataset, scenario, clients, method, variant in combinations(grid)
    }
    datasets = dict.fromkeys(dataset for setting in grid.settings for dataset in setting.datasets)
    clients = sorted({count for setting in grid.settings for count in setting.clients})
    runs = len(cells) * len(set(grid.seeds))
    return GridSummary(name, grid.study or "", grid.title, runs, tuple(datasets), tuple(clients))


def _effective_settings(variant: Overrides) -> Iterator[tuple[str, Any]]:
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


class GridSetting(NamedTuple):
    """What a grid sets by a dotted key: the ``values``, and whose runs have them; empty for all runs.

    More than one value are varied: every run is made with each.
    """

    key: str
    values: tuple[Any, ...]
    runs: str


@dataclass(frozen=True)
class GridDescription(GridSummary):
    """A grid in full: ``federations`` are the numbers of clients by data set and scenario, ascending."""

    seeds: tuple[int, ...]
    partition_per_seed: bool
    methods: tuple[str, ...]
    federations: dict[tuple[str, str], tuple[int, ...]]
    settings: tuple[GridSetting, ...]

    def record(self) -> dict[str, Any]:
        """The description as JSON has it."""
        return asdict(self) | {
            "federations": [
                {"dataset": dataset, "scenario": scenario, "clients": clients}
                for (dataset, scenario), clients in self.federations.items()
            ],
            "settings": [setting._asdict() for setting in self.settings],
        }


def grid_description(name: str) -> GridDescription:
    """The description of a grid by its name; raises as ``load_grid``."""
    grid = load_grid(name)
    methods: dict[str, None] = {}
    clients: dict[tuple[str, str], dict[int, None]] = {}
    for dataset, scenario, count, method, _ in combinations(grid):
        methods.setdefault(method)
        clients.setdefault((dataset, scenario), {}).setdefault(count)
    return GridDescription(
        **vars(grid_summary(name)),
        seeds=grid.seeds,
        partition_per_seed=grid.partition_per_seed,
        methods=tuple(methods),
        federations={federation: tuple(sorted(counts)) for federation, counts in clients.items()},
        settings=tuple(_settings(grid, tuple(methods))),
    )


def _settings(grid: Grid, methods: tuple[str, ...]) -> Iterator[GridSetting]:
    """The grid's own settings, those of its overrides, and those of its lines and points."""
    for section, values in (("protocol", grid.protocol), ("client", grid.client)):
        for key, value in values.items():
            yield GridSetting(f"{section}.{key}", (value,), "")
    for override in grid.override:
        for key, value in override.set.items():
            yield GridSetting(key, (value,), _text(override.match))
    varied_values: dict[str, list[Any]] = {}
    methods_of: dict[str, set[str]] = {}
    for *_, method, variant in combinations(grid):
        for key, value in variant.items():
            methods_of.setdefault(key, set()).add(method)
            if value not in varied_values.setdefault(key, []):
                varied_values[key].append(value)
    for key, varied in varied_values.items():
        names = [method for method in methods if method in methods_of[key]]
        yield GridSetting(key, tuple(varied), "" if len(names) == len(methods) else ", ".join(names))


def _text(match: Match) -> str:
    """Which runs an override is for: ``fedaghn; cifar10 or cifar100``."""
    choices = (getattr(match, field) for field in ("method", "model", "dataset", "scenario", "clients"))
    return "; ".join(" or ".join(map(str, choice)) for choice in choices if choice is not None)
