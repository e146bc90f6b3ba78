"""Which code makes a run: declared versions of its numbers, and a hash over its sources.

A method's files are read once, as soon as a process asks for the code of any: what is edited after that is
not what the process runs.
"""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import bench
from bench import engine
from bench.engine.methods import METHODS
from bench.engine.result import Code

SHARED = ("engine", "federation", "nn", "streams.py", "data.py", "selection.py")
"""Parts of ``bench`` that every run goes through."""


PACKAGE = "bench.methods"


@cache
def code(method: str, model: str = "") -> Code:
    """The code of a method and a client model that this process has loaded.

    ``source`` covers the modules of the method and its bases, those whose functions or classes they import
    from ``methods/`` or from the method's own package, and the engine, client models and federations; of a
    ``model`` from outside the suite, its modules, too.

    Raises:
        RequestError: no such method.
    """
    kinds = read()
    kind = METHODS.named(method)
    modules = _closure(kind) | (_closure(kinds[model]) if model in kinds else set())
    digest = hashlib.sha256(_shared_hash().encode())
    for name in sorted(modules):
        digest.update(f"{name}\0{_source(name)}\0".encode())
    return Code(kind.numerics, engine.NUMERICS, digest.hexdigest())


def read() -> dict[str, type]:
    """Load every method and client model and read its files, for ``code``; returns the client models from
    outside the suite by name.
    """
    from bench.nn.base import CLIENT_MODELS  # torch

    kinds = {name: kind for name, kind in CLIENT_MODELS.all().items() if _package(kind.__module__) != "bench"}
    for kind in (*METHODS.all().values(), *kinds.values()):
        for name in _closure(kind):
            _source(name)
    _shared_hash()
    return kinds


@cache
def _source(module: str) -> str:
    return _hash(Path(str(sys.modules[module].__file__)))


@cache
def _shared_hash() -> str:
    root = Path(bench.__file__).parent
    digest = hashlib.sha256()
    for part in SHARED:
        path = root / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(f"{file.relative_to(root).as_posix()}\0{_hash(file)}\0".encode())
    return digest.hexdigest()


def _closure(kind: type) -> set[str]:
    """Modules that a method is made of, wherever ``bench`` itself is not."""
    packages = {_package(kind.__module__), PACKAGE}
    queue = {base.__module__ for base in kind.__mro__ if _package(base.__module__) in packages}
    modules: set[str] = set()
    while queue:
        name = queue.pop()
        modules.add(name)
        queue |= {module for module in _imports(sys.modules[name]) if _package(module) in packages} - modules
    return modules


def _package(module: str) -> str:
    """The package that a module's author would call his own."""
    return PACKAGE if module.startswith(f"{PACKAGE}.") else module.partition(".")[0]


def _imports(module: ModuleType) -> set[str]:
    """Names of the modules that a module's names come from."""
    names = {
        str(member.__name__ if isinstance(member, ModuleType) else getattr(member, "__module__", ""))
        for member in vars(module).values()
    }
    return {name for name in names if getattr(sys.modules.get(name), "__file__", None)}


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
