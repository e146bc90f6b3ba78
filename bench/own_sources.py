"""The files that a plug-in is made of: its own one, and the modules of one's own that it imports."""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, resolve_name
from itertools import accumulate
from pathlib import Path

from bench.registry import plugin, plugin_files


@cache
def sources(kind: type) -> frozenset[str]:
    """A hash over name and content of every file that a plug-in's class is made of; none for the suite's own.

    These are the plug-in's file and the files that it imports, directly or through others, at its top or
    inside a function. Modules of Python, of ``bench`` (other than methods) and of installed packages (other
    than the plug-in's own) do not count.
    """
    package = kind.__module__.partition(".")[0]
    if package == "bench":
        return frozenset()
    if package == "__main__":  # of a notebook's cell, whose code no file holds
        return frozenset({package})
    plugins = [plugin(Path(file)) for file in plugin_files()]
    holders = [each.__spec__ for each in plugins if any(member is kind for member in vars(each).values())]
    queue = [spec for spec in holders if spec] or list(_specs(kind.__module__, package))
    hashes: dict[str, str] = {}
    while queue:
        spec = queue.pop()
        if spec.name not in hashes:
            file = Path(str(spec.origin))
            content = file.read_bytes()
            hashes[spec.name] = hashlib.sha256(file.name.encode() + b"\0" + content).hexdigest()
            names = _imports(content, spec.parent) if file.suffix == ".py" else ()
            queue += [found for name in names for found in _specs(name, package)]
    return frozenset(hashes.values())


def _imports(content: bytes, package: str | None) -> Iterator[str]:
    """Names in a file's import statements that may be modules."""
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            with suppress(ImportError):  # a relative import for type checkers alone
                base = resolve_name("." * node.level + (node.module or ""), package)
                yield from (f"{base}.{alias.name}" for alias in node.names)


def _specs(name: str, package: str) -> Iterator[ModuleSpec]:
    """Of a module and the packages that it is in, those whose files count. Nothing is imported."""
    top = name.partition(".")[0]
    folders: list[str] = []
    for prefix in accumulate(name.split("."), "{}.{}".format):
        is_known = prefix == top or prefix in sys.modules
        spec = find_spec(prefix) if is_known else PathFinder.find_spec(prefix, folders)
        if spec is None or (top not in ("bench", package) and _is_installed(spec)):
            return
        if spec.has_location and (top != "bench" or prefix.startswith("bench.methods.")):
            yield spec
        folders = list(spec.submodule_search_locations or ())


def _is_installed(spec: ModuleSpec) -> bool:
    """Whether a module comes with Python or an installed package."""
    file = Path(spec.origin or "")
    folders = {"site-packages", "dist-packages"}
    return file.is_relative_to(Path(os.__file__).parent) or not folders.isdisjoint(file.parts)
