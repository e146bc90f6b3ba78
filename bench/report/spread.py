"""Spread over clients and seeds: who is hurt, and how sure a mean is."""

from __future__ import annotations

import pandas as pd

from bench.frames.graded_cells import Results, values_of
from bench.report.captions import statistic
from bench.report.document import Document, DocumentCells
from bench.report.table import Entry, Table, listing, pivot
from bench.statistics.summary import bottom_tenth
from bench.studies.measures import BELOW_BASELINE, STD_OVER_CLIENTS, Measure
from bench.studies.settings import Column
from bench.studies.study import Study
from bench.studies.wording import interval, number

ACROSS = 4
"""Columns side by side on a terminal."""


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
FROM_CELLS = ["dataset", "scenario", "clients", "method", "n", "mean", "std", "low", "high"]
"""Columns of the cells frame that stand before the measures."""

MEASURES = (STD_OVER_CLIENTS, WORST, BOTTOM, BELOW_BASELINE)
"""One number a run, from its clients; tables show the mean over seeds."""


def with_measures(cells: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The cells with each of ``MEASURES``, a column by its name: the mean over seeds."""
    values = {measure.name: values_of(results, cells, measure) for measure in MEASURES}
    means = {name: rows.groupby("place")["value"].mean() for name, rows in values.items()}
    return cells.join(pd.DataFrame(means), on="place")


def _below_table(study: Study, cells: pd.DataFrame) -> Table:
    """Clients below the baseline, lines by federations."""
    rows = cells.drop_duplicates("line_number")
    columns = cells.drop_duplicates("column_number")
    names = zip(columns["column_number"], columns["dataset"], columns["clients"], strict=True)
    keys = zip(cells["line_number"], cells["column_number"], strict=True)
    return pivot(
        "below",
        f"Clients below {study.title_of(study.baseline)}, mean over seeds",
        "Method",
        dict(zip(rows["line_number"], rows["line"], strict=True)),
        {column: (study.title_of(dataset), (f"of {clients}",)) for column, dataset, clients in names},
        {key: (Entry(number(value)),) for key, value in zip(keys, cells[BELOW_BASELINE.name], strict=True)},
    )


def _numbers_table(study: Study, cells: pd.DataFrame) -> Table:
    """Every number, a row a method and federation."""
    titles = {"n": "Seeds", "mean": "Mean", "std": "Std", "interval": "95 % interval"}
    titles |= {measure.name: measure.title for measure in MEASURES[:-1]}
    titles[BELOW_BASELINE.name] = f"Below {study.title_of(study.baseline)}"
    intervals = map(interval, cells["low"], cells["high"])
    texts = cells.assign(interval=list(intervals), n=cells["n"].astype(str))[list(titles)]
    texts = texts.map(lambda value: value if isinstance(value, str) else number(value)).rename(columns=titles)
    places = cells[["dataset", "scenario", "clients"]].itertuples(index=False, name=None)
    labels = [
        f"{line}, {study.column_title(Column(*place))}"
        for line, place in zip(cells["line"], places, strict=True)
    ]
    rows = zip(labels, texts.to_dict("records"), strict=True)
    return listing("spread", "Spread over clients and seeds", "Method", rows)


def spread(shown: DocumentCells) -> Document | None:
    """The table of one main table; None for fewer than two methods with numbers."""
    study, baseline = shown.study, shown.study.title_of(shown.study.baseline)
    cells = shown.cells[(shown.cells["comparison_number"] == 0) & (shown.cells["position"] == 0)]
    cells = cells[(cells["n"] > 0) & cells["usual"]].sort_values("column_number", kind="stable")
    if cells["line_number"].nunique() < 2:
        return None
    cells = with_measures(cells, shown.results)
    numbers = cells[[*FROM_CELLS, *(measure.name for measure in MEASURES)]]
    below_table = _below_table(study, cells)
    return statistic(
        study,
        f"{shown.experiment.name}_spread",
        f"{shown.experiment.title}, spread over clients and seeds",
        f"Clients that do worse than under {baseline}, the worst clients, and how sure every mean is.",
        cells,
        shown.results,
        caption=(),
        fine_print=(
            f"Below {baseline}: number of clients whose accuracy is lower than under {baseline} with the "
            "same seed and partition. "
            + "; ".join(f"{measure.title}: {measure.meaning}" for measure in (WORST, BOTTOM))
            + f"; {STD_OVER_CLIENTS.title}: sample standard deviation over clients in points. All are means "
            "over seeds.",
            "Std: sample standard deviation over seeds (ddof 1). 95 % interval: Student's, of the mean over "
            "seeds; where all seeds share one partition it holds the spread of training alone.",
        ),
        views=(below_table,),
        details=(_numbers_table(study, cells),),
        printed=tuple(below_table.blocks(ACROSS)),
        records={"numbers": numbers},
    )
