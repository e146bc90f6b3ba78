"""Default against tuned: what a search with equal budgets is worth to every method, and to their order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain

import pandas as pd

from bench.report.captions import conditions, origins
from bench.report.cells import Cell, Cells, Selection
from bench.report.published_spaces import published_settings, searched, winner
from bench.report.ranking import Ranking, Task, competitors, scores
from bench.report.ranking_views import MARKS, pair_tables, tables
from bench.report.results import Results
from bench.report.settings import Column
from bench.report.study import Study
from bench.report.table import Document, Entry, Table, listing, pivot
from bench.report.tables import places
from bench.report.tuned import Search
from bench.report.wording import gap, label, read_as, with_std
from bench.statistics.paired import ALPHA, REGION, Comparison, compare


@dataclass(frozen=True, eq=False)
class Pair:
    """A method of one column that was tuned: its default configuration's cell and the winner's.

    Where the default won, both are the same cell, and there is no ``test`` of the winner against it.
    """

    default: Cell
    winner: Cell
    search: Search
    test: Comparison | None = None

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


BySetting = dict[str, dict[str, Cell]]
"""Method -> its cells of one column by setting; the usual setting is empty."""

Pairs = dict[Column, dict[str, Pair]]
"""The methods that have a pair by column, in the order of rows."""


def _competing(study: Study, boards: Sequence[Cells], selection: Selection) -> dict[Column, BySetting]:
    """The competitors' cells in every setting, those of a column from the first table that has it."""
    columns: dict[Column, BySetting] = {}
    lines = competitors(study, boards, selection)
    for board in boards:
        own: dict[Column, BySetting] = defaultdict(lambda: {method: {} for method in lines})
        for cell in board.main:
            if lines.get(cell.method) == replace(cell.line, setting=""):
                own[cell.column][cell.method][cell.line.setting] = cell
        for column in board.columns:
            columns.setdefault(column, own[column])
    return columns


def _search(cell: Cell) -> Search | None:
    """The study whose winner a cell with numbers shows, on the search's own clients."""
    if cell.group is None or cell.measured is None:
        return None
    search = cell.group.kept or cell.group.tuned
    return None if search is None or search.elsewhere else search


def _pairs(cells: BySetting, study: Study, results: Results) -> dict[str, Pair]:
    """The pairs of a column with their tests, Holm's correction over all; of two searches the user's own."""
    pairs = {}
    for method, own in cells.items():
        if (default := own.get("")) is not None and default.measured is not None:
            tuned = [Pair(default, cell, search) for cell in own.values() if (search := _search(cell))]
            if tuned:
                pairs[method] = max(tuned, key=lambda pair: pair.search.own)
    tested = [method for method, pair in pairs.items() if not pair.kept]
    values = {
        f"{method} {kind}": scores(cell, results, study.average)
        for method in tested
        for kind, cell in (("tuned", pairs[method].winner), ("default", pairs[method].default))
    }
    tests = compare(values, [(f"{method} tuned", f"{method} default") for method in tested])
    by_method = dict(zip(tested, tests, strict=True))
    return {method: replace(pair, test=by_method.get(method)) for method, pair in pairs.items()}


def _ranking(
    study: Study, pairs: Pairs, cells: Mapping[Column, BySetting], results: Results
) -> Ranking | None:
    """The ranking of the winners; None where no column has two."""
    tasks = []
    for column, own in pairs.items():
        winners = {method: pair.winner for method, pair in own.items()}
        if len(winners) > 1:
            values = {method: scores(cell, results, study.average) for method, cell in winners.items()}
            tasks.append(Task(column, winners, tuple(compare(values))))
    titles = _titles(study, pairs)
    planned = {method: sum(bool(cells[column][method]) for column in pairs) for method in titles}
    return Ranking(tuple(tasks), titles, planned, study.baseline) if tasks else None


