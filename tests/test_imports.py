"""No module imports itself by way of others: read from the source, so that type-only imports count."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path

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


def test_no_module_is_in_a_circle() -> None:
    files = modules(PACKAGES)
    TopologicalSorter(
        {name: set(imported(name, files)) for name in files}
    ).prepare()  # an error has the circle


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
