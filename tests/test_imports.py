"""No module imports itself by way of others: read from the source, so that type-only imports count."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "bench": ROOT / "bench",
    "bench.methods": ROOT / "methods",
    "bench.datasets": ROOT / "datasets",
    "bench.reports": ROOT / "reports",
}


def modules(packages: Mapping[str, Path]) -> dict[str, Path]:
    """Module -> its file, of every module in the folders of some packages."""
    found = {}
    for package, folder in packages.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join([package, *(part for part in parts if part != "__init__")])] = path
    return found


def imported(module: str, files: Mapping[str, Path]) -> Iterator[str]:
    """The other known modules that one imports: at its top, in functions, and for types alone."""
    path = files[module]
    package = module.split(".")[: None if path.stem == "__init__" else -1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join([*start, *([node.module] if node.module else [])])
            inner = [f"{source}.{alias.name}" for alias in node.names]
            names = [name if name in files else source for name in inner]
        else:
            continue
        yield from (name for name in names if name in files and name != module)


def circles(packages: Mapping[str, Path]) -> list[list[str]]:
    """Groups of modules that import each other, directly or by way of others; largest first."""
    files = modules(packages)
    names = sorted(files)
    place = {name: index for index, name in enumerate(names)}
    edges = [(place[name], place[other]) for name in names for other in imported(name, files)]
    edges += [(0, 0)]  # for a tree without any
    rows, columns = np.array(edges).T
    graph = csr_array((np.ones(len(edges)), (rows, columns)), shape=(len(names), len(names)))
    _, labels = connected_components(graph, directed=True, connection="strong")
    groups: dict[int, list[str]] = {}
    for name, label in zip(names, labels.tolist(), strict=True):
        groups.setdefault(label, []).append(name)
    return sorted((group for group in groups.values() if len(group) > 1), key=len, reverse=True)


def test_no_module_is_in_a_circle() -> None:
    found = circles(PACKAGES)
    assert not found, "\n".join(f"{len(group)} modules in a circle: {', '.join(group)}" for group in found)


READERS = ("grids", "studies", "frames", "figures", "report", "site")
"""Packages that read results, each of which may import those before it."""


def test_what_reads_results_imports_nothing_that_shows_them() -> None:
    files = modules(PACKAGES)
    place = {f"bench.{name}": number for number, name in enumerate(READERS)}
    upward = [
        f"{name} imports {other}"
        for name in files
        for other in imported(name, files)
        if place.get(".".join(other.split(".")[:2]), -1)
        > place.get(".".join(name.split(".")[:2]), len(place))
    ]
    assert not upward, "\n".join(upward)


@pytest.mark.parametrize(
    "closing",
    [
        "import made.up.b",
        "from . import b",
        "def f():\n    from made.up.b import x",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from made.up.b import x",
    ],
)
def test_a_circle_of_a_made_up_tree_is_found(closing: str, tmp_path: Path) -> None:
    """``b`` imports ``c``, which imports ``a``; ``closing`` is what ``a`` says."""
    sources = {
        "__init__": "from made.up.a import x",
        "a": "x = 1",
        "b": "from made.up import c\nimport os",
        "c": "from made.up.a import x",
    }
    for name, text in sources.items():
        (tmp_path / f"{name}.py").write_text(text)
    packages = {"made.up": tmp_path}
    assert circles(packages) == []
    (tmp_path / "a.py").write_text(closing)
    assert circles(packages) == [["made.up.a", "made.up.b", "made.up.c"]]
