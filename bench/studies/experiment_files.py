"""A study's experiments from their files: the tables that show what ``bench.grids.experiment`` runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources.abc import Traversable

from pydantic import Field, ValidationError

from bench.errors import RequestError, first_problem, unknown
from bench.grids.expand import combinations
from bench.grids.experiment import ExperimentFile, Line
from bench.grids.files import grid_name, parse_experiment
from bench.grids.grid import ColumnMatch, Part
from bench.studies.experiment import Comparison, Experiment
from bench.studies.measures import MEASURES, Measure
from bench.studies.settings import Column


class TablePart(Part):
    """A table of an experiment: see ``bench.studies.experiment.Experiment``. ``only`` are its columns among
    those of the grid; ``measures`` are names.
    """

    name: str = ""
    title: str
    comparisons: tuple[Comparison, ...] = Field(min_length=1)
    measures: tuple[str, ...] = ()
    main: bool = False
    ranked: bool = False
    reduced: str = ""
    apart: bool = False
    only: ColumnMatch = ColumnMatch()
    axis: str = ""
    figures: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def read(
    folder: Traversable, names: Iterable[str], lines: Iterable[Line], measures: Iterable[Measure] = ()
) -> tuple[Experiment, ...]:
    """The experiments of a study from the files of these names in a folder, in this order.

    ``lines`` are those of its main tables, which a file calls by name; ``measures`` are the study's own.

    Raises:
        RequestError: there is no such file, it is not valid, or two of the ``lines`` are of one method.
    """
    rows: dict[str, Line] = {}
    for line in lines:
        if rows.setdefault(line.method, line) is not line:
            raise RequestError(f"lines: {line.method} stands twice, and files call lines by their methods")
    measures_by_name = {measure.name: measure for measure in (*MEASURES, *measures)}
    return tuple(
        experiment
        for name in names
        for experiment in _tables(folder / f"{name}.toml", name, rows, measures_by_name)
    )


def _tables(
    place: Traversable, name: str, rows: Mapping[str, Line], measures: Mapping[str, Measure]
) -> Iterator[Experiment]:
    if not place.is_file():
        raise RequestError(f"experiment {name}: there is no file {place}")
    file = parse_experiment(place.read_text(encoding="utf-8"), name)
    for part in file.tables:
        try:
            # By way of JSON: of Python's own values, strict types take no dictionary for a dataclass.
            table = TablePart.model_validate_json(json.dumps(part, default=str))
        except ValidationError as error:
            raise RequestError(f"experiment {name}: tables: {first_problem(error)}") from None
        for measure in table.measures:
            if measure not in measures:
                raise unknown(f"measure of experiment {name}:", measure, measures)
        fields = {key: value for key, value in dict(table).items() if key != "only"}
        yield Experiment(
            **fields
            | {
                "name": table.name or name,
                "measures": tuple(measures[measure] for measure in table.measures),
                "grid": grid_name(place),
                "columns": _columns(file, table)
                if table.main or table.ranked or table.only != ColumnMatch()
                else (),
                "lines": ()
                if table.main
                else tuple(
                    rows.get(line, Line(line)) if isinstance(line, str) else line for line in file.lines
                ),
                "points": file.points,
            }
        )


def _columns(file: ExperimentFile, table: TablePart) -> tuple[Column, ...]:
    """The columns that a table shows, those of a data set together."""
    places = dict.fromkeys(names[:3] for names in combinations(file.grid("")))
    columns = [Column(*names) for names in places if table.only.has(*names)]
    datasets = list(dict.fromkeys(column.dataset for column in columns))
    return tuple(sorted(columns, key=lambda column: datasets.index(column.dataset)))
