"""What a study compares: tables of lines, columns, points and measures, read from the study's files."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.resources.abc import Traversable
from itertools import product
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from bench.errors import RequestError, first_problem
from bench.grids import Filters, expand, load_grid, plan
from bench.grids.experiment import Line, Point, grid_name, parse_experiment
from bench.grids.grid import ColumnMatch, combinations
from bench.studies.claims import Claims, read_claims
from bench.studies.measures import MEASURES, Measure, NamedMeasure
from bench.studies.settings import Column, Settings, settings_of

Figure = Literal["lines", "convergence", "differences", "points"]
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


class PlannedCell(NamedTuple):
    """The runs that a grid plans for a cell, a run a seed, all with the same settings."""

    settings: Settings
    seeds: tuple[int, ...]
    hashes: tuple[str, ...]


Place = tuple[Column, Line, Point]


@dataclass(frozen=True, eq=False, config=ConfigDict(extra="forbid", strict=True))
class Experiment:
    """A table of lines by columns and points under one or more measures, beside published values.

    - ``comparisons``: cells stand beside the first, and again beside each further one that prints a value.
    - ``measures``: without any those of the study.
    - ``grid`` plans its runs, which are known by their hashes.
    - ``main``: the table shows, without ``lines``, whatever runs of its ``columns`` the database holds: those
      of the usual settings in the study's lines, all others in lines of their own.
    - ``ranked``: its lines compete as those of a main table do.
    - ``reduced`` says what of the papers' protocol is less here: then no value is a target, and the order of
      the lines alone is compared.
    - ``apart``: its settings are not the study's usual ones, and its verdicts stand in for no value that no
      earlier table can judge.
    - ``only``: the columns of its file that the table shows.
    - ``axis`` names the points' ``x``, ``figures`` what is drawn, of ``FIGURES``.
    - ``guests`` are lines of methods that the grid does not name: they run wherever it runs ``host``.
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

    @property
    def finds(self) -> bool:
        """Whether the table shows whatever runs a database holds."""
        return self.main and not self.lines

    @property
    def all_lines(self) -> tuple[Line, ...]:
        """The lines, and the guests after them."""
        return (*self.lines, *self.guests)

    @property
    def targets(self) -> list[Target]:
        """The published tables that its cells are set beside."""
        return [target for comparison in self.comparisons for target in comparison.targets]

    @cached_property
    def runs(self) -> dict[Place, PlannedCell]:
        """The planned runs by column, line and point; only where the grid plans some."""
        if self.finds:
            return {}
        grid = load_grid(self.grid)
        settings = grid.settings
        for guest in self.guests:
            settings += grid.settings_beside(self.host, guest.runs, guest.settings)
        grid = grid.model_copy(update={"settings": settings})
        first_seed = Filters(seeds=grid.seeds[:1])  # runs of other seeds differ in nothing else
        planned_hashes = {run.spec.hash for run in expand(grid, first_seed)}
        cells = {}
        for point, column, line in product(self.points, self.columns, self.all_lines):
            where = column.dataset, column.scenario, column.clients
            has_point = line.points is None or point.label in line.points
            if has_point and line.only.has(*where) and point.only.has(*where):
                variant = {**line.settings, **point.settings}
                spec = plan(grid, *where, line.runs, variant, grid.seeds[0]).spec
                if spec.hash in planned_hashes:
                    per_seed = grid.partition_per_seed
                    hashes = spec.hashes(grid.seeds, per_seed)
                    cells[column, line, point] = PlannedCell(settings_of(spec, per_seed), grid.seeds, hashes)
        return cells

    @property
    def hashes(self) -> set[str]:
        """Spec hashes of the planned runs."""
        return {digest for cell in self.runs.values() for digest in cell.hashes}


Plans = Mapping[str, Sequence[Experiment]]
"""Study -> its experiments."""


def read(
    folder: Traversable, names: Iterable[str], lines: Iterable[Line], measures: Iterable[Measure] = ()
) -> tuple[Experiment, ...]:
    """The experiments of a study from the files of these names in a folder, in this order.

    ``lines`` are those of its main tables, which a file calls by name; ``measures`` are the study's own.

    Raises:
        RequestError: a file is not valid.
    """
    rows = {line.method: line for line in lines}
    known_measures = {measure.name: measure for measure in (*MEASURES, *measures)}
    experiments = []
    for name in names:
        place = folder / f"{name}.toml"
        file = parse_experiment(place.read_text(encoding="utf-8"), name)
        planned = list(combinations(file.grid("")))
        columns = dict.fromkeys(Column(*names[:3]) for names in planned)
        own = [rows.get(line, Line(line)) if isinstance(line, str) else line for line in file.lines]
        # Without lines there is one for every method and variant.
        own = own or [*dict.fromkeys(Line(method, settings=variant) for *_, method, variant in planned)]
        for part in file.tables:
            try:
                # By way of JSON: of Python's own values, strict types take no dictionary for a dataclass.
                text = json.dumps({"name": name, **part, "grid": grid_name(place)}, default=str)
                table = TypeAdapter(Experiment).validate_json(text, context=known_measures)
            except ValidationError as error:
                raise RequestError(f"experiment {name}: tables: {first_problem(error)}") from None
            shown = [each for each in columns if table.only.has(each.dataset, each.scenario, each.clients)]
            if table.competes:  # the columns of a data set stand together
                datasets = dict.fromkeys(column.dataset for column in shown)
                shown = [column for name in datasets for column in shown if column.dataset == name]
            lines = () if table.main else tuple(own)
            experiments.append(replace(table, columns=tuple(shown), lines=lines, points=file.points))
    return tuple(experiments)


def read_study(
    folder: Traversable, measures: Iterable[Measure] = ()
) -> tuple[tuple[Line, ...], tuple[Experiment, ...], tuple[Claims, ...]]:
    """What ``study.toml`` in a folder names: the lines of a study's main tables, and in the order of their
    documents the files in ``experiments`` and ``claims``; ``measures`` are the study's own.
    """
    content = tomllib.loads((folder / "study.toml").read_text(encoding="utf-8"))
    lines = TypeAdapter(tuple[Line, ...]).validate_json(json.dumps(content["lines"]))
    experiments = read(folder / "experiments", content["experiments"], lines, measures)
    claims = read_claims(folder / "claims", content.get("claims", ()), (*MEASURES, *measures))
    return lines, experiments, claims
