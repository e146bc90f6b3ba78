"""What a study compares: the columns, lines, points and measures of a table, and its published values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from functools import cached_property
from itertools import chain, product
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from bench.errors import RequestError
from bench.grids import Filters, Grid, Planned, expand, load_grid, plan
from bench.grids.experiment import Line, Point
from bench.grids.grid import ColumnMatch, combinations
from bench.studies.measures import NamedMeasure
from bench.studies.settings import Column, Settings, difference_text, settings_of

Figure = Literal[
    "lines",
    "convergence",
    "differences",
    "megabytes",
    "seconds",
    "collaboration",
    "points",
    "measures",
    "epochs",
    "loss",
]
FIGURES: tuple[Figure, ...] = get_args(Figure)
"""What an experiment may have drawn; ``bench.figures.charts`` says how."""


@dataclass(frozen=True)
class Target:
    """Published numbers: a table of a paper; ``label`` is its name here where that differs."""

    paper: str
    table: str
    label: str = ""


@dataclass(frozen=True)
class Comparison:
    """What cells are set beside: of a cell's published values the first that ``targets`` print.

    ``label`` names it in ``cells.csv``.
    """

    label: str
    targets: tuple[Target, ...] = ()


@dataclass(frozen=True, eq=False, config=ConfigDict(extra="forbid", strict=True))
class Experiment:
    """A table of lines by columns and points under one or more measures, beside published values.

    Its runs are exactly those that ``grid`` plans, by their hashes. A ``main`` table without ``lines`` shows
    whatever runs of its ``columns`` the database holds: in the study's lines those of the usual settings, and
    in lines of their own other settings and other methods.

    Without ``measures`` it has the study's; without ``columns`` there is one for every federation of the
    grid, without ``lines`` one for every method and variant. Cells stand beside the first of
    ``comparisons``, and again beside each further one that prints a value. With ``ranked`` its lines compete
    as those of a main table do. ``reduced`` says what of the papers' protocol is less here: then no value is
    a target, and the order of the lines alone is compared. Its verdicts stand in for those of values that no
    earlier table can judge unless it is ``apart``, under settings that are not the study's usual ones.
    ``axis`` names the points' ``x``, ``figures`` what is drawn, of ``FIGURES``. ``guests`` are lines of
    methods that the grid does not name: they run in every setting in which it runs the method ``host``. A
    file says which of its columns a table shows by ``only``.
    """

    name: str
    title: str
    comparisons: Annotated[tuple[Comparison, ...], Field(min_length=1)]
    measures: tuple[NamedMeasure, ...] = ()
    grid: str = ""
    main: bool = False
    ranked: bool = False
    reduced: str = ""
    apart: bool = False
    only: ColumnMatch = ColumnMatch()
    columns: tuple[Column, ...] = ()
    lines: tuple[Line, ...] = ()
    points: tuple[Point, ...] = (Point(),)
    axis: str = ""
    figures: tuple[Figure, ...] = ()
    remarks: tuple[str, ...] = ()
    guests: tuple[Line, ...] = ()
    host: str = ""

    @property
    def competes(self) -> bool:
        """Whether its methods are compared with each other."""
        return self.main or self.ranked


class PlannedCell(NamedTuple):
    """The runs that a grid plans for a cell, a run a seed, all with the same settings."""

    settings: Settings
    seeds: tuple[int, ...]
    hashes: tuple[str, ...]


Place = tuple[Column, Line, Point]


class ExperimentPlan:
    """An experiment's columns and lines, and the runs that its grid plans for them.

    ``lines`` are those of the experiment or, where it has none, the ``rows`` of its study's main tables or
    every variant of its grid.

    Raises:
        RequestError: the grid is unknown or not valid.
    """

    def __init__(self, experiment: Experiment, rows: tuple[Line, ...] = ()) -> None:
        self.experiment = experiment
        self.lines, self.columns = experiment.lines or rows, experiment.columns
        if not self.finds:
            grid, runs = self._grid
            self.lines = (*experiment.lines, *experiment.guests) if experiment.lines else _variants(grid)
            places = dict.fromkeys(Column(*run.names[:3]) for run in runs)
            self.columns = experiment.columns or tuple(places)

    @property
    def finds(self) -> bool:
        """Whether the table shows whatever runs a database holds."""
        return self.experiment.main and not self.experiment.lines

    @cached_property
    def _grid(self) -> tuple[Grid, list[Planned]]:
        """The grid and its runs of the first seed; those of the others differ in nothing else."""
        grid = load_grid(self.experiment.grid)
        settings = grid.settings
        for guest in self.experiment.guests:
            settings += grid.settings_beside(self.experiment.host, guest.runs, guest.settings)
        grid = grid.model_copy(update={"settings": settings})
        return grid, expand(grid, Filters(seeds=grid.seeds[:1]))

    @cached_property
    def runs(self) -> dict[Place, PlannedCell]:
        """The planned runs by column, line and point; only where the grid plans some.

        Raises:
            RequestError: a line of which the grid plans nothing.
        """
        if self.finds:
            return {}
        cells = {}
        grid, grid_runs = self._grid
        run_keys = set(map(_key, grid_runs))
        for point, column, line in product(self.experiment.points, self.columns, self.lines):
            if _has_place(line, point, column):
                variant = {**line.settings, **point.settings}
                place = column.dataset, column.scenario, column.clients, line.runs
                run = plan(grid, *place, variant, grid.seeds[0])
                if _key(run) in run_keys:
                    cells[column, line, point] = PlannedCell(
                        settings_of(run.spec, grid.partition_per_seed),
                        grid.seeds,
                        run.spec.hashes(grid.seeds, grid.partition_per_seed),
                    )
        planned_lines = {line for _, line, _ in cells}
        for line in self.lines:
            if line not in planned_lines:
                settings = difference_text(line.settings, {})
                raise RequestError(
                    f"experiment {self.experiment.name}: grid {self.experiment.grid} plans no run of the "
                    f"line {line.title or line.method}{f' [{settings}]' if settings else ''}"
                )
        return cells

    @cached_property
    def hashes(self) -> frozenset[str]:
        """Spec hashes of the runs that the experiment's own grid plans; none where it finds them."""
        if self.finds:
            return frozenset()
        grid, runs = self._grid
        hashes = (run.spec.hashes(grid.seeds, grid.partition_per_seed) for run in runs)
        return frozenset(chain.from_iterable(hashes))


Plans = Mapping[str, Sequence[ExperimentPlan]]
"""Study -> its experiments."""


def _has_place(line: Line, point: Point, column: Column) -> bool:
    """Whether a line has the point in a column."""
    place = astuple(column)
    has_point = line.points is None or point.label in line.points
    return has_point and line.only.has(*place) and point.only.has(*place)


def _key(run: Planned) -> tuple[Any, ...]:
    return (*run.names, run.spec.hash)


def _variants(grid: Grid) -> tuple[Line, ...]:
    """Every method and variant of a grid once, in the grid's order."""
    lines = {
        (method, difference_text(variant, {})): Line(method, settings=variant)
        for *_, method, variant in combinations(grid)
    }
    return tuple(lines.values())