def _titles(study: Study, pairs: Pairs) -> dict[str, str]:
    """Titles of the methods with a pair, those of the first column first."""
    return {method: study.title_of(method) for method in chain.from_iterable(pairs.values())}


def _difference(pair: Pair) -> str:
    if pair.kept:
        return "default won"
    if pair.test is None or pair.test.difference is None:
        return "-"
    return f"{gap(pair.test.difference)} {MARKS[pair.test.verdict]}"


def _table(study: Study, pairs: Pairs) -> Table:
    heads = ("Default", "Tuned", "Difference", "p")
    entries: dict[tuple[str, Column], list[Entry]] = {}
    for column, own in pairs.items():
        ranks = [places({method: pair.means[kind] for method, pair in own.items()}) for kind in (0, 1)]
        for method, pair in own.items():
            p = pair.test.corrected if pair.test else None
            entries[method, column] = [
                *(
                    Entry(with_std(cell.measured.mean, cell.measured.std), ranks[kind].get(method, 0))
                    for kind, cell in enumerate((pair.default, pair.winner))
                    if cell.measured is not None
                ),
                Entry(_difference(pair)),
                Entry("-" if p is None else f"{p:.2g}"),
            ]
    return pivot(
        "tuned",
        "Default and tuned",
        "Method",
        _titles(study, pairs),
        {column: (column.described(study.title_of(column.dataset)), heads) for column in pairs},
        entries,
        blank=Entry("-"),
    )


def _searches(study: Study, pairs: Pairs) -> Table:
    heads = ("Trials", "Client epochs", "Validation, default", "Validation, winner", "Winner's settings")
    rows = []
    for column, own in pairs.items():
        for method, pair in own.items():
            record = pair.search.record
            default, winner = record.default_validation, record.winner.validation
            texts = (
                f"{record.used.trials} of {record.budget.trials}",
                f"{record.used.client_epochs:,.0f} of {record.budget.client_epochs:,.0f}",
                "-" if default is None else f"{100 * default:.2f}",
                f"{100 * winner:.2f}",
                "the default's" if pair.kept else ", ".join(pair.search.changes),
            )
            where = column.described(study.title_of(column.dataset))
            rows.append((f"{study.title_of(method)}, {where}", texts))
    return listing("searches", "The searches", "Method", heads, rows)


def _published(study: Study, pairs: Pairs) -> Table | None:
    """What the papers say that they searched, beside what was searched here and the winners; None where they
    say nothing of a tuned method.
    """
    rows = []
    for row in published_settings(study):
        records = {
            column: own[row.method].search.record for column, own in pairs.items() if row.method in own
        }
        if records:
            columns: dict[str, list[str]] = defaultdict(list)
            for column, record in records.items():
                columns[winner(record, row.setting)].append(label(study, column))
            winners = "; ".join(f"{value} ({', '.join(where)})" for value, where in columns.items())
            name = f"{study.title_of(row.method)}: {row.component}, {row.name}"
            rows.append((name, (row.text, searched(records.values(), row.setting), winners)))
    heads = ("Published", "Searched here", "Winners")
    return (
        listing("published_space", "Settings in the paper and in the searches", "Setting", heads, rows)
        if rows
        else None
    )


def _equal(pairs: Mapping[str, Pair]) -> bool:
    """Whether all searches of a column were granted the same."""
    return len({pair.search.record.budget for pair in pairs.values()}) == 1


def _notes(study: Study, pairs: Pairs, cells: Mapping[Column, BySetting]) -> Iterator[str]:
    """Competitors of which one of the two is missing, and searches that were granted unequal budgets."""
    for column, own in sorted(pairs.items(), key=lambda item: label(study, item[0])):
        alone = {method: by for method, by in cells[column].items() if method not in own}
        default = [method for method, by in alone.items() if "" in by and by[""].measured]
        tuned = [method for method, by in alone.items() if any(map(_search, by.values()))]
        for lacking, methods in (("tuned", default), ("default", tuned)):
            if methods:
                named = ", ".join(map(study.title_of, methods))
                yield f"without {lacking} runs in {label(study, column)}: {named}"
        if not _equal(own):
            granted = ", ".join(
                f"{study.title_of(method)} {pair.search.record.budget.client_epochs:,.0f}"
                for method, pair in own.items()
            )
            yield f"unequal budgets in {label(study, column)}, in client epochs: {granted}"


