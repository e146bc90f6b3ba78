"""``bench report`` writes tables and figures; ``bench leaderboard`` writes the results as a site."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.text import Text

from bench.cli import options
from bench.cli.output import console
from bench.errors import unknown


def report(
    *,
    study: options.Studies = (),
    out: Path = Path("report"),
    filters: options.CellFilters = options.ALL_CELLS,
    db: options.Database = None,
    own: options.Own = False,
    shipped: options.Shipped = False,
    metric: options.ByMetric = "accuracy",
    pdf: bool = False,
    document: Annotated[str | None, Parameter(name="--print")] = None,
    only_main: Annotated[bool, Parameter(parse=False)] = False,
) -> None:
    """Write tables and figures: the measured numbers beside the published ones.

    Args:
        study: Only this study, or several (fedsheafhn, fedhgn, ...); default: all studies with runs.
        out: Folder of the report.
        pdf: Write the figures as PDF, too.
        document: Print this table, such as fedsheafhn_table1, in place of the summary.
    """
    from bench.frames.whole_frames import stamp as stamp_of
    from bench.report.request import Request
    from bench.site import folder

    cells = filters.dataset, filters.scenario, filters.clients, filters.method
    request = Request(study, *cells, metric=metric, only_main=only_main)
    folder.check(out)
    stamp = f"{stamp_of(db, own)} {shipped:d} {pdf:d} {request}"
    texts = folder.unchanged(out, stamp)
    if texts is None:
        from bench.figures.drawing import Drawings
        from bench.report.report import compose
        from bench.site.documents import write
        from bench.studies.shipped import opened_results
        from bench.studies.study import STUDIES, with_data_studies

        with (
            opened_results(db, own, shipped=shipped) as source,
            Drawings(os.cpu_count() or 1, pdf=pdf) as drawings,
        ):
            studies = with_data_studies(STUDIES.all(), filters.dataset, source.runs())
            made = compose(source, request, studies, drawings=drawings)
            names = {each.key for part in made for each in part.documents}
            if document and document not in names:  # refuse before writing files
                raise unknown("table", document, names)
            texts = write(made, out, drawings, stamp)
    screen, (brief, remarks, beside) = console(), texts
    if document:
        tables = folder.tables(out)
        if document not in tables:
            raise unknown("table", document, tables)
        screen.print(tables[document].read_text(encoding="utf-8"), markup=False, soft_wrap=True, end="")
    else:
        screen.print(Text.from_ansi(brief.rstrip("\n")), end="\n\n", soft_wrap=True)
    for text in (remarks, f"Report: {out / folder.INDEX}\n", beside):
        screen.print(text, markup=False, soft_wrap=True, end="")


leaderboard = App(name="leaderboard", help="Write the results as a site.")


@leaderboard.command
def build(
    *,
    out: Path = Path("site"),
    db: options.Database = None,
    own: options.Own = False,
    shipped: options.Shipped = False,
) -> None:
    """Write a folder of pages in place of an earlier one; open its index.html, or put it on a web server."""
    from bench.engine.methods import METHODS
    from bench.site import folder
    from bench.site.leaderboard import build
    from bench.studies.shipped import opened_results
    from bench.studies.study import STUDIES

    folder.check(out)  # refuse early: reading takes long
    with opened_results(db, own, shipped=shipped) as source:
        runs = build(source, STUDIES.all(), METHODS.all(), out)
    print(f"{runs:,} runs: {out / folder.INDEX}")
