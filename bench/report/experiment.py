"""What an experiment consists of: the lines and columns of its table, and the runs behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from bench.grids import Grid, Planned, expand, load_grid, plan
from bench.report.layout import Target
from bench.report.measures import Measure
from bench.report.settings import Column, Settings, difference, settings_of


@dataclass(frozen=True, eq=False)
class Line:
    """A row: a method with settings as in ``--set``. Without a label it is named by its settings.

    ``printed`` are the settings under which the published tables print it (any of them). ``stage``
    replaces the stage of every measure.
    """

    method: str
    label: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    printed: tuple[str, ...] = ("",)
    stage: str = ""


@dataclass(frozen=True, eq=False)
class Point:
    """A column within each federation: settings added to every line's, and their place on an axis.

    With ``grid`` the runs are those that another grid plans. They are shown for comparison; their
    verdicts stand in that grid's own table.
    """

    label: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    printed: str = ""
    x: float | None = None
    grid: str = ""


@dataclass(frozen=True, eq=False)
class Experiment:
    """A table of lines by points for every federation of a grid, under one or more measures.

    ``label`` names it in ``cells.csv``. A cell's published value is the first that ``targets``
    print. Without ``lines`` there is one for every method and variant of the grid. ``axis`` names
    the points' ``x``. With ``by_epochs`` a figure shows accuracy by local epochs, with ``losses`` one
    the training loss by round; with ``by_line`` one shows the first measure of every line at the first
    point, the published value beside it.
    """

    name: str
    label: str
    title: str
    grid: str
    measures: tuple[Measure, ...]
    lines: tuple[Line, ...] = ()
    points: tuple[Point, ...] = (Point(),)
    targets: tuple[Target, ...] = ()
    axis: str = ""
    by_epochs: bool = False
    losses: bool = False
    by_line: bool = False
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Runs:
    """The planned runs of one line and point in one column, a run a seed.

    ``settings`` is empty and ``reason`` says why where they cannot be planned yet.
    """

    hashes: tuple[str, ...]
    settings: Settings
    reason: str = ""
    seeds: tuple[int, ...] = ()


Place = tuple[Column, Line, Point]


class Plan:
    """An experiment's runs: exactly those that its grid plans, by their spec hashes.

    Raises:
        RequestError: the grid is unknown or not valid.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self._grids: dict[str, tuple[Grid, list[Planned]]] = {}
        self.lines = experiment.lines or tuple(_variants(self._grid("")[0]))
        names = dict.fromkeys(each.names[:3] for each in self._grid("")[1])
        self.columns = tuple(Column(*where) for where in names)

    def _grid(self, name: str) -> tuple[Grid, list[Planned]]:
        name = name or self.experiment.grid
        if name not in self._grids:
            grid = load_grid(name)
            self._grids[name] = grid, expand(grid)
        return self._grids[name]

    @cached_property
    def runs(self) -> dict[Place, Runs]:
        """The planned runs by column, line and point; only where the grid plans some."""
        found = {}
        for point in self.experiment.points:
            grid, expansion = self._grid(point.grid)
            known = {_key(each) for each in expansion}
            for column in self.columns:
                for line in self.lines:
                    variant = {**line.settings, **point.settings}
                    where = (column.dataset, column.scenario, column.clients, line.method)
                    first, *others = grid.seeds
                    planned = [plan(grid, *where, variant, first)]
                    if _key(planned[0]) in known:  # then with every seed
                        planned += [plan(grid, *where, variant, seed) for seed in others]
                        found[column, line, point] = _runs(planned, grid.partition_per_seed)
        return found

    @cached_property
    def hashes(self) -> frozenset[str]:
        """Spec hashes of the runs that the experiment's own grid plans."""
        return frozenset(each.spec.hash for each in self._grid("")[1] if each.spec)


def _key(planned: Planned) -> tuple[Any, ...]:
    return (*planned.names, planned.spec and planned.spec.hash)


def _runs(planned: list[Planned], per_seed: bool) -> Runs:
    specs = [each.spec for each in planned if each.spec]
    if not specs:
        return Runs((), {}, planned[0].reason)
    return Runs(
        tuple(spec.hash for spec in specs),
        settings_of(specs[0], per_seed),
        seeds=tuple(spec.seed for spec in specs),
    )


def _variants(grid: Grid) -> Iterator[Line]:
    """Every method and variant of a grid once, in the grid's order."""
    seen = set()
    for setting in grid.settings:
        for method in grid.methods_of(setting):
            for variant in setting.variations():
                key = method, difference(variant, {})
                if key not in seen:
                    seen.add(key)
                    yield Line(method, settings=variant)
