"""Finds what a suite consists of, and what plug-ins add to it.

A *kind* (methods, data sets, scenarios, studies, client models) is declared beside its base class. A
public module of the kind's built-in package, an installed package through the kind's entry points,
or a file of one's own named by the environment variable ``BENCH_PLUGINS`` (which worker processes
inherit) adds to it by a class that extends the base and has a ``name`` of its own.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args, get_origin

from bench.errors import NotApplicableError, RequestError, unknown

T = TypeVar("T")

PLUGINS = "BENCH_PLUGINS"
"""Environment variable: Python files with such classes, separated as in ``PATH``."""

NAME = re.compile(r"\w[\w.-]*")
"""What a class may be called: names are parts of paths, of addresses and of what options take."""


_KINDS: list[Kind[Any]] = []
"""Those that have been declared so far."""


class _Uncached(SourceFileLoader):
    """Reads a file anew in every process: bytecode is known by the second and size of its source, and a file
    that is being edited may keep both.
    """

    def path_stats(self, path: str | bytes) -> Any:
        """Nothing is known of the file, so that no bytecode is read or written."""
        raise OSError


def plugin(path: Path, named_by: str = "FILE") -> ModuleType:
    """A Python file as a module; it is run once. ``named_by`` is what the user named it by.

    The file can import what lies in its folder, where no other module has the name.

    Raises:
        RequestError: there is no such file, or running it fails or ends the program.
    """
    path = path.resolve()
    name = f"bench_plugin_{path.stem}"
    while name in sys.modules and sys.modules[name].__file__ != str(path):
        name += "_"  # a file of this name in another folder
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path, loader=_Uncached(name, str(path)))
    if not path.exists():
        hint = (
            f"; '{os.pathsep}' separates files, not ','" if named_by == PLUGINS and "," in str(path) else ""
        )
        raise RequestError(f"{named_by}: there is no file {path}{hint}")
    if path.suffix != ".py" or not path.is_file() or spec is None or spec.loader is None:
        raise RequestError(f"{named_by}: expected a Python file, got {path}")
    module = module_from_spec(spec)
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        with redirect_stdout(sys.stderr):  # what it prints is no part of what a command prints
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _import_error(path.name, error, _lines(path, error)) from error
    return module


def _lines(path: Path, error: BaseException) -> list[int]:
    """The lines of a file at which an error passed through it; of none if it could not be parsed."""
    return [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path) and frame.lineno
    ]


def _import_error(subject: str, error: BaseException, lines: Sequence[int] = ()) -> RequestError:
    return RequestError(f"{subject} cannot be imported: {_in_a_line(error, lines)}")


def _in_a_line(error: BaseException, lines: Sequence[int]) -> str:
    """An error's kind, the last of these lines of a file, and its message."""
    line_text = f" in line {lines[-1]}" if lines else ""
    return f"{type(error).__name__}{line_text}: {' '.join(str(error).split())}"


@contextmanager
def blaming(kind: type) -> Iterator[None]:
    """Around what runs the code of a class: what it raises, or leaves behind for others to stumble on, is one
    line with its name. Errors of the suite's own classes stay what they are.

    Raises:
        RequestError: in place of an error of a class that is a plug-in.
    """
    try:
        yield
    except (RequestError, NotApplicableError):
        raise
    except Exception as error:
        if kind.__module__.startswith("bench."):
            raise
        file = Path(inspect.getfile(kind))
        text = _in_a_line(error, _lines(file, error))
        raise RequestError(f"{kind.__name__} of {file.name}: {text}") from error


def add_plugin(path: Path) -> ModuleType:
    """Let this process, and those that it starts, find what a Python file holds; raises as ``plugin``.

    A file of the suite or of an installed package is found as it is.
    """
    installed_module = _installed(path.resolve())
    if installed_module is not None:
        return installed_module
    module = plugin(path)
    files = plugin_files()
    if str(path.resolve()) not in files:
        os.environ[PLUGINS] = os.pathsep.join([*files, str(path.resolve())])
        forget()
    return module


def _installed(path: Path) -> ModuleType | None:
    """The module of the suite or of an entry point that a file is; None where it is neither."""
    for kind in _KINDS:
        package = importlib.import_module(kind.package)
        names = [f"{kind.package}.{module.name}" for module in pkgutil.iter_modules(package.__path__)]
        for name in [*names, *(entry.module for entry in entry_points(group=kind.group))]:
            with suppress(ImportError):  # said where it is asked for
                spec = find_spec(name)
                if spec is not None and spec.origin and Path(spec.origin).resolve() == path:
                    return importlib.import_module(name)
    return None


def plugin_files() -> list[str]:
    """The files that ``BENCH_PLUGINS`` names."""
    return [file for file in os.environ.get(PLUGINS, "").split(os.pathsep) if file]


