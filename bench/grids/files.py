"""Reading grids: by name, of the suite and of its studies, or from a file."""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from pydantic import ValidationError

from bench.errors import RequestError, unknown
from bench.grids.experiment import ExperimentFile
from bench.grids.grid import Grid, combinations

FOLDER = "experiments"
"""Where a study, a package, keeps the files of its experiments."""


def grid_names() -> list[str]:
    """Names of the grids that come with the suite."""
    return sorted(_files_by_name())


def _files_by_name() -> dict[str, tuple[Traversable, str]]:
    """The grids of no study, and those of the suite's studies: the file and its study."""
    studies = [(folder, folder.name) for folder in files("bench.reports").iterdir() if folder.is_dir()]
    folders = [(files("bench.grids"), ""), *((folder / FOLDER, study) for folder, study in studies)]
    return {
        file.name.removesuffix(".toml"): (file, study)
        for folder, study in folders
        if folder.is_dir()
        for file in folder.iterdir()
        if file.name.endswith(".toml")
    }


def grid_name(file: Traversable) -> str:
    """What ``--grid`` calls a file: its name if it comes with the suite, else its path."""
    name = file.name.removesuffix(".toml")
    suite_file, _ = _files_by_name().get(name, (None, ""))
    return name if str(suite_file) == str(file) else str(file)


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
        file, study = grids[name_or_path]
        return file.read_text(encoding="utf-8"), study
    if path.suffix != ".toml" and len(path.parts) == 1:
        raise unknown("grid", name_or_path, grids)
    try:
        return path.read_text(encoding="utf-8"), ""
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"grid file {name_or_path}: {error}; 'bench grids' lists names") from None


def parse_grid(text: str, name: str, study: str = "") -> Grid:
    """A grid from TOML text; ``name`` is for messages."""
    grid = parse_experiment(text, name).grid(study)
    columns = zip(*(combination[:4] for combination in combinations(grid)), strict=True)
    for key, column in zip(("dataset", "scenario", "clients", "method"), columns, strict=True):
        known_names = set(map(str, column))
        for index, override in enumerate(grid.override):
            for value in map(str, getattr(override.match, key) or ()):
                if value not in known_names:
                    raise unknown(f"override.{index}.match.{key} of grid {name}:", value, known_names)
    return grid


def parse_experiment(text: str, name: str) -> ExperimentFile:
    """An experiment's file from TOML text."""
    try:
        # By way of JSON, whose lists and tables a strict model takes for tuples and data classes.
        tree = json.dumps(tomllib.loads(text), default=str)
    except ValueError as error:  # of TOML, or of a number with more digits than Python reads
        raise RequestError(f"grid {name} is not valid TOML: {error}") from None
    try:
        return ExperimentFile.model_validate_json(tree)
    except ValidationError as error:  # of several ways to read a part the deepest error says most
        detail = max(error.errors(), key=lambda detail: len(detail["loc"]))
        place = ".".join(map(str, detail["loc"]))
        raise RequestError(f"grid {name}: {place}: {detail['msg']}") from None
