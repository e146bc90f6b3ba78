"""A study's experiments from their files: the tables that show what ``bench.grids.experiment`` runs."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.resources.abc import Traversable

from pydantic import TypeAdapter, ValidationError

from bench.errors import RequestError, first_problem
from bench.grids.experiment import ExperimentFile, Line
from bench.grids.files import grid_name, parse_experiment
from bench.grids.grid import ColumnMatch, combinations
from bench.studies.claims import Claims, read_claims
from bench.studies.experiment import Experiment
from bench.studies.measures import MEASURES, Measure
from bench.studies.settings import Column


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


def read_study(
    folder: Traversable, measures: Iterable[Measure] = ()
) -> tuple[tuple[Line, ...], tuple[Experiment, ...], tuple[Claims, ...]]:
    """What ``study.toml`` in a folder names: the lines of a study's main tables, and in the order of their
    documents the files in ``experiments`` and ``claims``; ``measures`` are the study's own.
    """
    content = tomllib.loads((folder / "study.toml").read_text(encoding="utf-8"))
    lines = TypeAdapter(tuple[Line, ...]).validate_json(json.dumps(content["lines"]))
    experiments = read(folder / "experiments", content["experiments"], lines, measures)
    return lines, experiments, read_claims(folder / "claims", content.get("claims", ()), measures)


def _tables(
    place: Traversable, name: str, rows: Mapping[str, Line], measures: Mapping[str, Measure]
) -> Iterator[Experiment]:
    if not place.is_file():
        raise RequestError(f"experiment {name}: there is no file {place}")
    file = parse_experiment(place.read_text(encoding="utf-8"), name)
    lines = tuple(rows.get(line, Line(line)) if isinstance(line, str) else line for line in file.lines)
    for part in file.tables:
        try:
            # By way of JSON: of Python's own values, strict types take no dictionary for a dataclass.
            text = json.dumps({"name": name, **part, "grid": grid_name(place)}, default=str)
            table = TypeAdapter(Experiment).validate_json(text, context=measures)
        except ValidationError as error:
            raise RequestError(f"experiment {name}: tables: {first_problem(error)}") from None
        has_columns = table.competes or table.only != ColumnMatch()
        yield replace(
            table,
            columns=_columns(file, table.only) if has_columns else (),
            lines=() if table.main else lines,
            points=file.points,
        )


def _columns(file: ExperimentFile, only: ColumnMatch) -> tuple[Column, ...]:
    """The columns that a table shows, those of a data set together."""
    places = dict.fromkeys(names[:3] for names in combinations(file.grid("")))
    columns = [Column(*names) for names in places if only.has(*names)]
    datasets = list(dict.fromkeys(column.dataset for column in columns))
    return tuple(sorted(columns, key=lambda column: datasets.index(column.dataset)))