def _digits(value: float | None, digits: int) -> str:
    """A number of a record as text; empty where there is none."""
    return "" if value is None else f"{value:.{digits}f}"


def _record(column: Column, method: str, pair: Pair) -> dict[str, str | int | float | None]:
    record, test = pair.search.record, pair.test
    low, high = (test and test.interval) or (None, None)
    return {
        **asdict(column),
        "method": method,
        "n_default": len(pair.default.seeds),
        "default": pair.means[0],
        "n_tuned": len(pair.winner.seeds),
        "tuned": pair.means[1],
        "difference": test.difference if test else None,
        "low": low,
        "high": high,
        "p": _digits(test.p if test else None, 6),
        "p_holm": _digits(test.corrected if test else None, 6),
        "verdict": test.verdict if test else "default won",
        "validation_default": _digits(record.default_validation, 6),
        "validation_tuned": _digits(record.winner.validation, 6),
        "trials": record.used.trials,
        "trials_granted": record.budget.trials,
        "client_epochs": _digits(record.used.client_epochs, 1),
        "client_epochs_granted": _digits(record.budget.client_epochs, 1),
        "winner": " ".join(pair.search.changes),
    }


def tuning(study: Study, boards: Sequence[Cells], results: Results, selection: Selection) -> Document | None:
    """Default against tuned in every column of a study; None where no method was tuned."""
    cells = _competing(study, boards, selection)
    every = {column: _pairs(own, study, results) for column, own in cells.items()}
    pairs = {column: own for column, own in every.items() if own}
    if not pairs:
        return None
    flat = [(column, method, pair) for column, own in pairs.items() for method, pair in own.items()]
    shown = [cell for _, _, pair in flat for cell in dict.fromkeys((pair.default, pair.winner))]
    kept = [pair.search for _, _, pair in flat if pair.kept]
    groups = [cell.group for cell in shown if cell.group]
    ranking = _ranking(study, pairs, cells, results)
    ranked, *further = [*tables(study, ranking), *pair_tables(study, ranking)] if ranking else [None]
    table = _table(study, pairs)
    equal = ", with the same budget for every method of a column" * all(map(_equal, pairs.values()))
    return Document(
        name=f"{study.name}_tuned",
        title=f"{study.title}: Default against tuned",
        caption=(
            read_as(study, study.primary),
            f"Tuned: the configuration that a search found by validation accuracy{equal} (bench tune). "
            "'Default won': no configuration that was tried was better, and the tuned cell is the default's.",
            *conditions(study, groups, kept),
        ),
        notes=tuple(_notes(study, pairs, cells)),
        views=(table, ranked) if ranked else (table,),
        details=tuple(filter(None, (_searches(study, pairs), _published(study, pairs), *further))),
        printed=tuple(table.blocks(4)),
        cells=tuple(shown),
        fine_print=(
            "Difference: tuned minus default in points over common seeds. p: paired t test, two-sided, with "
            "the unit of the ranking's tests and Holm's correction over the methods of a column. Better (>) "
            f"or worse (<): p below {ALPHA:g} and more than {REGION:g} points. Equivalent (=): the 95 % "
            f"interval lies within ±{REGION:g} points. Undecided (?): neither.",
            "Ranking, groups and tests of all pairs are those of the tuned cells, made as in "
            f"{study.name}_ranking.",
            *origins(study, groups, results, kept),
        ),
        records={"pairs": pd.DataFrame([_record(*part) for part in flat])},
    )
