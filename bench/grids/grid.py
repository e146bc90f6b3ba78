"""A grid: a product of data sets, scenarios, client counts, methods and seeds, from a TOML file.

In place of methods and settings a file may have lines in columns at points, which tables show.
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
"""The setting that ``Match.model`` is about."""

PARTITION_SEED = "protocol.partition_seed"
"""The setting by which runs draw different clients."""


def _as_tuple(value: Any) -> Any:
    """A single value stands for a list of one."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


OptionalNames = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
Names = Annotated[tuple[str, ...], Field(min_length=1), BeforeValidator(_as_tuple)]
Counts = Annotated[tuple[Count, ...], Field(min_length=1), BeforeValidator(_as_tuple)]
Seeds = Annotated[tuple[Seed, ...], Field(min_length=1), BeforeValidator(_as_tuple)]


class Part(BaseModel):
    """A part of a file: nothing but what is declared, and of the declared types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Columns(Part):
    """The federations on which lines or methods are run: data sets by client counts in a scenario."""

    datasets: Names
    scenario: str
    clients: Counts


class Setting(Columns):
    """One product of data sets and client counts in a scenario; ``methods`` replaces the grid's.

    Every run is made once for each of ``variants``: dotted keys and their values, as in an
    override's ``set``; an empty one is the plain run.
    """

    methods: Names | None = None
    variants: Annotated[tuple[dict[str, Any], ...], Field(min_length=1)] = ({},)


class ColumnMatch(Part):
    """Which columns are meant; what is left out means all."""

    dataset: Names | None = None
    scenario: Names | None = None
    clients: Counts | None = None

    def has(self, *names: str | int) -> bool:
        """Whether what has these names, in the order of the fields, is among what is meant."""
        choices = (getattr(self, field) for field in type(self).model_fields)
        return all(choice is None or name in choice for choice, name in zip(choices, names, strict=True))


class Match(ColumnMatch):
    """Which runs an override is for. ``model`` is the client model."""

    method: Names | None = None
    model: Names | None = None


class Override(Part):
    """Dotted keys (``protocol.rounds``, ``method.mu``) set for the runs that ``match`` names."""

    match: Match
    set: Annotated[dict[str, Any], Field(min_length=1)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class Line:
    """A row: a method with settings as in ``--set``. Without a title it is named by method and settings.

    reads           the method whose runs it shows, where that is not ``method`` itself
    stage           replaces the stage of every measure
    published       the method's name in the published numbers, where that differs
    printed         the settings under which they have it (any of them)
    printed_stages  the stages of which the paper may have printed any, where it does not say which
    ranked          False keeps a reference that is no competitor out of best and second best
    only, points    the columns and labels of points where it stands; without them in all
    setting         what runs that were found in the database have other than the usual ones; in no file
    is_own          False if the line's method was found there, too; in no file
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
        """Whether the line can be best or second best, as it can have a rank."""
        return self.is_own and self.ranked and not self.setting


class Point(Part):
    """A column within each federation: settings added to every line's, and their place ``x`` on an axis; it
    stands in the columns ``only``. Points are told apart by what they are, not by what they say.

    ``printed`` is the setting, and ``datasets`` are data sets' names, under which published tables have it
    where those are others.
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
    """What a sweep runs.

    Every method of every setting is run with every seed. ``protocol`` and ``client`` replace the data sets'
    defaults; ``override`` blocks come after them, in order. With ``partition_per_seed`` a run's partition and
    split are drawn from the run's own seed.

    In place of methods and settings a file may have ``columns``, ``lines`` and ``points``: every line is run
    in every column at every point. A line that is a name is the study's. ``tables`` are for the report: see
    ``bench.studies.experiment.read``.
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
        """The settings in which the lines are run."""
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
    """Data set, scenario, clients, method and variant of every run of a grid, without its seeds."""
    for setting in grid.settings:
        for dataset in setting.datasets:
            for clients in setting.clients:
                for method in setting.methods or grid.methods:
                    for variant in setting.variants:
                        yield dataset, setting.scenario, clients, method, variant


# Files --------------------------------------------------------------------------------------------


def _files_by_name() -> dict[str, Path]:
    """The files of the suite's studies."""
    return {file.stem: file for file in Path(str(files("bench.reports"))).glob("*/experiments/*.toml")}


def grid_names() -> list[str]:
    """Names of the grids that come with the suite."""
    return sorted(_files_by_name())


def grid_name(file: object) -> str:
    """What ``--grid`` calls a file: its name if it comes with the suite, else its path."""
    names = {str(path): name for name, path in _files_by_name().items()}
    return names.get(str(file), str(file))


def grid_text(name_or_path: str) -> str:
    """The text of a grid's file, by the grid's name or the file's path."""
    grids = _files_by_name()
    path = Path(name_or_path)
    if name_or_path not in grids and path.suffix != ".toml" and len(path.parts) == 1:
        raise unknown("grid", name_or_path, grids)
    return grids.get(name_or_path, path).read_text(encoding="utf-8")


def load_grid(name_or_path: str) -> Grid:
    """A grid by its name, or from a TOML file. An unknown key or a wrong value is a ``RequestError``."""
    return parse_grid(grid_text(name_or_path), name_or_path)


def parse_grid(text: str, name: str) -> Grid:
    """A grid from TOML text, its lines as settings, too; ``name`` is for messages."""
    try:
        # By way of JSON, whose lists and tables a strict model takes for tuples and data classes.
        grid = Grid.model_validate_json(json.dumps(tomllib.loads(text), default=str))
    except ValidationError as error:  # of several ways to read a part the deepest error says most
        detail = max(error.errors(), key=lambda detail: len(detail["loc"]))
        place = ".".join(map(str, detail["loc"]))
        raise RequestError(f"grid {name}: {place}: {detail['msg']}") from None
    except ValueError as error:
        raise RequestError(f"grid {name} is not valid TOML: {error}") from None
    return grid.model_copy(update={"settings": grid.settings or tuple(grid.line_settings())})
