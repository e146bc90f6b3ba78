"""Identify the code of a run: declared versions of its numerics, and a hash over its sources.

All files are read once, when a process first asks for the code of a run: the process does not run later
edits.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

import bench
from bench import engine, methods
from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.engine.result import Code
from bench.errors import RequestError
from bench.federation.scenario import SCENARIOS
from bench.federation.scenarios import parse
from bench.registry import own_sources
from bench.spec import RunSpec, sha256

SHARED = ("engine", "federation", "nn", "streams.py", "data.py", "selection.py")
"""Parts of ``bench`` that every run uses, in addition to the methods."""


def of(spec: RunSpec) -> Code:
    """Return the code of a run's method, client model, data set and scenario; see ``code``."""
    return code(spec.method, spec.client.model, spec.dataset, spec.scenario)


@cache
def code(method: str, model: str = "", dataset: str = "", scenario: str = "") -> Code:
    """Return the code that this process has loaded; ``RequestError`` for an unknown method.

    ``source`` covers the engine, client models, federations and methods of the suite. If the method, the
    client model, the data set or the scenario is a plug-in, it also covers all files of the plug-in.
    """
    models = read()
    kind = METHODS.named(method)
    parts: list[type | None] = [kind, models.get(model), DATASETS.all().get(dataset)]
    with suppress(RequestError):  # no registered scenario draws a federation made by hand
        parts.append(type(parse(scenario)))
    files = {file for part in parts if part for file in own_sources(part)}
    return Code(kind.numerics, engine.NUMERICS, sha256("".join((_suite_hash(), *sorted(files)))))


def read() -> dict[str, type]:
    """Load everything that a run can use and read its files, for ``code``; return the client models."""
    from bench.nn.base import CLIENT_MODELS  # torch

    models: dict[str, type] = {**CLIENT_MODELS.all()}
    for members in (METHODS.all(), models, DATASETS.all(), SCENARIOS.all()):
        for member in members.values():
            own_sources(member)
    _suite_hash()
    return models


@cache
def _suite_hash() -> str:
    root = Path(bench.__file__).parent
    names = ""
    for path in (*(root / part for part in SHARED), *map(Path, methods.__path__)):
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            names += f"{file.relative_to(path.parent).as_posix()}\0{_hash(file)}\0"
    return sha256(names)


def _hash(file: Path) -> str:
    return sha256(file.read_bytes())
