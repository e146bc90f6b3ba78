"""``bench report``: tables and figures, published against measured."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

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
    print_: Annotated[str | None, Parameter(name="--print")] = None,
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
    print_
        Print this table, such as fedsheafhn_table1, in place of the most important lines.
    """
    from bench.report import terminal
    from bench.report.report import Request, compose, write
    from bench.report.shipped import opened, shipped_runs
    from bench.report.study import STUDIES

    request = Request(
        tuple(study or ()),
        tuple(dataset or ()),
        tuple(scenario or ()),
        tuple(clients or ()),
        tuple(method or ()),
        grid,
    )
    with opened(db, own) as source:
        composed = compose(source, request, STUDIES.all())
        document = composed.document(print_) if print_ else None
        written = write(composed, out, workers=os.cpu_count() or 1)
    console = Console()
    console.width = max(console.width, WIDTH)
    if document is None:
        terminal.brief(written, console)
    else:
        terminal.show(document, console)
    terminal.closing(written, shipped_runs(written.documents), out, console)
