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
    inside a function. Modules of Python, of ``bench`` and of installed packages do not count.
    """
    package = kind.__module__.partition(".")[0]
    if package == "bench":
        return frozenset()
    if package == "__main__":  # of a notebook's cell, whose code no file holds
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
    """Files of a module, and of the packages that it is in, below some folders."""
    parts = name.split(".")
    if parts[0] == "bench":
        return
    for folder in folders:
        for count in range(1, len(parts) + 1):
            place = folder.joinpath(*parts[:count])
            yield from filter(Path.is_file, (place.with_name(f"{place.name}.py"), place / "__init__.py"))
