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
from functools import cache
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bench.errors import RequestError, unknown

if TYPE_CHECKING:
    from bench.dataset import Dataset
    from bench.engine.method import Method
    from bench.federation.scenario import Scenario
    from bench.report.study import Study


PLUGINS = "BENCH_PLUGINS"
"""Environment variable: Python files with such classes, separated as in ``PATH``."""


def plugin(path: Path) -> ModuleType:
    """A Python file as a module; it is run once.

    Raises:
        RequestError: there is no such file, or running it fails.
    """
    path = path.resolve()
    name = f"bench_plugin_{path.stem}"
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) == str(path):
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    if path.suffix != ".py" or not path.is_file() or spec is None or spec.loader is None:
        raise RequestError(f"{PLUGINS}: expected a Python file, got {path}")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise RequestError(f"{path.name} cannot be imported: {type(error).__name__}: {error}") from error
    return module


def add_plugin(path: Path) -> ModuleType:
    """Let this process, and those that it starts, find what a Python file holds; raises as ``plugin``."""
    module = plugin(path)
    files = [file for file in os.environ.get(PLUGINS, "").split(os.pathsep) if file]
    if str(path.resolve()) not in files:
        os.environ[PLUGINS] = os.pathsep.join([*files, str(path.resolve())])
        for found in (methods, datasets, scenarios, studies):
            found.cache_clear()
    return module


def _modules(group: str, built_in: str) -> list[ModuleType | type]:
    """The public modules of the package ``built_in``, what entry points name, and plug-in files."""
    package = importlib.import_module(built_in)
    found: list[ModuleType | type] = [
        importlib.import_module(f"{built_in}.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
        if not module.name.startswith("_")
    ]
    own = [plugin(Path(file)) for file in os.environ.get(PLUGINS, "").split(os.pathsep) if file]
    return [*found, *(entry.load() for entry in entry_points(group=group)), *own]


def _classes(group: str, base: type, built_in: str = "") -> dict[str, Any]:
    """Every concrete subclass of ``base`` in the group that declares its own ``name``.

    ``built_in`` is the package that holds the suite's own, where it is not called as the group.
    """
    found: dict[str, Any] = {}
    for source in _modules(group, built_in or group):
        members = vars(source).values() if isinstance(source, ModuleType) else [source]
        for member in members:
            if not (inspect.isclass(member) and issubclass(member, base)) or inspect.isabstract(member):
                continue
            name = vars(member).get("name")
            if name is not None and found.setdefault(name, member) is not member:
                raise RequestError(
                    f"two {group} plug-ins are called '{name}': "
                    f"{found[name].__module__} and {member.__module__}; rename one"
                )
    return dict(sorted(found.items()))


@cache
def methods() -> dict[str, type[Method]]:
    """Every method by name."""
    from bench.engine.method import Method

    return _classes("bench.methods", Method)


@cache
def datasets() -> dict[str, type[Dataset]]:
    """Every data set by name."""
    from bench.dataset import Dataset

    return _classes("bench.datasets", Dataset)


@cache
def scenarios() -> dict[str, type[Scenario[Any]]]:
    """Every scenario by name, but those whose name holds a number."""
    from bench.federation.scenario import Scenario

    return _classes("bench.scenarios", Scenario, "bench.federation")


@cache
def studies() -> dict[str, type[Study]]:
    """Every study (a report over grids and published numbers) by name."""
    from bench.report.study import Study

    return _classes("bench.reports", Study)


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
