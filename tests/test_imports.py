"""No module imports itself by way of others: read from the source, so that type-only imports count."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "bench": ROOT / "bench",
    "bench.methods": ROOT / "methods",
    "bench.datasets": ROOT / "datasets",
    "bench.reports": ROOT / "reports",
}


def modules() -> dict[str, Path]:
    """Module -> its file."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join([package, *(part for part in parts if part != "__init__")])] = path
    return found


FILES = modules()


def imported(module: str) -> Iterator[str]:
    """The other known modules that one imports: at its top, in functions, and for types alone."""
    path = FILES[module]
    package = module.split(".")[: None if path.stem == "__init__" else -1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join([*start, *([node.module] if node.module else [])])
            inner = [f"{source}.{alias.name}" for alias in node.names]
            names = [name if name in FILES else source for name in inner]
        else:
            continue
        yield from (name for name in names if name in FILES and name != module)


IMPORTS = {module: set(imported(module)) for module in FILES}


def test_no_module_is_in_a_circle() -> None:
    TopologicalSorter(IMPORTS).prepare()  # an error has the circle


READERS = ("grids", "studies", "frames", "figures", "report", "site")
"""Packages that read results, each of which may import those before it."""


def test_what_reads_results_imports_nothing_that_shows_them() -> None:
    place = {f"bench.{name}": number for number, name in enumerate(READERS)}
    for module, others in IMPORTS.items():
        own = place.get(".".join(module.split(".")[:2]), len(place))
        upward = [other for other in others if place.get(".".join(other.split(".")[:2]), -1) > own]
        assert not upward, module
