"""Finds methods, data sets, scenarios and reports.

A class in ``methods/NAME.py`` with a ``name`` of its own is a method; the same for ``datasets/``
and ``reports/``, and for scenarios in ``bench/federation/``. Installed packages add theirs through
the entry points ``bench.methods``, ``bench.datasets``, ``bench.scenarios`` and ``bench.reports``, each
naming a module or a class. Files of one's own are named by the environment variable
``BENCH_PLUGINS``, which worker processes inherit.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import sys
import traceback
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.errors import RequestError, unknown

if TYPE_CHECKING:
    from bench.dataset import Dataset
    from bench.engine.method import Method
    from bench.federation.scenario import Scenario
    from bench.report.study import Study


PLUGINS = "BENCH_PLUGINS"
"""Environment variable: Python files with such classes, separated as in ``PATH``."""

GROUPS = {
    "method": ("bench.methods", "bench.methods", "bench.engine.method:Method"),
    "data set": ("bench.datasets", "bench.datasets", "bench.dataset:Dataset"),
    "scenario": ("bench.scenarios", "bench.federation", "bench.federation.scenario:Scenario"),
    "study": ("bench.reports", "bench.reports", "bench.report.study:Study"),
}
"""Group of entry points, package of the suite's own and base class (imported on use) of what is found."""


def plugin(path: Path, named_by: str = "FILE") -> ModuleType:
    """A Python file as a module; it is run once. ``named_by`` is what the user named it by.

    Raises:
        RequestError: there is no such file, or running it fails or ends the program.
    """
    path = path.resolve()
    name = f"bench_plugin_{path.stem}"
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) == str(path):
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    if not path.exists():
        raise RequestError(f"{named_by}: there is no file {path}")
    if path.suffix != ".py" or not path.is_file() or spec is None or spec.loader is None:
        raise RequestError(f"{named_by}: expected a Python file, got {path}")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _not_imported(path.name, error, _lines(path, error)) from error
    return module


def _lines(path: Path, error: BaseException) -> list[int]:
    """The lines of a file at which an error passed through it; of none if it could not be parsed."""
    return [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path) and frame.lineno
    ]


def _not_imported(what: str, error: BaseException, lines: Sequence[int] = ()) -> RequestError:
    where = f" in line {lines[-1]}" if lines else ""
    text = " ".join(str(error).split())
    return RequestError(f"{what} cannot be imported: {type(error).__name__}{where}: {text}")


def add_plugin(path: Path) -> ModuleType:
    """Let this process, and those that it starts, find what a Python file holds; raises as ``plugin``."""
    module = plugin(path)
    files = plugin_files()
    if str(path.resolve()) not in files:
        os.environ[PLUGINS] = os.pathsep.join([*files, str(path.resolve())])
        for found in (methods, datasets, scenarios, studies):
            found.cache_clear()
    return module


def plugin_files() -> list[str]:
    """The files that ``BENCH_PLUGINS`` names."""
    return [file for file in os.environ.get(PLUGINS, "").split(os.pathsep) if file]


def _load(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except (Exception, SystemExit) as error:
        raise _not_imported(f"entry point {entry.name} of {_package(entry)}", error) from error


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value


def _sources(group: str, built_in: str) -> Iterator[tuple[ModuleType | type, str]]:
    """The public modules of the package ``built_in``, what entry points name, and plug-in files.

    With each, where it comes from: a package or a file; empty for the suite's own.
    """
    package = importlib.import_module(built_in)
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            yield importlib.import_module(f"{built_in}.{module.name}"), ""
    for entry in entry_points(group=group):
        yield _load(entry), _package(entry)
    for file in plugin_files():
        yield plugin(Path(file), PLUGINS), file


class _Found(NamedTuple):
    kind: Any
    origin: str


def _find(what: str) -> dict[str, _Found]:
    """Every concrete subclass in a group of ``GROUPS`` that declares its own ``name``."""
    group, built_in, base_name = GROUPS[what]
    base = pkgutil.resolve_name(base_name)
    found: dict[str, _Found] = {}
    for source, origin in _sources(group, built_in):
        members = vars(source).values() if isinstance(source, ModuleType) else [source]
        for member in members:
            if not (inspect.isclass(member) and issubclass(member, base)) or inspect.isabstract(member):
                continue
            name = vars(member).get("name")
            if name is not None and found.setdefault(name, _Found(member, origin)).kind is not member:
                raise RequestError(
                    f"two {group} plug-ins are called '{name}': "
                    f"{found[name].kind.__module__} and {member.__module__}; rename one"
                )
    return dict(sorted(found.items()))


def _classes(what: str) -> dict[str, Any]:
    return {name: each.kind for name, each in _find(what).items()}


class Addition(NamedTuple):
    """What is not the suite's own: a ``GROUPS`` word, its name, and the package or file that has it."""

    what: str
    name: str
    origin: str


def additions() -> list[Addition]:
    """What installed packages and plug-in files add, by group and name.

    Raises:
        RequestError: one of them cannot be imported, or two have one name.
    """
    return [
        Addition(what, name, each.origin)
        for what in GROUPS
        for name, each in _find(what).items()
        if each.origin
    ]


@cache
def methods() -> dict[str, type[Method]]:
    """Every method by name."""
    return _classes("method")


@cache
def datasets() -> dict[str, type[Dataset]]:
    """Every data set by name."""
    return _classes("data set")


@cache
def scenarios() -> dict[str, type[Scenario[Any]]]:
    """Every scenario by name, but those whose name holds a number."""
    return _classes("scenario")


@cache
def studies() -> dict[str, type[Study]]:
    """Every study (a report over grids and published numbers) by name."""
    return _classes("study")


def method(name: str) -> type[Method]:
    """The method of that name; raises ``RequestError`` with the nearest name."""
    if name not in methods():
        raise unknown("method", name, methods())
    return methods()[name]


def dataset(name: str) -> type[Dataset]:
    """The data set of that name; raises ``RequestError`` with the nearest name."""
    if name not in datasets():
        raise unknown("dataset", name, datasets())
    return datasets()[name]
