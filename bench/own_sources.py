"""The files that a plug-in is made of: its own one, and the modules of one's own that it imports."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from bench.spec import sha256

INSTALLED = ("site-packages", "dist-packages")


@cache
def sources(kind: type) -> frozenset[str]:
    """A hash over name and content of every file that a plug-in's class is made of; none for the suite's own.

    These are the file of the class and the files that it imports, directly or through others, at its top or
    inside a function. Modules of Python, of ``bench`` and of installed packages (other than the plug-in's
    own) do not count.
    """
    package = kind.__module__.partition(".")[0]
    if package == "bench":
        return frozenset()
    if package == "__main__":  # of a notebook's cell, whose code no file holds
        return frozenset({package})
    first = Path(str(sys.modules[kind.__module__].__file__))
    root = first.parents[kind.__module__.count(".") + (first.name == "__init__.py")]
    own_folders = [folder for folder in map(Path, sys.path) if not _is_installed(folder)]
    hashes: dict[Path, str] = {}
    queue = [first]
    while queue:
        file = queue.pop()
        if file in hashes:
            continue
        content = file.read_bytes()
        hashes[file] = sha256(file.name.encode() + b"\0" + content)
        for level, name in _imports(content):
            folders = [root] if name.split(".")[0] == package else own_folders
            queue += _files(name, [file.parents[level - 1]] if level else folders)
    return frozenset(hashes.values())


def _is_installed(folder: Path) -> bool:
    """Whether a folder has the modules of Python or of installed packages."""
    return folder.is_relative_to(Path(os.__file__).parent) or folder.name in INSTALLED


def _imports(content: bytes) -> Iterator[tuple[int, str]]:
    """What import statements name, and how many dots stand before it."""
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = f"{node.module}." if node.module else ""
            yield from ((node.level, start + alias.name) for alias in node.names)


def _files(name: str, folders: list[Path]) -> Iterator[Path]:
    """Files of a module, and of the packages that it is in, below some folders."""
    parts = name.split(".")
    if parts[0] == "bench":
        return
    for folder in folders:
        for count in range(1, len(parts) + 1):
            place = folder.joinpath(*parts[:count])
            yield from filter(Path.is_file, (place.with_name(f"{place.name}.py"), place / "__init__.py"))
