"""A grid's file: what it runs, also as lines in columns at points, and the tables that show it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import field
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from bench.errors import RequestError, unknown
from bench.grids.grid import ColumnMatch, Columns, Grid, Names, OptionalNames, Part, Setting, combinations


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
    def published_name(self) -> str:
        """The method's name in the published numbers."""
        return self.published or self.method

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


class ExperimentFile(Grid):
    """A grid that tables show. In place of methods and settings it may have ``columns``, ``lines`` and
    ``points``: every line is run in every column at every point. A line that is a name is the study's.

    ``tables`` are for the report: see ``bench.studies.experiment.read``.
    """

    settings: tuple[Setting, ...] = ()
    columns: tuple[Columns, ...] = ()
    lines: tuple[str | Line, ...] = ()
    points: Annotated[tuple[Point, ...], Field(min_length=1)] = (Point(),)
    tables: tuple[dict[str, Any], ...] = ()

    @model_validator(mode="after")
    def _either_way(self) -> Self:
        if bool(self.columns) != bool(self.lines) or bool(self.lines) == bool(self.settings):
            raise ValueError("expected columns and lines, or settings and methods")
        return self

    @property
    def parts(self) -> tuple[Line, ...]:
        """The lines; of one that is a name nothing else is known here."""
        return tuple(Line(line) if isinstance(line, str) else line for line in self.lines)

    def grid(self, study: str) -> Grid:
        """What a sweep runs, of the study of that name."""
        settings = self.settings or tuple(
            part for columns in self.columns for line in self.parts for part in self._settings(columns, line)
        )
        grid_fields = {name: getattr(self, name) for name in Grid.model_fields}
        return Grid(**{**grid_fields, "settings": settings, "study": self.study or study})

    def _settings(self, columns: Columns, line: Line) -> Iterator[Setting]:
        """The runs of a line in some columns: points that stand in the same columns share a setting."""
        line_points = [point for point in self.points if line.points is None or point.label in line.points]
        for point_columns, points in groupby(line_points, lambda point: point.only):
            variants = tuple({**line.settings, **point.settings} for point in points)
            for dataset in columns.datasets:
                clients = tuple(
                    count
                    for count in columns.clients
                    if line.only.has(dataset, columns.scenario, count)
                    and point_columns.has(dataset, columns.scenario, count)
                )
                if clients:
                    yield Setting(
                        datasets=(dataset,),
                        scenario=columns.scenario,
                        clients=clients,
                        methods=(line.runs,),
                        variants=variants,
                    )


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


def load_grid(name_or_path: str) -> Grid:
    """A grid by its name, or from a TOML file.

    An unknown key, a value of the wrong kind and an override that matches nothing are a ``RequestError``.
    """
    text, study = read_grid(name_or_path)
    return parse_grid(text, name_or_path, study)


def read_grid(name_or_path: str) -> tuple[str, str]:
    """The text of a grid's file and the grid's study, if any."""
    grids = _files_by_name()
    path = Path(name_or_path)
    if name_or_path in grids:
        return grids[name_or_path].read_text(encoding="utf-8"), grids[name_or_path].parents[1].name
    if path.suffix != ".toml" and len(path.parts) == 1:
        raise unknown("grid", name_or_path, grids)
    return path.read_text(encoding="utf-8"), ""


def parse_grid(text: str, name: str, study: str = "") -> Grid:
    """A grid from TOML text; ``name`` is for messages."""
    grid = parse_experiment(text, name).grid(study)
    columns = [{str(value) for value in column} for column in zip(*combinations(grid), strict=True)]
    for index, override in enumerate(grid.override):
        for key, known_names in zip(("dataset", "scenario", "clients", "method"), columns, strict=False):
            for value in map(str, getattr(override.match, key) or ()):
                if value not in known_names:
                    raise unknown(f"override.{index}.match.{key} of grid {name}:", value, known_names)
    return grid


def parse_experiment(text: str, name: str) -> ExperimentFile:
    """An experiment's file from TOML text."""
    try:
        # By way of JSON, whose lists and tables a strict model takes for tuples and data classes.
        return ExperimentFile.model_validate_json(json.dumps(tomllib.loads(text), default=str))
    except ValidationError as error:  # of several ways to read a part the deepest error says most
        detail = max(error.errors(), key=lambda detail: len(detail["loc"]))
        place = ".".join(map(str, detail["loc"]))
        raise RequestError(f"grid {name}: {place}: {detail['msg']}") from None
    except ValueError as error:
        raise RequestError(f"grid {name} is not valid TOML: {error}") from None
