"""An experiment's file: what it runs, as lines in columns at points, and the tables that show it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from bench.grids.grid import ColumnMatch, Counts, Grid, Names, Part, Setting


class Columns(Part):
    """The federations on which an experiment's lines are run."""

    datasets: Names
    scenario: str
    clients: Counts


class LinePart(Part):
    """A line of an experiment: a method with settings of its own; ``reads`` names the method whose runs it
    shows, where that is another.

    ``only`` are the columns that it stands in, ``points`` the labels of its points; without them it has all.
    The rest is for the reader of a table: see ``bench.studies.experiment.Line``.
    """

    method: str
    title: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    stage: str = ""
    reads: str = ""
    published: str = ""
    printed: Names = ("",)
    ranked: bool = True
    only: ColumnMatch = ColumnMatch()
    points: Names | None = None

    @property
    def runs(self) -> str:
        """The method whose runs it shows."""
        return self.reads or self.method


class Point(Part):
    """A column within each federation: settings added to every line's, and their place ``x`` on an axis; it
    stands in the columns ``only``. Points are told apart by what they are, not by what they say.

    ``printed`` is the setting, and ``datasets`` are data sets' names, under which published tables have it
    where those are others. With ``grid`` the runs are those that another grid plans. They are shown for
    comparison; their verdicts stand in that grid's own table.
    """

    label: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    printed: str = ""
    datasets: dict[str, str] = Field(default_factory=dict)
    x: float | None = None
    grid: str = ""
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
    lines: tuple[str | LinePart, ...] = ()
    points: Annotated[tuple[Point, ...], Field(min_length=1)] = (Point(),)
    tables: tuple[dict[str, Any], ...] = ()

    @model_validator(mode="after")
    def _either_way(self) -> Self:
        """Either columns and lines, or settings with methods.

        Raises:
            ValueError: one without the other, or both ways, or a line twice.
        """
        if bool(self.columns) != bool(self.lines) or bool(self.lines) == bool(self.settings):
            raise ValueError("expected columns and lines, or settings and methods")
        if not self.methods and any(setting.methods is None for setting in self.settings):
            raise ValueError("the key 'methods' is missing")
        for place, line in enumerate(self.parts):
            if line in self.parts[:place]:
                raise ValueError(f"a line stands twice: {line.title or line.method}")
        return self

    @property
    def parts(self) -> tuple[LinePart, ...]:
        """The lines; of one that is a name nothing else is known here."""
        return tuple(LinePart(method=line) if isinstance(line, str) else line for line in self.lines)

    def grid(self, study: str) -> Grid:
        """What a sweep runs, of the study of that name."""
        settings = self.settings or tuple(
            part for columns in self.columns for line in self.parts for part in self._settings(columns, line)
        )
        grid_fields = {name: getattr(self, name) for name in Grid.model_fields}
        return Grid(**{**grid_fields, "settings": settings, "study": self.study or study})

    def _settings(self, columns: Columns, line: LinePart) -> Iterator[Setting]:
        """The runs of a line in some columns: points that stand in the same columns share a setting."""
        line_points = [
            point
            for point in self.points
            if not point.grid and (line.points is None or point.label in line.points)
        ]
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
