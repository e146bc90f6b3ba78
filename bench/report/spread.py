"""Spread over clients and seeds: who is hurt, and how sure a mean is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bench.report.captions import circumstances
from bench.report.cells import Cell, Cells
from bench.report.experiment import Line
from bench.report.measures import BELOW_LOCAL, STD_OVER_CLIENTS, Measure, Measured, Values
from bench.report.results import Aggregate, Results
from bench.report.settings import Column
from bench.report.statistic import Records, Statistic, number, place, read_as
from bench.report.study import Study
from bench.report.table import Document, Entry, Summary, Table
from bench.report.wording import label
from bench.statistics.summary import Interval, bottom_tenth, t_interval, worst

SHOWN = 4
"""Columns side by side on a terminal."""


def _over_clients(of: Callable[[NDArray[np.float64]], float]) -> Callable[[Measured], Values]:
    def values(cell: Measured) -> Values:
        return tuple(of(100.0 * part["value"].to_numpy(np.float64)) for _, part in cell.clients())

    return values


WORST = Measure("worst_client", "Worst client", "accuracy of the worst client", _over_clients(worst))
BOTTOM = Measure(
    "bottom_tenth",
    "Bottom 10 %",
    "mean over the worst tenth of the clients, one at least",
    _over_clients(bottom_tenth),
)
MEASURES = (STD_OVER_CLIENTS, WORST, BOTTOM, BELOW_LOCAL)
"""One number a run, from its clients; tables show the mean over seeds."""


def _shown(board: Cells) -> dict[tuple[Column, Line], Cell]:
    """Cells with numbers of the usual setting, under the primary reading."""
    return {(cell.column, cell.line): cell for cell in board.main if cell.measured and not cell.line.setting}


def _numbers(
    study: Study, cell: Cell, results: Results
) -> tuple[Aggregate, Interval | None, list[float | None]]:
    """A cell's accuracies with their interval, and each measure's mean over seeds."""
    assert cell.measured is not None
    assert cell.group is not None
    measured = Measured(results, cell.group, cell.stage, cell.rule, study.average, cell.baseline)
    over = [Aggregate(values).mean if (values := measure.of(measured)) else None for measure in MEASURES]
    return cell.measured, t_interval(cell.measured.values), over


def _entries(found: Aggregate, interval: Interval | None, over: list[float | None]) -> tuple[str, ...]:
    between = f"{interval[0]:.2f} to {interval[1]:.2f}" if interval else "-"
    std = "-" if found.std is None else f"{found.std:.2f}"
    return str(found.n), f"{found.mean:.2f}", std, between, *(number(value, 2) or "-" for value in over)


def _below(
    board: Cells,
    columns: tuple[Column, ...],
    entries: dict[tuple[Column, Line], tuple[str, ...]],
) -> Table:
    """Clients below the baseline, the last entry, for the terminal."""
    study = board.study
    rows = tuple(
        (
            board.title(line),
            tuple(
                Entry(entries[column, line][-1] if (column, line) in entries else "-") for column in columns
            ),
        )
        for line in board.lines
        if any((column, line) in entries for column in columns)
    )
    title = f"Clients below {study.title_of(study.baseline)}, mean over seeds"
    groups = tuple((study.title_of(column.dataset), 1) for column in columns)
    return Table("below", title, "Method", groups, tuple(f"of {column.clients}" for column in columns), rows)


def spread(board: Cells, results: Results) -> Statistic | None:
    """The table of one main table; None for fewer than two methods with numbers."""
    study, shown = board.study, _shown(board)
    if len({line for _, line in shown}) < 2:
        return None
    made = {key: _numbers(study, cell, results) for key, cell in shown.items()}
    entries = {key: _entries(*values) for key, values in made.items()}
    columns = tuple(column for column in board.columns if any(key[0] == column for key in made))
    lines = [line for line in board.lines if any(key[1] == line for key in made)]
    titles = [STD_OVER_CLIENTS.title, WORST.title, BOTTOM.title, f"Below {study.title_of(study.baseline)}"]
    heads = ("Seeds", "Mean", "Std", "95 % interval", *titles)
    table = Table(
        "spread",
        "Spread over clients and seeds",
        "Method",
        tuple((label(study, column), len(heads)) for column in columns),
        heads * len(columns),
        tuple(
            (
                board.title(line),
                tuple(
                    Entry(text)
                    for column in columns
                    for text in entries.get((column, line), ("-",) * len(heads))
                ),
            )
            for line in lines
        ),
    )
    caption = (
        read_as(study, study.primary),
        "Std: sample standard deviation over seeds (ddof 1). 95 % interval: Student's, of the mean over "
        "seeds; where all seeds share one partition it holds the spread of training alone.",
        "Means over seeds of: "
        + "; ".join(f"{measure.title}: {measure.meaning}" for measure in (WORST, BOTTOM))
        + f"; {STD_OVER_CLIENTS.title}: sample standard deviation over clients in points; below "
        f"{study.title_of(study.baseline)}: number of clients whose accuracy is lower than under "
        f"{study.title_of(study.baseline)} with the same seed and partition.",
        *circumstances(study, [cell.group for cell in shown.values() if cell.group], results),
    )
    name = f"{study.name}_{board.experiment.name}_spread"
    rows = tuple(
        {
            **place(column),
            "method": line.method,
            "n": str(found.n),
            "mean": number(found.mean),
            "std": number(found.std),
            **dict(zip(("low", "high"), map(number, interval or (None, None)), strict=True)),
            **{measure.name: number(value) for measure, value in zip(MEASURES, over, strict=True)},
        }
        for (column, line), (found, interval, over) in made.items()
    )
    document = Document(
        name=name,
        title=f"{study.title}: {board.experiment.title}, spread over clients and seeds",
        caption=caption,
        notes=(),
        views=(table,),
        details=(),
        summary=Summary(tuple(_below(board, columns, entries).blocks(SHOWN)), None, ()),
        primary=(),
        cells=tuple(shown.values()),
    )
    return Statistic(document, (Records(f"{name}_numbers", rows),))
