"""Default against tuned: what a search with equal budgets is worth to every method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from bench.frames.graded_cells import Results
from bench.frames.ranking import competitors, scores_of
from bench.frames.stored_runs import TUNED, WHERE, parts_of
from bench.report.captions import statistic
from bench.report.document import Document
from bench.report.ranking import MARKS
from bench.report.table import Cell, Table, listing, measured, pivot
from bench.report.tables import places
from bench.statistics.paired import ALPHA, REGION, TESTS, compare
from bench.studies.settings import Column
from bench.studies.study import Study
from bench.studies.wording import gap, number

DEFAULT_WON = "default won"

PAIR = [*WHERE, "method"]

BUDGET = ["trials_granted", "client_epochs_granted"]

TEST = ["difference", "low", "high", "p", "p_holm", "verdict"]
"""What a pair has of its test."""

DIGITS = {
    "p": ".6f",
    "p_holm": ".6f",
    "validation_default": ".6f",
    "validation_tuned": ".6f",
    "client_epochs": ".1f",
    "client_epochs_granted": ".1f",
}
"""Digits of columns of ``pairs.csv``."""


def searches_frame(results: Results) -> pd.DataFrame:
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


def tuned_board(study: Study, results: Results, cells: pd.DataFrame) -> pd.DataFrame:
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


def default_and_tuned(study: Study, results: Results, board: pd.DataFrame) -> pd.DataFrame:
    """A row a column and method that has both: the cells of the default (columns with ``_default``) and of
    the winner, with the test of the winner against it, Holm's correction over a column. Of two searches the
    user's own stands; where the default won both cells are the same.
    """
    winners = board[board["search"].notna()]
    if winners.empty:
        return winners
    winners = winners.join(searches_frame(results), on="search")
    own_first = winners.sort_values("is_own", ascending=False, kind="stable")
    winners = own_first.drop_duplicates(PAIR).sort_index()
    default = board.loc[board["usual"], [*PAIR, "place", "n", "mean", "std"]]
    pairs = winners.merge(default, on=PAIR, suffixes=("", "_default"))
    parts = [pd.DataFrame(columns=["place", *TESTS])]
    for _, column in pairs[pairs["place"] != pairs["place_default"]].groupby(WHERE):
        tuned = column.assign(method=column["method"] + " tuned")
        usual = column.assign(method=column["method"] + " default", place=column["place_default"])
        methods = [*tuned["method"], *usual["method"]]
        rows = scores_of(results, pd.concat([tuned, usual]), study.average)
        tests = compare(rows, methods, list(zip(tuned["method"], usual["method"], strict=True)))
        parts.append(tests.assign(place=column["place"].tolist()))
    tests = pd.concat(parts[1:] or parts)[["place", *TEST]]
    pairs = pairs.drop(columns=[name for name in TEST if name in pairs]).merge(tests, on="place", how="left")
    return pairs.assign(verdict=pairs["verdict"].fillna(DEFAULT_WON))


def _table(study: Study, pairs: pd.DataFrame) -> Table:
    """Both numbers of every pair, their difference and its p value, methods by columns."""
    parts: list[tuple[str, Sequence[Cell]]] = []
    for name, suffix in (("Default", "_default"), ("Tuned", "")):
        ranks = pairs.groupby(WHERE)[f"mean{suffix}"].transform(places)
        numbers = zip(pairs[f"mean{suffix}"], pairs[f"std{suffix}"], ranks, strict=True)
        parts.append((name, [measured(mean, std, rank=rank) for mean, std, rank in numbers]))
    gains = pairs["difference"].map(gap) + " " + pairs["verdict"].map(MARKS).fillna("")
    parts.append(("Difference", gains.where(pairs["verdict"] != DEFAULT_WON, DEFAULT_WON).tolist()))
    parts.append(("p", [number(value, ".2g") for value in pairs["p_holm"]]))
    columns = pairs[WHERE].itertuples(index=False, name=None)
    pairs = pairs.assign(heading=[study.column_title(Column(*where)) for where in columns])
    shown = [
        pairs.assign(column=name, cell=pd.Series(cells, pairs.index, dtype=object)) for name, cells in parts
    ]
    body = pivot(pd.concat(shown).sort_index(kind="stable"), "title", "Method", ["heading", "column"])
    return Table("tuned", "Default and tuned", body.fillna("-"))


def _notes(study: Study, board: pd.DataFrame, pairs: pd.DataFrame) -> Iterator[str]:
    """Competitors of which one of the two is missing, and searches that were granted unequal budgets."""
    for where, part in parts_of(pairs, WHERE):
        place = f"{study.title_of(where[0])} {where[2]}"
        others = board[(board[WHERE] == list(where)).all(axis=1) & ~board["method"].isin(part["method"])]
        for kind, is_other in (("tuned", others["usual"]), ("default", others["search"].notna())):
            if is_other.any():
                titles = ", ".join(others.loc[is_other, "title"].unique())
                yield f"without {kind} runs in {place}: {titles}"
        if part[BUDGET].nunique().max() > 1:
            grants = zip(part["title"], part["client_epochs_granted"], strict=True)
            budgets = ", ".join(f"{title} {epochs:,.0f}" for title, epochs in grants)
            yield f"unequal budgets in {place}, in client epochs: {budgets}"


def record_of(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs as ``pairs.csv`` has them."""
    texts = {
        name: ["" if pd.isna(value) else format(value, form) for value in pairs[name]]
        for name, form in DIGITS.items()
    }
    record = pairs.assign(default=pairs["mean_default"], n_tuned=pairs["n"], tuned=pairs["mean"], **texts)
    names = [*PAIR, "n_default", "default", "n_tuned", "tuned", *TEST, "validation_default"]
    names += ["validation_tuned", "trials", "trials_granted", "client_epochs", "client_epochs_granted"]
    return record[[*names, "winner"]]


def tuned_document(study: Study, results: Results, cells: pd.DataFrame) -> Document | None:
    """Default against tuned in every column of a study; None where no method was tuned."""
    board = tuned_board(study, results, cells)
    pairs = default_and_tuned(study, results, board)
    if pairs.empty:
        return None
    record = record_of(pairs)
    return statistic(
        study,
        "tuned",
        "Default against tuned",
        "Every method in its default settings and in those that a search found by validation accuracy.",
        board[board["place"].isin([*pairs["place"], *pairs["place_default"]])],
        results,
        caption=(
            "Tuned: what a search found by validation accuracy (bench tune). 'Default won': no "
            "configuration that was tried was better, and the tuned cell is the default's.",
        ),
        notes=tuple(_notes(study, board, pairs)),
        views=(_table(study, pairs),),
        details=(listing("searches", "Pairs and their searches", record.set_index("method")),),
        fine_print=(
            "Difference: tuned minus default in points over common seeds. p: paired t test, two-sided, with "
            "the unit of the ranking's tests and Holm's correction over the methods of a column. Better (>) "
            f"or worse (<): p below {ALPHA:g} and more than {REGION:g} points. Equivalent (=): the 95 % "
            f"interval lies within ±{REGION:g} points. Undecided (?): neither.",
        ),
        records={"pairs": record},
    )
