"""Spread over clients and seeds: who is hurt, and how sure a mean is."""

from __future__ import annotations

import pandas as pd

from bench.frames.graded_cells import Results, values_of
from bench.frames.stored_runs import WHERE
from bench.report.captions import with_runs
from bench.report.document import Document, DocumentCells
from bench.report.table import Table, listing, measured, pivot
from bench.statistics.summary import bottom_tenth
from bench.studies.measures import BELOW_BASELINE, STD_OVER_CLIENTS, Measure

WORST = Measure(
    "worst_client",
    "Worst client",
    "accuracy of the worst client",
    lambda members: 100.0 * members.clients.groupby("member")["value"].min(),
)
BOTTOM = Measure(
    "bottom_tenth",
    "Bottom 10 %",
    "mean over the worst tenth of the clients, one at least",
    lambda members: (
        100.0
        * members.clients.groupby("member")["value"].agg(lambda values: bottom_tenth(values.to_numpy(float)))
    ),
)
MEASURES = (STD_OVER_CLIENTS, WORST, BOTTOM, BELOW_BASELINE)
"""One number a run, from its clients; tables show the mean over seeds."""


def with_measures(cells: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The cells with each of ``MEASURES``, a column by its name: the mean over seeds."""
    values = {measure.name: values_of(results, cells, measure) for measure in MEASURES}
    means = {name: rows.groupby("place")["value"].mean() for name, rows in values.items()}
    return cells.join(pd.DataFrame(means), on="place")


def spread(shown: DocumentCells) -> Document | None:
    """The table of one main table; None for fewer than two methods with numbers."""
    study, baseline = shown.study, shown.study.title_of(shown.study.baseline)
    cells = shown.cells[(shown.cells["comparison_number"] == 0) & (shown.cells["position"] == 0)]
    cells = cells[(cells["n"] > 0) & cells["usual"]].sort_values("column_number", kind="stable")
    if cells["line_number"].nunique() < 2:
        return None
    cells = with_measures(cells, shown.results)
    below = cells.assign(
        heading=cells["data_title"],
        name="of " + cells["clients"].astype(str),
        cell=cells[BELOW_BASELINE.name].map(lambda count: measured(count)),
    )
    body = pivot(below, "Method", ["line_number", "line"], ["column_number"])
    names = ["method", *WHERE, "n", "mean", "std", "low", "high", *(measure.name for measure in MEASURES)]
    numbers = cells[names]
    document = Document(
        study,
        f"{shown.experiment.name}_spread",
        f"{shown.experiment.title}, spread over clients and seeds",
        f"Clients that do worse than under {baseline}, the worst clients, and how sure every mean is.",
        caption=(),
        cells=cells,
        fine_print=(
            f"Means over seeds. {BELOW_BASELINE.name}: number of clients whose accuracy is lower than under "
            f"{baseline} with the same seed and partition; {WORST.name}: {WORST.meaning}; {BOTTOM.name}: "
            f"{BOTTOM.meaning}; {STD_OVER_CLIENTS.name}: sample standard deviation over clients in points; "
            "std: over seeds; low to high: Student's 95 % interval of the mean over seeds. Where all seeds "
            "share one partition it holds the spread of training alone.",
        ),
        views=(Table("below", f"Clients below {baseline}, mean over seeds", body),),
        details=(listing("spread", "Spread over clients and seeds", numbers.set_index("method")),),
        records={"numbers": numbers[[*WHERE, "method", *names[4:]]]},
    )
    return with_runs(document, shown.results)
