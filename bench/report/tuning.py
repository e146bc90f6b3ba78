"""Default against tuned: what a search with equal budgets is worth to every method, and to their order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain

import pandas as pd

from bench.frames.graded_cells import Results
from bench.report.captions import rows_of_cells, statistic
from bench.report.document import Document
from bench.report.ranking_views import MARKS, pair_tables, tables
from bench.report.table import Entry, Table, listing, pivot
from bench.report.tables import places
from bench.statistics.paired import ALPHA, REGION, PairedTest, compare
from bench.studies.cells import Cell, Cells, Selection
from bench.studies.published_spaces import published_settings, searched_values, winner
from bench.studies.ranking import Ranking, Task, client_scores, competitors
from bench.studies.settings import Column
from bench.studies.study import Study
from bench.studies.tuned import SearchSummary
from bench.studies.wording import gap, label, number, with_std


@dataclass(frozen=True, eq=False)
class Pair:
    """A method of one column that was tuned: its default configuration's cell and the winner's.

    Where the default won, both are the same cell, and there is no ``test`` of the winner against it.
    """

    default: Cell
    winner: Cell
    search: SearchSummary
    test: PairedTest | None = None

    @property
    def default_won(self) -> bool:
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


def _competing_cells(study: Study, boards: Sequence[Cells], selection: Selection) -> dict[Column, BySetting]:
    """The competitors' cells in every setting, those of a column from the first table that has it."""
    columns: dict[Column, BySetting] = {}
    lines = competitors(study, boards, selection)
    for board in boards:
        board_cells: dict[Column, BySetting] = defaultdict(lambda: {method: {} for method in lines})
        for cell in board.main_cells:
            if lines.get(cell.method) == replace(cell.line, setting=""):
                board_cells[cell.column][cell.method][cell.line.setting] = cell
        for column in board.columns:
            columns.setdefault(column, board_cells[column])
    return columns


def _search(cell: Cell) -> SearchSummary | None:
    """The search whose winner a cell with numbers shows, on the search's own clients and with all else as in
    the usual setting.
    """
    if cell.group is None or cell.measured is None:
        return None
    search = cell.group.default_search or cell.group.search
    return None if search is None or search.on_other_clients or search.other_settings else search


def _pairs(cells: BySetting) -> dict[str, Pair]:
    """The pairs of a column with their tests, Holm's correction over all; of two searches the user's own."""
    pairs = {}
    for method, row in cells.items():
        if (default := row.get("")) is not None and default.measured is not None:
            options = [Pair(default, cell, search) for cell in row.values() if (search := _search(cell))]
            if options:
                pairs[method] = max(options, key=lambda pair: pair.search.is_own)
    tuned_methods = [method for method, pair in pairs.items() if not pair.default_won]
    values = {
        f"{method} {kind}": client_scores(cell)
        for method in tuned_methods
        for kind, cell in (("tuned", pairs[method].winner), ("default", pairs[method].default))
    }
    tests = compare(values, [(f"{method} tuned", f"{method} default") for method in tuned_methods])
    by_method = dict(zip(tuned_methods, tests, strict=True))
    return {method: replace(pair, test=by_method.get(method)) for method, pair in pairs.items()}


def _ranking(study: Study, pairs: Pairs, cells: Mapping[Column, BySetting]) -> Ranking | None:
    """The ranking of the winners; None where no column has two."""
    tasks = []
    for column, by_method in pairs.items():
        winners = {method: pair.winner for method, pair in by_method.items()}
        if len(winners) > 1:
            tasks.append(Task.of(column, winners))
    titles = _titles(study, pairs)
    planned_tasks = {method: sum(bool(cells[column][method]) for column in pairs) for method in titles}
    return Ranking(tuple(tasks), titles, planned_tasks, study) if tasks else None


def _titles(study: Study, pairs: Pairs) -> dict[str, str]:
    """Titles of the methods with a pair, those of the first column first."""
    return {method: study.title_of(method) for method in chain.from_iterable(pairs.values())}


def _difference(pair: Pair) -> str:
    if pair.default_won:
        return "default won"
    if pair.test is None or pair.test.difference is None:
        return "-"
    return f"{gap(pair.test.difference)} {MARKS[pair.test.verdict]}"


def _table(study: Study, pairs: Pairs) -> Table:
    heads = ("Default", "Tuned", "Difference", "p")
    entries: dict[tuple[str, Column], list[Entry]] = {}
    for column, by_method in pairs.items():
        ranks = [places({method: pair.means[kind] for method, pair in by_method.items()}) for kind in (0, 1)]
        for method, pair in by_method.items():
            p = pair.test.corrected if pair.test else None
            entries[method, column] = [
                *(
                    Entry(with_std(cell.measured.mean, cell.measured.std), ranks[kind].get(method, 0))
                    for kind, cell in enumerate((pair.default, pair.winner))
                    if cell.measured is not None
                ),
                Entry(_difference(pair)),
                Entry(number(p, ".2g")),
            ]
    return pivot(
        "tuned",
        "Default and tuned",
        "Method",
        _titles(study, pairs),
        {column: (study.column_title(column), heads) for column in pairs},
        entries,
        filler=Entry("-"),
    )


