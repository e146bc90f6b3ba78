"""A grid: a product of data sets, scenarios, client counts, methods and seeds, from a TOML file.

Instead of methods and settings, a file may have lines, columns and points; tables show them.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import field
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from bench.errors import RequestError, unknown
from bench.spec import Count, Seed

MODEL = "client.model"
"""The setting that ``Match.model`` matches."""

PARTITION_SEED = "protocol.partition_seed"
"""The setting that makes runs draw different clients."""


def _as_tuple(value: Any) -> Any:
    """Convert a value to a tuple; a single value becomes a tuple of one."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


OptionalNames = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
Names = Annotated[tuple[str, ...], Field(min_length=1), BeforeValidator(_as_tuple)]
Counts = Annotated[tuple[Count, ...], Field(min_length=1), BeforeValidator(_as_tuple)]
Seeds = Annotated[tuple[Seed, ...], Field(min_length=1), BeforeValidator(_as_tuple)]


class Part(BaseModel):
    """A part of a file: it allows only the declared keys, with values of the declared types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Columns(Part):
    """The federations of lines or methods: data sets by client counts in a scenario."""

    datasets: Names
    scenario: str
    clients: Counts


class Setting(Columns):
    """One product of data sets and client counts in a scenario; ``methods`` replaces the grid's.

    Every run is made once for each of ``variants``: dotted keys and their values, as in an override's
    ``set``; an empty variant is the plain run.
    """

    methods: Names | None = None
    variants: Annotated[tuple[dict[str, Any], ...], Field(min_length=1)] = ({},)


class ColumnMatch(Part):
    """Selects columns; a field that is left out selects all."""

    dataset: Names | None = None
    scenario: Names | None = None
    clients: Counts | None = None

    def has(self, *names: str | int) -> bool:
        """Return whether these names, in the order of the fields, are selected."""
        choices = (getattr(self, field) for field in type(self).model_fields)
        return all(choice is None or name in choice for choice, name in zip(choices, names, strict=True))


class Match(ColumnMatch):
    """Selects the runs of an override. ``model`` is the client model."""

    method: Names | None = None
    model: Names | None = None


class Override(Part):
    """Dotted keys (``protocol.rounds``, ``method.mu``) set for the runs that ``match`` names."""

    match: Match
    set: Annotated[dict[str, Any], Field(min_length=1)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class Line:
    """A row: a method with settings as in ``--set``. Without a title, method and settings name it.

    reads           the method whose runs the line shows, if it is not ``method`` itself
    stage           replaces the stage of every measure
    published       the method's name in the published numbers, if it differs
    printed         the settings (any of them) that the published numbers give for the line
    printed_stages  the stages that the paper may have printed, if it does not name one
    ranked          False: the line is a reference and cannot be best or second best
    only, points    the columns, and the labels of points, that have the line; default: all
    setting         for runs found in the database: their settings that are not the usual ones; in no file
    is_own          False: the line's method was found in the database, too; in no file
    """

    method: str
    title: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    printed: Names = ("",)
    printed_stages: OptionalNames = ()
    stage: str = ""
    reads: str = ""
    published: str = ""
    ranked: bool = True
    only: ColumnMatch = field(default_factory=ColumnMatch)
    points: Names | None = None
    setting: str = ""
    is_own: bool = True

    @property
    def runs(self) -> str:
        """The method whose runs the line shows."""
        return self.reads or self.method

    @property
    def competes(self) -> bool:
        """Whether the line can be best or second best and have a rank."""
        return self.is_own and self.ranked and not self.setting


class Point(Part):
    """A column within each federation: settings that are added to every line's, and a position ``x`` on an
    axis. The columns ``only`` have it. Points are compared by identity, not by value.

    ``printed`` is the setting of the point in published tables, and ``datasets`` gives the names of data sets
    there, if these differ.
    """

    label: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    printed: str = ""
    datasets: dict[str, str] = Field(default_factory=dict)
    x: float | None = None
    only: ColumnMatch = ColumnMatch()

    __eq__ = object.__eq__
    __hash__ = object.__hash__


class Grid(Part):
    """The runs of a sweep.

    Every method of every setting is run with every seed. ``protocol`` and ``client`` replace the data sets'
    defaults; ``override`` blocks come after them, in order. With ``partition_per_seed`` a run's partition and
    split are drawn from the run's own seed.

    Instead of methods and settings, a file may have ``columns``, ``lines`` and ``points``: every line is run
    in every column at every point. A line that is only a name is a line of the study. ``tables`` are for the
    report: see ``bench.studies.experiment.read``.
    """

    title: str
    methods: OptionalNames = ()
    seeds: Seeds
    partition_per_seed: bool = False
    protocol: dict[str, Any] = Field(default_factory=dict)
    client: dict[str, Any] = Field(default_factory=dict)
    settings: tuple[Setting, ...] = ()
    override: tuple[Override, ...] = ()
    columns: tuple[Columns, ...] = ()
    lines: tuple[str | Line, ...] = ()
    points: Annotated[tuple[Point, ...], Field(min_length=1)] = (Point(),)
    tables: tuple[dict[str, Any], ...] = ()

    @model_validator(mode="after")
    def _either_way(self) -> Self:
        if bool(self.columns) != bool(self.lines) or bool(self.lines) == bool(self.settings):
            raise ValueError("expected columns and lines, or settings and methods")
        return self

    def line_settings(self) -> Iterator[Setting]:
        """Yield the settings in which the lines are run."""
        for columns in self.columns:
            for line in (Line(line) if isinstance(line, str) else line for line in self.lines):
                points = [point for point in self.points if line.points is None or point.label in line.points]
                for dataset in columns.datasets:
                    for clients in columns.clients:
                        where = (dataset, columns.scenario, clients)
                        here = [point for point in points if point.only.has(*where)]
                        variants = tuple({**line.settings, **point.settings} for point in here)
                        if variants and line.only.has(*where):
                            yield Setting(
                                datasets=(dataset,),
                                scenario=columns.scenario,
                                clients=(clients,),
                                methods=(line.runs,),
                                variants=variants,
                            )


Combination = tuple[str, str, int, str, dict[str, Any]]


def combinations(grid: Grid) -> Iterator[Combination]:
    """Yield data set, scenario, clients, method and variant of every run of a grid, without its seeds."""
    for setting in grid.settings:
        for dataset in setting.datasets:
            for clients in setting.clients:
                for method in setting.methods or grid.methods:
                    for variant in setting.variants:
                        yield dataset, setting.scenario, clients, method, variant


# Files --------------------------------------------------------------------------------------------


def _files_by_name() -> dict[str, Path]:
    """Return the files of the suite's studies by name."""
    return {file.stem: file for file in Path(str(files("bench.reports"))).glob("*/experiments/*.toml")}


