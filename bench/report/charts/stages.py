"""Received against trained: what local epochs add or lose."""

from __future__ import annotations

from bench.report.cells import Cells
from bench.report.charts.shown import Shown, contenders, each_column, figure, title
from bench.report.figures import Figure
from bench.report.panels.pairs import Pair, PairPanel
from bench.report.results import Results
from bench.report.settings import Column
from bench.report.wording import AVERAGES, RULES


def stages(board: Cells, results: Results) -> Figure | None:
    """Both models of every method, each at the step that the primary rule chooses for it."""
    study = board.study
    rule = study.primary.rule

    def pair(each: Shown) -> Pair | None:
        received, trained = (
            results.aggregate(each.group, stage, rule, study.average) for stage in ("received", "trained")
        )
        if received is None or trained is None:
            return None
        both = (trained.mean, trained.std), (received.mean, received.std)
        return Pair(each.method, each.method, each.label, trained.n, *both)

    def panel(column: Column) -> PairPanel | None:
        pairs = tuple(found for each in contenders(board, column) if (found := pair(each)) is not None)
        if not pairs:
            return None
        return PairPanel(title(study, column), column, pairs, "trained", "received", joined=True)

    caption = (
        f"Test accuracy of the model received from the server and of the same after local training, "
        f"{RULES[rule]} (rule {rule}, for each stage by itself), {AVERAGES[study.average]}; point: mean over "
        "seeds, bar: one sample standard deviation."
    )
    return figure(board, "stages", caption, each_column(board, panel))
