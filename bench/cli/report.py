"""``bench report``: tables and figures, published against measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from bench import registry

WIDTH = 80
"""Columns of the tables where the terminal is narrower or there is none."""


def report(
    *,
    study: Annotated[list[str] | None, Parameter(negative="")] = None,
    out: Path = Path("report"),
    db: str | None = None,
    dataset: Annotated[list[str] | None, Parameter(name=["--dataset", "-d"], negative="")] = None,
    method: Annotated[list[str] | None, Parameter(name=["--method", "-m"], negative="")] = None,
    clients: Annotated[list[int] | None, Parameter(name=["--clients", "-k"], negative="")] = None,
    scenario: Annotated[list[str] | None, Parameter(name=["--scenario", "-s"], negative="")] = None,
    grid: str | None = None,
    own: bool = False,
) -> None:
    """Set what was measured beside what was published, as tables and figures.

    Options that can be given several times: --study, -d, -m, -k, -s.

    Parameters
    ----------
    study
        Only this study (fedsheafhn, fedhgn, ...); default: all that have runs.
    out
        Folder for the files.
    db
        Database URL; default: sqlite:///BENCH_HOME/bench.db.
    dataset
        Only this data set.
    method
        Only this method.
    clients
        Only this number of clients.
    scenario
        Only this scenario.
    grid
        Only the cells of this grid, a name or a TOML file.
    own
        Only the database: leave out the results that come with the suite.
    """
    from bench.report.page import NAME as PAGE
    from bench.report.report import Request, build
    from bench.report.shipped import opened, shipped_runs
    from bench.report.terminal import show

    request = Request(
        tuple(study or ()),
        tuple(dataset or ()),
        tuple(scenario or ()),
        tuple(clients or ()),
        tuple(method or ()),
        grid,
    )
    with opened(db, own) as source:
        built = build(source, request, registry.studies(), out)
    console = Console()
    console.width = max(console.width, WIDTH)
    for document in built.documents:
        show(document, console)
    if built.unrun:
        console.print(f"Nothing run yet of: {', '.join(built.unrun)}", markup=False, highlight=False)
    for line in built.elsewhere:
        console.print(f"In no study's table: {line}", markup=False, highlight=False, soft_wrap=True)
    origins = shipped_runs(built.documents)
    if origins:
        bundles = ", ".join(f"{name}: {runs:,}" for name, runs in sorted(origins.items()))
        console.print(
            f"Shipped results: {origins.total():,} runs ({bundles}); --own leaves them out",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    console.print(f"\nWrote to {out}:", markup=False, highlight=False, soft_wrap=True)
    for path in built.paths:
        size = f" ({path.stat().st_size / 1e6:.1f} MB: all of it in one file)" if path.name == PAGE else ""
        console.print(f"  {path.name}{size}", markup=False, highlight=False, soft_wrap=True)