def grid_names() -> list[str]:
    """Return the names of the grids that come with the suite."""
    return sorted(_files_by_name())


def grid_name(file: object) -> str:
    """Return a file's name for ``--grid``: its grid's name if it comes with the suite, else its path."""
    names = {str(path): name for name, path in _files_by_name().items()}
    return names.get(str(file), str(file))


def grid_text(name_or_path: str) -> str:
    """Return the text of a grid's file, by the grid's name or the file's path."""
    grids = _files_by_name()
    path = Path(name_or_path)
    if name_or_path not in grids and path.suffix != ".toml" and len(path.parts) == 1:
        raise unknown("grid", name_or_path, grids)
    return grids.get(name_or_path, path).read_text(encoding="utf-8")


def load_grid(name_or_path: str) -> Grid:
    """Load a grid by name or from a TOML file. An unknown key or a wrong value is a ``RequestError``."""
    return parse_grid(grid_text(name_or_path), name_or_path)


def parse_grid(text: str, name: str) -> Grid:
    """Parse a grid from TOML text; its lines also become settings. ``name`` is for messages."""
    try:
        # JSON first: a strict model takes its lists and tables for tuples and data classes.
        grid = Grid.model_validate_json(json.dumps(tomllib.loads(text), default=str))
    except ValidationError as error:  # if a part can be read in several ways, the deepest error says most
        detail = max(error.errors(), key=lambda detail: len(detail["loc"]))
        place = ".".join(map(str, detail["loc"]))
        raise RequestError(f"grid {name}: {place}: {detail['msg']}") from None
    except ValueError as error:
        raise RequestError(f"grid {name} is not valid TOML: {error}") from None
    return grid.model_copy(update={"settings": grid.settings or tuple(grid.line_settings())})
