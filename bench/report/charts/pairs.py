"""Pairs: the received model beside the trained one, and measured numbers beside published ones."""

from __future__ import annotations

from bench.report.cells import Cells
from bench.report.charts.shown import Shown, contenders, each_column, figure, measure_read, name, title
from bench.report.experiment import Line
from bench.report.figures import Figure
from bench.report.panels.pairs import Pair, PairPanel
from bench.report.results import Results
from bench.report.settings import Column
from bench.report.wording import AVERAGES, RULES


def stages(cells: Cells, results: Results) -> Figure | None:
    """What local epochs add or lose: both models, each at the step that the primary rule chooses for it."""
    study, rule = cells.study, cells.study.primary.rule

    def pair(each: Shown) -> Pair | None:
        received, trained = (
            results.aggregate(each.group, stage, rule, study.average) for stage in ("received", "trained")
        )
        if received is None or trained is None:
            return None
        both = (trained.mean, trained.std), (received.mean, received.std)
        return Pair(each.method, each.method, each.label, trained.n, *both)

    def panel(column: Column) -> PairPanel | None:
        pairs = tuple(found for each in contenders(cells, column) if (found := pair(each)) is not None)
        if not pairs:
            return None
        return PairPanel(title(study, column), column, pairs, "trained", "received", joined=True)

    caption = (
        f"Test accuracy of the model received from the server and of the same after local training, "
        f"{RULES[rule]} (rule {rule}, for each stage by itself), {AVERAGES[study.average]}; point: mean over "
        "seeds, bar: one sample standard deviation."
    )
    return figure(cells, "stages", caption, each_column(cells, panel))


def lines(cells: Cells, results: Results) -> Figure | None:
    """The first measure of every line beside its published value, also in columns of which nothing was run,
    but not where nothing at all was.
    """

    def pair(column: Column, line: Line) -> Pair | None:
        cell = cells.at(column, line)
        if cell is None:
            return None
        measured, target = cell.measured, cell.target
        return Pair(
            line.method,
            name(cells, line),
            cells.title(line),
            measured.n if measured else 0,
            (measured.mean, measured.std) if measured else None,
            (target.mean, target.std) if target and target.mean is not None else None,
        )

    def panel(column: Column) -> PairPanel | None:
        found = (pair(column, line) for line in cells.lines)
        pairs = tuple(each for each in found if each and (each.filled or each.open))
        if not pairs:
            return None
        where = title(cells.study, column)
        return PairPanel(where, column, pairs, "measured", "published", joined=False)

    caption = (
        f"{measure_read(cells.study, cells.measures[0])}; filled: measured mean over seeds, open: published, "
        "alone where nothing was run; bar: one sample standard deviation."
    )
    return figure(cells, "lines", caption, each_column(cells, panel) if cells.ran else [])
