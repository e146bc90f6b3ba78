"""The experiments of a study: tables of lines, columns, points and measures, read from the study's files."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.resources.abc import Traversable
from itertools import product
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from bench.errors import RequestError, first_problem
from bench.grids import Grid, load_grid, plan
from bench.grids.grid import ColumnMatch, Line, Point, combinations, grid_name, parse_grid
from bench.spec import RunSpec
from bench.studies.claims import read_claims
from bench.studies.measures import MEASURES, Measure, NamedMeasure
from bench.studies.settings import Column, Reading, Settings, settings_of

Figure = Literal["lines", "convergence", "differences", "points"]
"""Figures that an experiment may have; ``bench.figures.charts`` draws them."""

Targets = tuple[tuple[str, str], ...]
"""Papers and their tables, in order. A cell is compared with the first value that these print for it."""


class PlannedCell(NamedTuple):
    """The runs that are planned for a cell: one run per seed, all with the same settings.

    For an experiment, ``hashes`` are the runs' spec hashes. For usual settings, ``cell`` is the name in the
    runs frame; ``per_seed``: every seed draws its own partition; ``grid`` plans the runs (None: no grid).
    """

    settings: Settings
    seeds: tuple[int, ...] = ()
    hashes: tuple[str, ...] = ()
    cell: str = ""
    per_seed: bool = False
    grid: Grid | None = None


def usual_cell(spec: RunSpec, per_seed: bool, grid: Grid | None = None) -> PlannedCell:
    """Return the runs in usual settings for the column and method of a spec. ``grid`` plans them, if any."""
    cell = spec.cell_on_any_partition if per_seed else spec.cell
    return PlannedCell(settings_of(spec, per_seed), grid.seeds if grid else (), (), cell, per_seed, grid)


Place = tuple[Column, Line, Point]


@dataclass(frozen=True, eq=False, config=ConfigDict(extra="forbid", strict=True))
class Experiment:
    """A table of lines by columns and points under one or more measures, beside published values.

    A ``main`` table shows all runs that the database has in its columns. Runs in usual settings are shown in
    the study's lines, other runs in additional lines.
    """

    name: str
    title: str
    comparisons: Annotated[Mapping[str, Targets], Field(min_length=1)]
    """Published tables by their name in ``cells.csv``. A cell is compared with the first of these names, and
    again with each further name that has a value for the cell.
    """
    measures: tuple[NamedMeasure, ...] = ()  #: empty: the study's measures
    grid: str = ""  #: name of the grid that plans the runs; the runs are found by their hashes
    main: bool = False
    ranked: bool = False  #: the lines compete as in a main table
    reduced: str = ""  #: how the papers' protocol is reduced here; then only the order of lines is compared
    apart: bool = False  #: the settings are not the usual ones; verdicts here do not count in the score
    only: ColumnMatch = ColumnMatch()  #: columns of the file that the table shows
    columns: tuple[Column, ...] = ()
    lines: tuple[Line, ...] = ()
    points: tuple[Point, ...] = (Point(),)
    axis: str = ""  #: the quantity that the points' ``x`` gives
    figures: tuple[Figure, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def competes(self) -> bool:
        """Whether its methods are compared with each other."""
        return self.main or self.ranked

    @cached_property
    def runs(self) -> dict[Place, PlannedCell]:
        """The runs that the grid plans, by column, line and point; empty for a main table."""
        if self.main:
            return {}
        grid, cells = load_grid(self.grid), {}
        per_seed = grid.partition_per_seed
        for point, column, line in product(self.points, self.columns, self.lines):
            where = column.dataset, column.scenario, column.clients
            has_point = line.points is None or point.label in line.points
            if has_point and line.only.has(*where) and point.only.has(*where):
                variant = {**line.settings, **point.settings}
                spec = plan(grid, *where, line.runs, variant, grid.seeds[0]).spec
                hashes = tuple(spec.with_seed(seed, per_seed).hash for seed in grid.seeds)
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
    """Read the experiments of a study from the files ``NAME.toml`` in a folder, in the order of ``names``.

    ``lines`` are the lines of main tables; files name them by method. ``measures`` are the study's own.
    """
    rows = {line.method: line for line in lines}
    known_measures = {**MEASURES, **{measure.name: measure for measure in measures}}
    experiments = []
    for name in names:
        place = folder / f"{name}.toml"
        file = parse_grid(place.read_text(encoding="utf-8"), name)
        own = [rows.get(line, Line(line)) if isinstance(line, str) else line for line in file.lines]
        planned = dict.fromkeys(Column(*names[:3]) for names in combinations(file))
        for part in file.tables:
            try:
                # Via JSON: for Python's own values, strict types accept no dictionary for a dataclass.
                text = json.dumps({"name": name, **part, "grid": grid_name(place)}, default=str)
                table = TypeAdapter(Experiment).validate_json(text, context=known_measures)
            except ValidationError as error:
                raise RequestError(f"experiment {name}: tables: {first_problem(error)}") from None
            columns = [one for one in planned if table.only.has(one.dataset, one.scenario, one.clients)]
            if table.competes:  # the columns of a data set stand together
                datasets = [column.dataset for column in columns]
                columns.sort(key=lambda column: datasets.index(column.dataset))
            shown = () if table.main else tuple(own)
            experiments.append(replace(table, columns=tuple(columns), lines=shown, points=file.points))
    return tuple(experiments)


def read_study(folder: Traversable, measures: Iterable[Measure] = ()) -> dict[str, Any]:
    """Read the attributes of a study from ``study.toml`` in a folder.

    ``study.toml`` names the files in the folders ``experiments`` and ``claims``, in the order of their
    documents. ``measures`` are the study's own.
    """
    content = tomllib.loads((folder / "study.toml").read_text(encoding="utf-8"))
    study = {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}
    study["lines"] = TypeAdapter(tuple[Line, ...]).validate_json(json.dumps(study["lines"]))
    study["experiments"] = read(folder / "experiments", study["experiments"], study["lines"], measures)
    study["claims"] = read_claims(folder / "claims", study.get("claims", ()), measures)
    study["primary"], *study["readings"] = (Reading(**each) for each in study["readings"])
    return study