def _searches(study: Study, pairs: Pairs) -> Table:
    rows = []
    for column, by_method in pairs.items():
        for method, pair in by_method.items():
            record = pair.search.record
            default, winner = record.default_validation, record.winner.validation
            texts = {
                "Trials": f"{record.used.trials} of {record.budget.trials}",
                "Client epochs": f"{record.used.client_epochs:,.0f} of {record.budget.client_epochs:,.0f}",
                "Validation, default": number(default and 100 * default),
                "Validation, winner": f"{100 * winner:.2f}",
                "Winner's settings": (
                    "the default's" if pair.default_won else ", ".join(pair.search.changes)
                ),
            }
            rows.append((f"{study.title_of(method)}, {study.column_title(column)}", texts))
    return listing("searches", "The searches", "Method", rows)


def _published_table(study: Study, pairs: Pairs) -> Table | None:
    """What the papers say that they searched, beside what was searched here and the winners; None where they
    say nothing of a tuned method.
    """
    rows = []
    for row in published_settings(study):
        records = {
            column: by_method[row.method].search.record
            for column, by_method in pairs.items()
            if row.method in by_method
        }
        if records:
            columns: dict[str, list[str]] = defaultdict(list)
            for column, record in records.items():
                columns[winner(record, row.setting)].append(label(study, column))
            winners = "; ".join(f"{value} ({', '.join(places)})" for value, places in columns.items())
            name = f"{study.title_of(row.method)}: {row.component}, {row.name}"
            searched_text = searched_values(records.values(), row.setting)
            rows.append((name, {"Published": row.text, "Searched here": searched_text, "Winners": winners}))
    title = "Settings in the paper and in the searches"
    return listing("published_space", title, "Setting", rows) if rows else None


def _is_fair(pairs: Mapping[str, Pair]) -> bool:
    """Whether all searches of a column were granted the same."""
    return len({pair.search.record.budget for pair in pairs.values()}) == 1


def _notes(study: Study, pairs: Pairs, cells: Mapping[Column, BySetting]) -> Iterator[str]:
    """Competitors of which one of the two is missing, and searches that were granted unequal budgets."""
    for column, by_method in sorted(pairs.items(), key=lambda item: label(study, item[0])):
        singles = {method: settings for method, settings in cells[column].items() if method not in by_method}
        default = [method for method, settings in singles.items() if "" in settings and settings[""].measured]
        tuned_methods = [
            method for method, settings in singles.items() if any(map(_search, settings.values()))
        ]
        for kind, methods in (("tuned", default), ("default", tuned_methods)):
            if methods:
                titles = ", ".join(map(study.title_of, methods))
                yield f"without {kind} runs in {label(study, column)}: {titles}"
        if not _is_fair(by_method):
            budgets = ", ".join(
                f"{study.title_of(method)} {pair.search.record.budget.client_epochs:,.0f}"
                for method, pair in by_method.items()
            )
            yield f"unequal budgets in {label(study, column)}, in client epochs: {budgets}"


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


def tuning(study: Study, boards: Sequence[Cells], selection: Selection, results: Results) -> Document | None:
    """Default against tuned in every column of a study; None where no method was tuned."""
    cells = _competing_cells(study, boards, selection)
    all_pairs = {column: _pairs(column_cells) for column, column_cells in cells.items()}
    pairs = {column: by_method for column, by_method in all_pairs.items() if by_method}
    if not pairs:
        return None
    pair_rows = [
        (column, method, pair) for column, by_method in pairs.items() for method, pair in by_method.items()
    ]
    pair_cells = [cell for _, _, pair in pair_rows for cell in dict.fromkeys((pair.default, pair.winner))]
    ranking = _ranking(study, pairs, cells)
    view, *views = [*tables(ranking), *pair_tables(ranking)] if ranking else [None]
    table = _table(study, pairs)
    note = ", with the same budget for every method of a column" * all(map(_is_fair, pairs.values()))
    return statistic(
        study,
        "tuned",
        "Default against tuned",
        "Every method in its default settings and in those that a search found by validation accuracy.",
        rows_of_cells(pair_cells, results),
        results,
        caption=(
            f"Tuned: what a search found by validation accuracy{note} (bench tune). 'Default won': no "
            "configuration that was tried was better, and the tuned cell is the default's.",
        ),
        default_searches=True,
        notes=tuple(_notes(study, pairs, cells)),
        views=(table, view) if view else (table,),
        details=tuple(filter(None, (_searches(study, pairs), _published_table(study, pairs), *views))),
        printed=tuple(table.blocks(4)),
        fine_print=(
            "Difference: tuned minus default in points over common seeds. p: paired t test, two-sided, with "
            "the unit of the ranking's tests and Holm's correction over the methods of a column. Better (>) "
            f"or worse (<): p below {ALPHA:g} and more than {REGION:g} points. Equivalent (=): the 95 % "
            f"interval lies within ±{REGION:g} points. Undecided (?): neither.",
            "Ranking, groups and tests of all pairs are those of the tuned cells, made as in "
            f"{study.name}_ranking.",
        ),
        records={"pairs": pd.DataFrame([_record(*part) for part in pair_rows])},
    )
