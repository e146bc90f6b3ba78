"""``bench report``: tables and figures, published against measured."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bench.cli import options
from bench.cli.output import console
from bench.errors import unknown

WIDTH = 80
"""Columns of the tables where there is no terminal."""


def report(
    *,
    study: options.Studies = (),
    out: Path = Path("report"),
    filters: options.CellFilters = options.ALL_CELLS,
    grid: str | None = None,
    db: options.Database = None,
    own: options.Own = False,
    shipped: options.Shipped = False,
    metric: options.ByMetric = "accuracy",
    document: Annotated[str | None, Parameter(name="--print")] = None,
) -> None:
    """Set what was measured beside what was published, as tables and figures.

    Parameters
    ----------
    study
        Only this study, or several (fedsheafhn, fedhgn, ...); default: all that have runs.
    out
        Folder for the files.
    grid
        Only the cells of this grid, a name or a TOML file.
    document
        Print this table, such as fedsheafhn_table1, in place of the most important lines.
    """
    from bench import frames, paths
    from bench.report import folder, terminal
    from bench.report.request import Request

    if document:
        check_name(document)
    request = Request(study, filters.dataset, filters.scenario, filters.clients, filters.method, grid, metric)
    folder.check(out)
    stamp = f"{frames.stamp(db, own)} {shipped:d} {request.stamp}"
    printout = folder.unchanged_printout(out, stamp)
    if printout is None:
        from bench.figures.drawings import Drawings
        from bench.report.report import compose, write
        from bench.studies.shipped import opened_results
        from bench.studies.study import STUDIES

        workers = os.cpu_count() or 1
        with (
            opened_results(db, own, shipped=shipped) as source,
            Drawings(paths.home() / "figures", workers) as drawings,
        ):
            report = compose(source, request, STUDIES.all(), drawings=drawings)
            if document:
                report.printout.document(document)  # an unknown name is refused before anything is written
            write(report, out, drawings, stamp)
        printout = report.printout
    screen = console(WIDTH)
    if document:
        terminal.show(printout.document(document), screen)
    else:
        terminal.brief(printout, screen)
    terminal.closing(printout, out, screen)


def check_name(document: str) -> None:
    """Refuse a name that no document can have, before results are read, which takes long.

    Raises:
        RequestError: the name is of none; the message has the nearest.
    """
    from bench.studies.study import STUDIES

    names = {
        f"{study.name}_{part}"
        for study in STUDIES.all().values()
        for experiment in study.experiments
        for part in (
            experiment.name,
            f"{experiment.name}_spread",
            "ranking",
            "tuned",
            "reproduction",
            "datasets",
            *(claim_list.name for claim_list in study.claims),
        )
    }
    if document.replace("/", "_", 1) not in names:
        raise unknown("table", document, names)
