"""Reading grids: by name, of the suite and of its studies, or from a file."""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from bench.errors import RequestError, unknown
from bench.grids.experiment import ExperimentFile
from bench.grids.grid import Grid, combinations


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
