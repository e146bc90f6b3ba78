"""Default against tuned: what a search with equal budgets is worth to every method, and to their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.report.cells import Cell, Cells, Selection
from bench.report.competitors import Task, competitors, scores
from bench.report.experiment import Line
from bench.report.ranking import Ranking
from bench.report.results import Results
from bench.report.settings import Column
from bench.report.study import Study
from bench.report.tuned import Search
from bench.statistics.paired import Comparison, compare
from bench.tune.record import Budget


@dataclass(frozen=True, eq=False)
class Pair:
    """A method of one column that was tuned: its default configuration's cell and the winner's.

    Where the default won, both are the same cell, and there is no ``comparison`` of the winner with it.
    """

    default: Cell
    winner: Cell
    search: Search
    comparison: Comparison | None = None

    @property
    def kept(self) -> bool:
        """Whether the default configuration won."""
        return self.winner is self.default

    @property
    def means(self) -> tuple[float, float]:
        """Measured means in percent of default and winner."""
        assert self.default.measured is not None
        assert self.winner.measured is not None
        return self.default.measured.mean, self.winner.measured.mean


@dataclass(frozen=True, eq=False)
class Tuned:
    """The competitors in a column in which some method was tuned, in the order of rows.

    ``default_alone`` and ``tuned_alone`` are methods with numbers that have no pair; ``planned`` are all that
    have a cell, measured or not.
    """

    pairs: dict[str, Pair]
    default_alone: tuple[str, ...]
    tuned_alone: tuple[str, ...]
    planned: frozenset[str]

    @property
    def budgets(self) -> set[Budget]:
        """What the searches were granted: one budget where all are equal."""
        return {pair.search.record.budget for pair in self.pairs.values()}


Found = dict[Column, Tuned]


def _search(cell: Cell) -> Search | None:
    """The study whose winner a cell with numbers shows, on the search's own clients."""
    if cell.group is None or cell.measured is None:
        return None
    search = cell.group.kept or cell.group.tuned
    return None if search is None or search.elsewhere else search


def _cells(board: Cells, column: Column, line: Line) -> dict[str, Cell]:
    """The method's cells in every setting; the usual one is empty."""
    return {
        cell.line.setting: cell
        for cell in board.main
        if cell.column == column and replace(cell.line, setting="") == line
    }


def _pair(here: dict[str, Cell]) -> Pair | None:
    """The pair of a method with these cells; of two searches the user's own."""
    default = here.get("")
    if default is None or default.measured is None:
        return None
    made = [Pair(default, cell, search) for cell in here.values() if (search := _search(cell)) is not None]
    return max(made, key=lambda pair: pair.search.own, default=None)


def _compared(study: Study, pairs: dict[str, Pair], results: Results) -> dict[str, Pair]:
    """The pairs with their tests, Holm's correction over those of the column."""
    tested = {method: pair for method, pair in pairs.items() if not pair.kept}
    values = {
        (method, kind): scores(cell, results, study.average)
        for method, pair in tested.items()
        for kind, cell in (("tuned", pair.winner), ("default", pair.default))
    }
    named = {" ".join(key): frame for key, frame in values.items()}
    made = compare(named, [(f"{method} tuned", f"{method} default") for method in tested])
    found = dict(zip(tested, made, strict=True))
    return {
        method: Pair(pair.default, pair.winner, pair.search, found.get(method))
        for method, pair in pairs.items()
    }


def tuned_pairs(study: Study, boards: Sequence[Cells], results: Results, selection: Selection) -> Found:
    """The columns in which some competitor has a pair."""
    found: Found = {}
    lines = competitors(study, boards, selection)
    for board in boards:
        for column in board.columns:
            cells = {method: _cells(board, column, line) for method, line in lines.items()}
            pairs = {method: pair for method, here in cells.items() if (pair := _pair(here)) is not None}
            if not pairs or column in found:
                continue
            default = [method for method, here in cells.items() if "" in here and here[""].measured]
            tuned = [method for method, here in cells.items() if any(map(_search, here.values()))]
            found[column] = Tuned(
                _compared(study, pairs, results),
                tuple(method for method in default if method not in pairs),
                tuple(method for method in tuned if method not in pairs),
                frozenset(method for method, here in cells.items() if here),
            )
    return found


def methods(found: Found) -> list[str]:
    """Methods with a pair, those of the first column first."""
    return list(dict.fromkeys(method for here in found.values() for method in here.pairs))


def winners_ranking(study: Study, found: Found, results: Results) -> Ranking | None:
    """The ranking of the winners; None where no column has two."""
    made = tuple(
        Task(
            column,
            {method: pair.winner for method, pair in here.pairs.items()},
            tuple(
                compare(
                    {
                        method: scores(pair.winner, results, study.average)
                        for method, pair in here.pairs.items()
                    }
                )
            ),
        )
        for column, here in found.items()
        if len(here.pairs) > 1
    )
    if not made:
        return None
    planned = {method: sum(method in here.planned for here in found.values()) for method in methods(found)}
    return Ranking(made, {method: study.title_of(method) for method in planned}, planned, study.baseline)
