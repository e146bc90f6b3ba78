"""Finds the classes that the suite and its plug-ins consist of.

A *kind* (methods, data sets, scenarios, studies, client models) is declared beside its base class. A public
module of the kind's own package, or a file that the environment variable ``BENCH_PLUGINS`` names, adds a
member to the kind by a class that extends the base and declares its own ``name``.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pkgutil
import sys
import traceback
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from bench.errors import RequestError, unknown
from bench.spec import sha256

T = TypeVar("T")

PLUGINS = "BENCH_PLUGINS"
"""Environment variable with the plug-ins: paths of Python files, separated as in ``PATH``."""

INSTALLED = ("site-packages", "dist-packages")
"""Names of folders with installed packages. Their files are not part of a plug-in."""

_KINDS: list[Kind[Any]] = []
"""All kinds declared so far."""


def plugin(path: Path) -> ModuleType:
    """Import a Python file as a module, once. If it cannot be run, raise ``RequestError``.

    The file can import modules of its folder, except names that another module already has.
    """
    path = path.resolve()
    name = f"bench_plugin_{path.stem}"
    while name in sys.modules and sys.modules[name].__file__ != str(path):
        name += "_"  # another folder has a file of this name
    if name in sys.modules:
        return sys.modules[name]
    sys.modules[name] = module = ModuleType(name)
    module.__file__ = str(path)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        with redirect_stdout(sys.stderr):  # its output must not mix with a command's
            exec(compile(path.read_bytes(), path, "exec", dont_inherit=True), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        steps = traceback.extract_tb(error.__traceback__)
        lines = "".join(f" in line {step.lineno}" for step in steps if step.filename == str(path))
        name = type(error).__name__
        raise RequestError(f"{path.name} cannot be imported: {name}{lines}: {error}") from error
    return module


def add_plugin(path: Path) -> ModuleType:
    """Add a Python file to the plug-ins of this process and its children, unless it is a known module."""
    path = path.resolve()
    for kind in _KINDS:
        for member in kind.all().values():
            module = sys.modules[member.__module__]
            if Path(getattr(module, "__file__", "")).resolve() == path:
                return module
    module = plugin(path)
    os.environ[PLUGINS] = os.pathsep.join([*plugin_files(), str(path)])
    forget()
    return module


def plugin_files() -> list[str]:
    """The files that ``BENCH_PLUGINS`` names."""
    return [file for file in os.environ.get(PLUGINS, "").split(os.pathsep) if file]


def _sources(kind: Kind[Any]) -> Iterator[ModuleType | type]:
    """The public modules of the kind's package, the plug-ins, and the classes of ``Kind.add``."""
    package = importlib.import_module(kind.package)
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            yield importlib.import_module(f"{kind.package}.{module.name}")
    yield from map(plugin, map(Path, plugin_files()))
    yield from kind.added.values()


@cache
def _find(kind: Kind[Any]) -> dict[str, type[Any]]:
    """Every concrete subclass of a kind's base that declares its own ``name``, by name."""
    base = pkgutil.resolve_name(kind.base)
    declared = [name for name, text in base.__annotations__.items() if text.startswith("ClassVar")]
    found: dict[str, type[Any]] = {}
    for source in _sources(kind):
        for member in vars(source).values() if isinstance(source, ModuleType) else [source]:
            if not (inspect.isclass(member) and issubclass(member, base)) or inspect.isabstract(member):
                continue
            name = vars(member).get("name")
            if name is None:
                continue
            missing_names = [f"'{attribute}'" for attribute in declared if not hasattr(member, attribute)]
            if missing_names:
                title = f"{kind.word} {member.__name__} of {member.__module__}"
                raise RequestError(f"{title} lacks {', '.join(missing_names)}: {base.__name__} explains them")
            first = found.setdefault(name, member)
            if first is not member:
                modules = f"{first.__module__} and {member.__module__}"
                raise RequestError(f"two {kind.word} classes are called '{name}': {modules}; rename one")
    return dict(sorted(found.items()))


def forget() -> None:
    """Clear the cache of all kinds, because plug-ins have changed."""
    _find.cache_clear()


@dataclass(eq=False)
class Kind(Generic[T]):
    """A kind of class that users can add to the suite: the concrete subclasses of ``base`` by name.

    ``word`` is the name of the kind in messages, ``package`` the suite's package with its members, ``base``
    their base class as ``module:Class``. Members are imported when the first one is requested.
    """

    word: str
    package: str
    base: str
    added: dict[str, type[T]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        _KINDS.append(self)

    def add(self, member: type[T]) -> None:
        """Add a class that is defined in no file, such as in a notebook's cell, for this process only."""
        self.added[vars(member).get("name", "")] = member
        forget()

    def all(self) -> dict[str, type[T]]:
        """Every class of this kind by name. If a plug-in cannot be imported, raise ``RequestError``."""
        return _find(self)

    def named(self, name: str) -> type[T]:
        """The class of this name. If there is none, raise ``RequestError`` with the most similar name."""
        classes = self.all()
        if name not in classes:
            raise unknown(self.word, name, classes)
        return classes[name]


# The files of a plug-in ---------------------------------------------------------------------------


@cache
def own_sources(kind: type) -> frozenset[str]:
    """A hash over name and content of each source file of a plug-in's class; empty for a class of the suite.

    Source files are the file of the class and every file that it imports, also indirectly or inside a
    function. Modules of Python, of ``bench`` and of installed packages are left out.
    """
    package = kind.__module__.partition(".")[0]
    if package == "bench":
        return frozenset()
    if package == "__main__":  # a class of a notebook's cell has no source file
        return frozenset({package})
    python = Path(os.__file__).parent
    folders = [folder for folder in map(Path, sys.path) if not folder.is_relative_to(python)]
    own_folders = [folder for folder in folders if folder.name not in INSTALLED]
    hashes: dict[Path, str] = {}
    queue = [Path(str(sys.modules[kind.__module__].__file__))]
    while queue:
        file = queue.pop()
        if file in hashes:
            continue
        content = file.read_bytes()
        hashes[file] = sha256(file.name.encode() + b"\0" + content)
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    queue += _files(alias.name, own_folders)
            elif isinstance(node, ast.ImportFrom):
                places = [file.parents[node.level - 1]] if node.level else own_folders
                for alias in node.names:
                    queue += _files(f"{node.module}.{alias.name}" if node.module else alias.name, places)
    return frozenset(hashes.values())


def _files(name: str, folders: list[Path]) -> Iterator[Path]:
    """Existing files of a module and of its parent packages, below ``folders``."""
    parts = name.split(".")
    if parts[0] == "bench":
        return
    for folder in folders:
        for count in range(1, len(parts) + 1):
            place = folder.joinpath(*parts[:count])
            yield from filter(Path.is_file, (place.with_name(f"{place.name}.py"), place / "__init__.py"))
