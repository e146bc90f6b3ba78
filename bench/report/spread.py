"""Spread over clients and seeds: who is hurt, and how sure a mean is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.report.captions import statistic
from bench.report.document import Document
from bench.report.table import Entry, Table, listing, pivot
from bench.statistics.summary import bottom_tenth
from bench.studies.cells import Cell, Cells
from bench.studies.frame import frame
from bench.studies.measures import BELOW_BASELINE, STD_OVER_CLIENTS, CellReading, Measure, Values
from bench.studies.study import Study
from bench.studies.wording import interval, number

ACROSS = 4
"""Columns side by side on a terminal."""


def _over_clients(value_of: Callable[[NDArray[np.float64]], float]) -> Callable[[CellReading], Values]:
    def values(cell: CellReading) -> Values:
        return tuple(map(value_of, cell.accuracies))

    return values


WORST = Measure(
    "worst_client",
    "Worst client",
    "accuracy of the worst client",
    _over_clients(lambda accuracies: float(accuracies.min())),
)
BOTTOM = Measure(
    "bottom_tenth",
    "Bottom 10 %",
    "mean over the worst tenth of the clients, one at least",
    _over_clients(bottom_tenth),
)
FROM_CELLS = ["dataset", "scenario", "clients", "method", "n", "mean", "std", "low", "high"]
"""Columns of ``bench.studies.frame`` that stand before the measures."""

MEASURES = (STD_OVER_CLIENTS, WORST, BOTTOM, BELOW_BASELINE)
"""One number a run, from its clients; tables show the mean over seeds."""


def _numbers(cells: Sequence[Cell]) -> pd.DataFrame:
    """Accuracies over seeds with the interval of their mean, and each measure's mean over seeds."""
    means = {
        measure.name: [fmean(values) if (values := measure.of(cell.reading)) else np.nan for cell in cells]
        for measure in MEASURES
    }
    return frame(cells)[FROM_CELLS].assign(**means)


def _below_table(study: Study, cells: Sequence[Cell], numbers: pd.DataFrame) -> Table:
    """Clients below the baseline, lines by federations."""
    columns = dict.fromkeys(cell.column for cell in cells)
    counts = zip(cells, numbers[BELOW_BASELINE.name], strict=True)
    return pivot(
        "below",
        f"Clients below {study.title_of(study.baseline)}, mean over seeds",
        "Method",
        {cell.line: cell.title for cell in cells},
        {column: (study.title_of(column.dataset), (f"of {column.clients}",)) for column in columns},
        {(cell.line, cell.column): (Entry(_text(number)),) for cell, number in counts},
    )


def _numbers_table(study: Study, cells: Sequence[Cell], numbers: pd.DataFrame) -> Table:
    """Every number, a row a method and federation."""
    titles = {"n": "Seeds", "mean": "Mean", "std": "Std", "interval": "95 % interval"}
    titles |= {measure.name: measure.title for measure in MEASURES[:-1]}
    titles[BELOW_BASELINE.name] = f"Below {study.title_of(study.baseline)}"
    intervals = map(interval, numbers["low"], numbers["high"])
    texts = numbers.assign(interval=list(intervals))[list(titles)].map(_text).rename(columns=titles)
    labels = [f"{cell.title}, {study.column_title(cell.column)}" for cell in cells]
    rows = zip(labels, texts.to_dict("records"), strict=True)
    return listing("spread", "Spread over clients and seeds", "Method", rows)


def _text(value: object) -> str:
    return number(value) if value is None or isinstance(value, float) else str(value)


def spread(board: Cells) -> Document | None:
    """The table of one main table; None for fewer than two methods with numbers."""
    study, baseline = board.study, board.study.title_of(board.study.baseline)
    cells = [cell for cell in board.main_cells if cell.measured and not cell.line.setting]
    cells.sort(key=lambda cell: board.columns.index(cell.column))
    if len({cell.line for cell in cells}) < 2:
        return None
    numbers = _numbers(cells)
    below_table = _below_table(study, cells, numbers)
    return statistic(
        study,
        f"{board.experiment.name}_spread",
        f"{board.experiment.title}, spread over clients and seeds",
        f"Clients that do worse than under {baseline}, the worst clients, and how sure every mean is.",
        cells,
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
        details=(_numbers_table(study, cells, numbers),),
        printed=tuple(below_table.blocks(ACROSS)),
        records={"numbers": numbers},
    )
