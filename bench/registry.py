"""Finds methods, data sets and reports.

A class in ``methods/NAME.py`` with a ``name`` of its own is a method; the same for ``datasets/``
and ``reports/``. Installed packages add theirs through the entry points ``bench.methods``,
``bench.datasets`` and ``bench.reports``, each naming a module or a class.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache
from importlib.metadata import entry_points
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bench.errors import RequestError, unknown

if TYPE_CHECKING:
    from bench.dataset import Dataset
    from bench.engine.method import Method
    from bench.report.study import Study


def _modules(group: str) -> list[ModuleType | type]:
    package = importlib.import_module(group)
    found: list[ModuleType | type] = [
        importlib.import_module(f"{group}.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
        if not module.name.startswith("_")
    ]
    return found + [entry.load() for entry in entry_points(group=group)]


def _classes(group: str, base: type) -> dict[str, Any]:
    """Every concrete subclass of ``base`` in the group that declares its own ``name``."""
    found: dict[str, Any] = {}
    for source in _modules(group):
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
