"""Default against tuned: what a search with equal budgets is worth to every method, and to their order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from bench.frames.graded_cells import Results
from bench.frames.ranking import Ranking, competitors, ranking_of, scores_of
from bench.frames.stored_runs import TUNED, WHERE
from bench.report.captions import statistic
from bench.report.document import Document
from bench.report.ranking import MARKS, ranking_table
from bench.report.table import Entry, Table, Value, listing, pivot
from bench.report.tables import places
from bench.statistics.paired import ALPHA, REGION, compare
from bench.studies.settings import Column
from bench.studies.study import Study
from bench.studies.wording import gap, label, number
from bench.tune.record import Record

DEFAULT_WON = "default won"

PAIR = [*WHERE, "method"]


def tuned_board(study: Study, results: Results, cells: pd.DataFrame) -> pd.DataFrame:
    """The competitors' cells with numbers in every setting, those of a column from the first main table that
    has it, with the columns search (number in ``results.searches``) and is_own (the search is the user's).

    A cell has a search where its runs are on the search's own clients and have all else as in the usual
    setting.
    """
    documents = [experiment.name for experiment in study.experiments if experiment.main]
    is_first = (cells["comparison_number"] == 0) & (cells["position"] == 0)
    board = cells[is_first & cells["document"].isin(documents)]
    places = results.places[["place", "line_object", "line_number", "column_number", "reads"]]
    board = board.merge(places, on="place")
    board["document_number"] = board["document"].map(documents.index)
    titles = competitors(study, board)
    board = board[board["method"].isin(titles) & (board["n"] > 0)]
    board = board.sort_values(["document_number", "column_number", "line_number"], ignore_index=True)
    first = board.groupby(WHERE)["document"].transform("first")
    board = board[board["document"] == first]
    runs = results.members[results.members["is_done"] & results.members["search"].notna()]
    records = [results.searches[search].record for search in runs["search"]]
    on_own_clients = runs["partition_hash"] == [record.clients for record in records]
    searches = runs["search"].where(on_own_clients.groupby(runs["place"]).transform("all"))
    board["search"] = board["place"].map(searches.groupby(runs["place"]).first()).astype("Int64")
    is_search = board["usual"] | (board["tuning"] == TUNED)
    board["search"] = board["search"].where(is_search)
    own = [not pd.isna(search) and results.searches[search].own for search in board["search"]]
    return board.assign(is_own=own, title=board["method"].map(titles))


def default_and_tuned(study: Study, results: Results, board: pd.DataFrame) -> pd.DataFrame:
    """A row a column and method that has both: the cells of the default (columns with ``_default``) and of
    the winner, with the test of the winner against it, Holm's correction over a column. Of two searches the
    user's own stands; where the default won both cells are the same.
    """
    default = board[board["usual"]]
    winners = board[board["search"].notna()].sort_values("is_own", ascending=False, kind="stable")
    winners = winners.drop_duplicates(PAIR).sort_index()
    numbers = ["place", "n", "mean", "std"]
    pairs = winners.merge(default[[*PAIR, *numbers, "stage", "rule"]], on=PAIR, suffixes=("", "_default"))
    tests = []
    for _, column in pairs[pairs["place"] != pairs["place_default"]].groupby(WHERE):
        sides = [
            column.assign(method=column["method"] + f" {kind}", place=column[place])
            for kind, place in (("tuned", "place"), ("default", "place_default"))
        ]
        methods = [side["method"].tolist() for side in sides]
        rows = scores_of(results, pd.concat(sides), study.average)
        found = compare(rows, [*methods[0], *methods[1]], list(zip(*methods, strict=True)))
        tests.append(found.assign(place=column["place"].tolist()))
    names = ["place", "difference", "low", "high", "p", "p_holm", "verdict"]
    known = pd.concat(tests)[names] if tests else pd.DataFrame(columns=names)
    own = ["difference", "verdict", "low", "high"]
    pairs = pairs.drop(columns=own).merge(known, on="place", how="left")
    return pairs.assign(verdict=pairs["verdict"].fillna(DEFAULT_WON))


def _ranking(study: Study, results: Results, board: pd.DataFrame, pairs: pd.DataFrame) -> Ranking | None:
    """The ranking of the winners; None where no column has two."""
    counts = pairs.groupby(WHERE)["method"].transform("size")
    cells = pairs[counts > 1]
    if cells.empty:
        return None
    cells = cells.assign(task=cells.groupby(WHERE, sort=False).ngroup())
    titles = dict(zip(pairs["method"], pairs["title"], strict=True))
    columns = board.merge(pairs[WHERE].drop_duplicates(), on=WHERE)
    planned = columns.drop_duplicates(PAIR)["method"].value_counts()
    return ranking_of(study, results, cells, titles, planned)


def _table(study: Study, pairs: pd.DataFrame) -> Table:
    heads = ("Default", "Tuned", "Difference", "p")
    entries: dict[tuple[str, Any], list[Value | Entry]] = {}
    groups: dict[Any, tuple[str, tuple[str, ...]]] = {}
    for _, column in pairs.groupby(WHERE, sort=False):
        where = column_of(column)
        groups[where] = (study.column_title(where), heads)
        best, best_default = (
            places(dict(zip(column["method"], column[mean], strict=True)))
            for mean in ("mean", "mean_default")
        )
        for row in column.to_dict("records"):
            method, verdict = row["method"], row["verdict"]
            text = verdict if verdict == DEFAULT_WON else "-"
            if not pd.isna(row["difference"]):
                text = f"{gap(row['difference'])} {MARKS[verdict]}"
            default_rank = best_default.get(method, 0)
            entries[method, where] = [
                Value(row["mean_default"], row["std_default"], rank=default_rank),
                Value(row["mean"], row["std"], rank=best.get(method, 0)),
                Entry(text),
                Entry(number(row["p_holm"], ".2g")),
            ]
    titles = dict(zip(pairs["method"], pairs["title"], strict=True))
    return pivot("tuned", "Default and tuned", "Method", titles, groups, entries, filler=Entry("-"))


def column_of(rows: pd.DataFrame) -> Column:
    """Where the first row stands."""
    dataset, scenario, clients = rows[WHERE].iloc[0]
    return Column(dataset, scenario, int(clients))


def _changes(record: Record) -> list[str]:
    """What the winner has otherwise than the default, such as ``client.dropout=0.0``."""
    default = record.tuning.default
    return [f"{key}={value}" for key, value in record.winner.overrides.items() if value != default[key]]


def _searches(study: Study, results: Results, pairs: pd.DataFrame) -> Table:
    rows = []
    for row in pairs.to_dict("records"):
        record = results.searches[row["search"]].record
        default = record.default_validation
        texts = {
            "Trials": f"{record.used.trials} of {record.budget.trials}",
            "Client epochs": f"{record.used.client_epochs:,.0f} of {record.budget.client_epochs:,.0f}",
            "Validation, default": number(default and 100 * default),
            "Validation, winner": f"{100 * record.winner.validation:.2f}",
            "Winner's settings": ", ".join(_changes(record)) or "the default's",
        }
        where = study.column_title(Column(*(row[name] for name in WHERE)))
        rows.append((f"{row['title']}, {where}", texts))
    return listing("searches", "The searches", "Method", rows)


def _notes(study: Study, results: Results, board: pd.DataFrame, pairs: pd.DataFrame) -> Iterator[str]:
    """Competitors of which one of the two is missing, and searches that were granted unequal budgets."""
    by_column = {label(study, column_of(part)): part for _, part in pairs.groupby(WHERE)}
    for place, part in sorted(by_column.items()):
        others = board.merge(part[WHERE].drop_duplicates(), on=WHERE)
        others = others[~others["method"].isin(part["method"])]
        for kind, is_other in (("tuned", others["usual"]), ("default", others["search"].notna())):
            if is_other.any():
                titles = ", ".join(others.loc[is_other, "title"].unique())
                yield f"without {kind} runs in {place}: {titles}"
        if not _is_fair(results, part):
            budgets = ", ".join(
                f"{title} {results.searches[search].record.budget.client_epochs:,.0f}"
                for title, search in zip(part["title"], part["search"], strict=True)
            )
            yield f"unequal budgets in {place}, in client epochs: {budgets}"


def _is_fair(results: Results, column: pd.DataFrame) -> bool:
    """Whether all searches of a column were granted the same."""
    return len({results.searches[search].record.budget for search in column["search"]}) == 1


def record_of(results: Results, pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs as ``pairs.csv`` has them."""
    records = [results.searches[search].record for search in pairs["search"]]
    shown = pairs[[*PAIR, "n_default", "mean_default", "n", "mean"]].rename(
        columns={"mean_default": "default", "n": "n_tuned", "mean": "tuned"}
    )
    return shown.assign(
        **{name: pairs[name] for name in ("difference", "low", "high")},
        **{name: [_digits(value, 6) for value in pairs[name]] for name in ("p", "p_holm")},
        verdict=pairs["verdict"],
        validation_default=[_digits(record.default_validation, 6) for record in records],
        validation_tuned=[_digits(record.winner.validation, 6) for record in records],
        trials=[record.used.trials for record in records],
        trials_granted=[record.budget.trials for record in records],
        client_epochs=[_digits(record.used.client_epochs, 1) for record in records],
        client_epochs_granted=[_digits(record.budget.client_epochs, 1) for record in records],
        winner=[" ".join(_changes(record)) for record in records],
    )


def _digits(value: float | None, digits: int) -> str:
    return "" if value is None or pd.isna(value) else f"{value:.{digits}f}"


def tuned_document(study: Study, results: Results, cells: pd.DataFrame) -> Document | None:
    """Default against tuned in every column of a study; None where no method was tuned."""
    board = tuned_board(study, results, cells)
    pairs = default_and_tuned(study, results, board)
    if pairs.empty:
        return None
    ranking = _ranking(study, results, board, pairs)
    table = _table(study, pairs)
    is_fair = all(_is_fair(results, column) for _, column in pairs.groupby(WHERE))
    note = ", with the same budget for every method of a column" if is_fair else ""
    return statistic(
        study,
        "tuned",
        "Default against tuned",
        "Every method in its default settings and in those that a search found by validation accuracy.",
        board[board["place"].isin([*pairs["place"], *pairs["place_default"]])],
        results,
        default_searches=True,
        caption=(
            f"Tuned: what a search found by validation accuracy{note} (bench tune). 'Default won': no "
            "configuration that was tried was better, and the tuned cell is the default's.",
        ),
        notes=tuple(_notes(study, results, board, pairs)),
        views=(table, ranking_table(ranking)) if ranking else (table,),
        details=(_searches(study, results, pairs),),
        printed=tuple(table.blocks(4)),
        fine_print=(
            "Difference: tuned minus default in points over common seeds. p: paired t test, two-sided, with "
            "the unit of the ranking's tests and Holm's correction over the methods of a column. Better (>) "
            f"or worse (<): p below {ALPHA:g} and more than {REGION:g} points. Equivalent (=): the 95 % "
            f"interval lies within ±{REGION:g} points. Undecided (?): neither.",
            f"The ranking is that of the tuned cells, made as in {study.name}_ranking.",
        ),
        records={"pairs": record_of(results, pairs)},
    )
