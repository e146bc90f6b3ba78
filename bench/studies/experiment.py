"""What a study compares: tables of lines, columns, points and measures, read from the study's files."""

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
"""What an experiment may have drawn; ``bench.figures.charts`` says how."""


Targets = tuple[tuple[str, str], ...]
"""Papers and tables of theirs: of a cell's published values the first that they print stands beside it."""


class PlannedCell(NamedTuple):
    """The runs that are planned for a cell, a run a seed, all with the same settings.

    An experiment knows the ``hashes`` of their specs. Of a cell in usual settings there are its name in the
    runs frame, whether every seed draws its own partition, and the grid that plans it, if any.
    """

    settings: Settings
    seeds: tuple[int, ...] = ()
    hashes: tuple[str, ...] = ()
    cell: str = ""
    per_seed: bool = False
    grid: Grid | None = None


def usual_cell(spec: RunSpec, per_seed: bool, grid: Grid | None = None) -> PlannedCell:
    """What is usual where a spec is, and the grid plans it, if any."""
    cell = spec.cell_on_any_partition if per_seed else spec.cell
    return PlannedCell(settings_of(spec, per_seed), grid.seeds if grid else (), (), cell, per_seed, grid)


Place = tuple[Column, Line, Point]


@dataclass(frozen=True, eq=False, config=ConfigDict(extra="forbid", strict=True))
class Experiment:
    """A table of lines by columns and points under one or more measures, beside published values.

    A ``main`` table shows whatever runs of its columns the database holds: those of the usual settings in the
    study's lines, all others in lines of their own.
    """

    name: str
    title: str
    comparisons: Annotated[Mapping[str, Targets], Field(min_length=1)]
    """What cells are set beside, by its name in ``cells.csv``: cells stand beside the first, and again beside
    each further one that prints a value.
    """
    measures: tuple[NamedMeasure, ...] = ()  #: none: those of the study
    grid: str = ""  #: it plans the runs, which are known by their hashes
    main: bool = False
    ranked: bool = False  #: the lines compete as those of a main table do
    reduced: str = ""  #: what of the papers' protocol is less here: only the order of lines is compared
    apart: bool = False  #: in other settings than the usual ones; no verdict here counts in the score
    only: ColumnMatch = ColumnMatch()  #: the columns of its file that the table shows
    columns: tuple[Column, ...] = ()
    lines: tuple[Line, ...] = ()
    points: tuple[Point, ...] = (Point(),)
    axis: str = ""  #: what the points' ``x`` is
    figures: tuple[Figure, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def competes(self) -> bool:
        """Whether its methods are compared with each other."""
        return self.main or self.ranked

    @cached_property
    def runs(self) -> dict[Place, PlannedCell]:
        """The runs that the grid plans, by column, line and point; none of a main table."""
        if self.main:
            return {}
        grid = load_grid(self.grid)
        cells = {}
        for point, column, line in product(self.points, self.columns, self.lines):
            where = column.dataset, column.scenario, column.clients
            has_point = line.points is None or point.label in line.points
            if has_point and line.only.has(*where) and point.only.has(*where):
                variant = {**line.settings, **point.settings}
                spec, per_seed = (
                    plan(grid, *where, line.runs, variant, grid.seeds[0]).spec,
                    grid.partition_per_seed,
                )
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
    """The experiments of a study from the files of these names in a folder, in this order.

    ``lines`` are those of its main tables, which a file calls by name; ``measures`` are the study's own.
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
                # By way of JSON: of Python's own values, strict types take no dictionary for a dataclass.
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
    """The attributes of a study in ``study.toml`` of a folder.

    It names the files in the folders ``experiments`` and ``claims`` in the order of their documents;
    ``measures`` are the study's own.
    """
    content = tomllib.loads((folder / "study.toml").read_text(encoding="utf-8"))
    study = {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}
    study["lines"] = TypeAdapter(tuple[Line, ...]).validate_json(json.dumps(study["lines"]))
    study["experiments"] = read(folder / "experiments", study["experiments"], study["lines"], measures)
    study["claims"] = read_claims(folder / "claims", study.get("claims", ()), measures)
    study["primary"], *study["readings"] = (Reading(**each) for each in study["readings"])
    return study