def _load(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except (Exception, SystemExit) as error:
        raise _import_error(f"entry point {entry.name} of {_package(entry)}", error) from error


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
        added_module = plugin(Path(file), PLUGINS)
        if not any(map(_is_addition, vars(added_module).values())):
            raise RequestError(
                f"{file} holds no method, data set, scenario, client model or study: expected a class that "
                "extends the base of one, such as bench.engine.method.Method, and has a name of its own"
            )
        yield added_module, file


def _is_addition(member: object) -> bool:
    """Whether a plug-in's member is a class that is not the suite's own, with a name of its own."""
    return inspect.isclass(member) and "name" in vars(member) and not member.__module__.startswith("bench.")


class _Members(NamedTuple):
    classes: dict[str, Any]
    origins: dict[str, str]


@cache
def _find(kind: Kind[Any]) -> _Members:
    """Every concrete subclass of a kind's base that declares its own ``name``, and where it comes from."""
    base = pkgutil.resolve_name(kind.base)
    entries: dict[str, tuple[Any, str]] = {}
    for source, origin in _sources(kind.group, kind.package):
        members = vars(source).values() if isinstance(source, ModuleType) else [source]
        for member in members:
            if not (inspect.isclass(member) and issubclass(member, base)) or inspect.isabstract(member):
                continue
            name = vars(member).get("name")
            if name is not None and not (isinstance(name, str) and NAME.fullmatch(name)):
                raise RequestError(
                    f"{kind.word} {member.__name__} of {origin or source.__name__}: its name has to be "
                    f"text of letters, digits, '_', '-' and '.', got {name!r}"
                )
            if name is not None:
                _check_attributes(member, base, f"{kind.word} {name} of {origin or source.__name__}")
            if name is not None and entries.setdefault(name, (member, origin))[0] is not member:
                raise RequestError(
                    f"two {kind.group} plug-ins are called '{name}': "
                    f"{entries[name][0].__module__} and {member.__module__}; rename one"
                )
    sorted_entries = dict(sorted(entries.items()))
    return _Members(
        {name: member for name, (member, _) in sorted_entries.items()},
        {name: origin for name, (_, origin) in sorted_entries.items() if origin},
    )


def _check_attributes(member: type, base: type, title: str) -> None:
    """Refuse a class that lacks what its base declares, or has something of another class in its place."""
    matches = {
        name: re.fullmatch(r"ClassVar\[(\w+)(\[.*\])?\]", annotation)
        for name, annotation in base.__annotations__.items()
    }
    declared = {name: match for name, match in matches.items() if match}
    missing_names = [f"'{name}'" for name in declared if not hasattr(member, name)]
    if missing_names:
        verb = "is" if len(missing_names) == 1 else "are"
        raise RequestError(
            f"{title}: {', '.join(missing_names)} {verb} missing: {base.__name__} explains them"
        )
    for name, match in declared.items():
        expected = getattr(builtins, match[1], vars(sys.modules[base.__module__]).get(match[1]))
        value = getattr(member, name)
        if get_origin(expected) is Literal and value not in get_args(expected):
            raise RequestError(f"{title}: {unknown(name, str(value), get_args(expected))}")
        if not isinstance(expected, type) or expected is float:
            continue
        if not isinstance(value, (tuple, list) if expected is tuple else expected):
            raise RequestError(f"{title}: expected '{name}' to be of {expected.__name__}, got {value!r}")


def forget() -> None:
    """Let every kind be searched for anew: plug-ins have come or gone."""
    _find.cache_clear()


class Kind(Generic[T]):
    """What can be added to the suite by a class: the concrete subclasses of ``base`` by name.

    ``word`` is what messages call one of them, ``group`` the group of entry points, ``package`` the
    suite's own package of them, ``base`` the class that they extend as ``module:Class``. Nothing is
    imported before the first is asked for.
    """

    def __init__(self, word: str, group: str, package: str, base: str) -> None:
        self.word = word
        self.group = group
        self.package = package
        self.base = base
        _KINDS.append(self)

    def all(self) -> dict[str, type[T]]:
        """Every class of this kind by name.

        Raises:
            RequestError: a plug-in cannot be imported, or two classes have one name.
        """
        return _find(self).classes

    def named(self, name: str) -> type[T]:
        """The class of that name; raises ``RequestError`` with the nearest name, and as ``all``."""
        classes = self.all()
        if name not in classes:
            raise self.unknown(name)
        return classes[name]

    def unknown(self, name: str) -> RequestError:
        """The error for a name that none has: with the nearest one, and the plug-in files that add none."""
        files = [file for file in plugin_files() if file not in self.origins().values()]
        hint = f"; {PLUGINS} names {', '.join(files)}, with no {self.word} that has a name" if files else ""
        return RequestError(f"{unknown(self.word, name, self.all())}{hint}")

    def origins(self) -> dict[str, str]:
        """The package or file of each class that is not the suite's own, by name; raises as ``all``."""
        return _find(self).origins
