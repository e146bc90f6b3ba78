"""Default against tuned: what a search with equal budgets is worth to every method."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from bench.frames.graded_cells import Results
from bench.frames.ranking import competitors, scores_of
from bench.frames.stored_runs import TUNED, WHERE, parts_of
from bench.report.captions import with_runs
from bench.report.document import Document
from bench.report.ranking import MARKS, VERDICTS
from bench.report.table import Table, Value, listing, measured, pivot
from bench.report.tables import places
from bench.statistics.paired import TESTS, compare
from bench.studies.settings import Column
from bench.studies.study import Study
from bench.studies.wording import gap, number

DEFAULT_WON = "default won"

PAIR = [*WHERE, "method"]

TEST = ["difference", "low", "high", "p", "p_holm", "verdict"]
"""What a pair has of its test."""

DIGITS = dict.fromkeys(["p", "p_holm", "validation_default", "validation_tuned"], ".6f")
DIGITS |= dict.fromkeys(["client_epochs", "client_epochs_granted"], ".1f")
"""Digits of columns of ``pairs.csv``."""

RECORD = [*PAIR, "n_default", "default", "n_tuned", "tuned", *TEST, "validation_default", "validation_tuned"]
RECORD += ["trials", "trials_granted", "client_epochs", "client_epochs_granted", "winner"]
"""Columns of ``pairs.csv``."""


def _searches(results: Results) -> pd.DataFrame:
    """A row a search by its number: whose it is, its validation accuracies, what it used and was granted, and
    what the winner has otherwise than the default.
    """
    rows = []
    for search in results.searches:
        record = search.record
        default, overrides = record.tuning.default, record.winner.overrides.items()
        rows.append(
            {
                "is_own": search.own,
                "validation_default": record.default_validation,
                "validation_tuned": record.winner.validation,
                "trials": record.used.trials,
                "trials_granted": record.budget.trials,
                "client_epochs": record.used.client_epochs,
                "client_epochs_granted": record.budget.client_epochs,
                "winner": " ".join(f"{key}={value}" for key, value in overrides if value != default[key]),
            }
        )
    return pd.DataFrame(rows)


def _board(study: Study, results: Results, cells: pd.DataFrame) -> pd.DataFrame:
    """The competitors' cells with numbers in default and tuned settings, with the number of the search; those
    of a column from the first main table that has it.

    A cell has a search where its runs are on the search's own clients.
    """
    documents = [experiment.name for experiment in study.experiments if experiment.main]
    is_first = (cells["comparison_number"] == 0) & (cells["position"] == 0)
    is_asked = cells["usual"] | (cells["tuning"] == TUNED)
    board = cells[is_first & is_asked & cells["document"].isin(documents)]
    columns = ["place", "line_object", "line_number", "column_number", "reads"]
    board = board.merge(results.places[columns], on="place")
    board["document_number"] = board["document"].map(documents.index)
    titles = competitors(study, board)
    board = board[board["method"].isin(titles) & (board["n"] > 0)]
    board = board.sort_values(["document_number", "column_number", "line_number"], ignore_index=True)
    board = board[board["document"] == board.groupby(WHERE)["document"].transform("first")]

    runs = results.members[results.members["is_done"] & results.members["search"].notna()]
    clients = [results.searches[number].record.clients for number in runs["search"]]
    is_elsewhere = (runs["partition_hash"] != clients).groupby(runs["place"]).any()
    search = runs.groupby("place")["search"].first()[~is_elsewhere]
    return board.assign(title=board["method"].map(titles), search=board["place"].map(search).astype("Int64"))


def _pairs(study: Study, results: Results, board: pd.DataFrame) -> pd.DataFrame:
    """A row a column and method that has both: the cells of the default (columns with ``_default``) and of
    the winner, with the test of the winner against it, Holm's correction over a column. Of two searches the
    user's own stands; where the default won both cells are the same.
    """
    winners = board[board["search"].notna()]
    if winners.empty:
        return winners
    winners = winners.join(_searches(results), on="search")
    own_first = winners.sort_values("is_own", ascending=False, kind="stable")
    winners = own_first.drop_duplicates(PAIR).sort_index()
    default = board.loc[board["usual"], [*PAIR, "place", "n", "mean", "std"]]
    pairs = winners.drop(columns=["low", "high", "difference", "verdict"])
    pairs = pairs.merge(default, on=PAIR, suffixes=("", "_default"))
    tests = [pd.DataFrame(columns=["place", *TESTS])]
    for _, column in pairs[pairs["place"] != pairs["place_default"]].groupby(WHERE):
        tuned = column.assign(method=column["method"] + " tuned")
        usual = column.assign(method=column["method"] + " default", place=column["place_default"])
        scores = scores_of(results, pd.concat([tuned, usual]), study.average)
        names = list(zip(tuned["method"], usual["method"], strict=True))
        column_tests = compare(scores, [*tuned["method"], *usual["method"]], names)
        tests.append(column_tests.assign(place=column["place"].tolist()))
    pairs = pairs.merge(pd.concat(tests[1:] or tests)[["place", *TEST]], on="place", how="left")
    return pairs.assign(verdict=pairs["verdict"].fillna(DEFAULT_WON))


def _table(study: Study, pairs: pd.DataFrame) -> Table:
    """Both numbers of every pair, their difference and its p value, methods by columns."""
    columns: dict[str, list[Value]] = {}
    for name, suffix in (("Default", "_default"), ("Tuned", "")):
        ranks = pairs.groupby(WHERE)[f"mean{suffix}"].transform(places)
        numbers = zip(pairs[f"mean{suffix}"], pairs[f"std{suffix}"], ranks, strict=True)
        columns[name] = [measured(mean, std, rank=rank) for mean, std, rank in numbers]
    gains = pairs["difference"].map(gap) + " " + pairs["verdict"].map(MARKS).fillna("")
    columns["Difference"] = list(map(Value, gains.where(pairs["verdict"] != DEFAULT_WON, DEFAULT_WON)))
    columns["p"] = [Value(number(value, ".2g")) for value in pairs["p_holm"]]
    where = pairs[WHERE].itertuples(index=False, name=None)
    pairs = pairs.assign(heading=[study.column_title(Column(*each)) for each in where])
    parts = [
        pairs.assign(order=order, name=name, cell=pd.Series(values, pairs.index, dtype=object))
        for order, (name, values) in enumerate(columns.items())
    ]
    body = pivot(pd.concat(parts), "Method", ["line_number", "title"], ["column_number", "order"])
    return Table("tuned", "Default and tuned", body)


def _notes(study: Study, board: pd.DataFrame, pairs: pd.DataFrame) -> Iterator[str]:
    """Competitors of which one of the two is missing, and searches that were granted unequal budgets."""
    for where, part in parts_of(pairs, WHERE):
        place = f"{study.title_of(where[0])} {where[2]}"
        others = board[(board[WHERE] == list(where)).all(axis=1) & ~board["method"].isin(part["method"])]
        if len(others):
            yield f"without runs in both settings in {place}: {', '.join(others['title'].unique())}"
        budgets = part["client_epochs_granted"]
        if budgets.nunique() > 1:
            yield f"unequal budgets in {place}: {budgets.min():,.0f} to {budgets.max():,.0f} client epochs"


def _record(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs as ``pairs.csv`` has them."""
    texts = {
        name: ["" if pd.isna(value) else format(value, form) for value in pairs[name]]
        for name, form in DIGITS.items()
    }
    record = pairs.assign(default=pairs["mean_default"], n_tuned=pairs["n"], tuned=pairs["mean"], **texts)
    return record[RECORD]


def tuned_document(study: Study, results: Results, cells: pd.DataFrame) -> Document | None:
    """Default against tuned in every column of a study; None where no method was tuned."""
    board = _board(study, results, cells)
    pairs = _pairs(study, results, board)
    if pairs.empty:
        return None
    record = _record(pairs)
    document = Document(
        study,
        "tuned",
        "Default against tuned",
        "Every method in its default settings and in those that a search found by validation accuracy.",
        caption=(
            "Tuned: what a search found by validation accuracy (bench tune). 'Default won': no "
            "configuration that was tried was better, and the tuned cell is the default's.",
        ),
        views=(_table(study, pairs),),
        cells=board[board["place"].isin([*pairs["place"], *pairs["place_default"]])],
        details=(listing("searches", "Pairs and their searches", record.set_index("method")),),
        notes=tuple(_notes(study, board, pairs)),
        fine_print=(
            "Difference: tuned minus default in points over common seeds. p: paired t test, two-sided, with "
            f"the unit of the ranking's tests and Holm's correction over the methods of a column. {VERDICTS}",
        ),
        records={"pairs": record},
    )
    return with_runs(document, results)
