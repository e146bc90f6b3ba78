"""``bench report``: tables and figures, published against measured."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from bench.cli import options
from bench.cli.output import console
from bench.errors import unknown


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
    pdf: Annotated[bool, Parameter(negative=())] = False,
    document: Annotated[str | None, Parameter(name="--print")] = None,
) -> None:
    """Set what was measured beside what was published, as tables and figures.

    Args:
        study: Only this study, or several (fedsheafhn, fedhgn, ...); default: all that have runs.
        out: Folder for the files.
        grid: Only the tables of this grid, such as ablation.
        pdf: Draw the figures as PDF, too.
        document: Print this table, such as fedsheafhn_table1, in place of the most important lines.
    """
    from bench.frames.whole_frames import stamp as stamp_of
    from bench.report.request import Request
    from bench.site import folder

    request = Request(study, filters.dataset, filters.scenario, filters.clients, filters.method, grid, metric)
    folder.check(out)
    stamp = f"{stamp_of(db, own)} {shipped:d} {pdf:d} {request}"
    contents = folder.unchanged(out, stamp)
    if contents is None:
        from bench.figures.drawing import Drawings
        from bench.report.report import compose
        from bench.site.documents import write
        from bench.studies.data_study import with_data_studies
        from bench.studies.shipped import opened_results
        from bench.studies.study import STUDIES

        workers = os.cpu_count() or 1
        with (
            opened_results(db, own, shipped=shipped) as source,
            Drawings(workers, pdf=pdf) as drawings,
        ):
            studies = with_data_studies(STUDIES.all(), filters.dataset, source.runs())
            report = compose(source, request, studies, drawings=drawings)
            if document:  # an unknown name is refused before anything is written
                check_name(document, {each.key for each in report.documents})
            contents = write(report, out, drawings, stamp)
    screen = console()
    if document:
        tables = folder.tables(out)
        text = tables[check_name(document, tables)].read_text(encoding="utf-8")
        screen.print(text, markup=False, soft_wrap=True, end="")
    else:
        screen.print(Text.from_ansi(contents.brief.rstrip("\n")), end="\n\n", soft_wrap=True)
    for text in (contents.remarks, f"Report: {out / folder.INDEX}\n", contents.beside):
        screen.print(text, markup=False, soft_wrap=True, end="")


def check_name(document: str, names: Collection[str]) -> str:
    """The name of a document, of which ``fedsheafhn/table1`` is another way to write ``fedsheafhn_table1``.

    Raises:
        RequestError: no document has it; the message has the nearest.
    """
    key = document.replace("/", "_", 1)
    if key not in names:
        raise unknown("table", document, names)
    return key
