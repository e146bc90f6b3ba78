"""Default against tuned: what a search with equal budgets is worth to every method, and to their order."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from bench.frames.graded_cells import Results
from bench.frames.ranking import Ranking, competitors, ranking_of, scores_of
from bench.frames.stored_runs import TUNED, WHERE, parts_of, rows_of
from bench.report.captions import statistic
from bench.report.document import Document
from bench.report.ranking import MARKS, ranking_table
from bench.report.table import Table, Value, listing, pivot
from bench.report.tables import places
from bench.statistics.paired import ALPHA, REGION, compare
from bench.studies.settings import Column
from bench.studies.study import Study
from bench.studies.wording import gap, number

DEFAULT_WON = "default won"

PAIR = [*WHERE, "method"]


def searches_frame(results: Results) -> pd.DataFrame:
    """A row a search by its number: whose it is, its validation accuracies, what it used and was granted, and
    what the winner has otherwise than the default.
    """
    rows = []
    for search in results.searches:
        record = search.record
        default = record.tuning.default
        overrides = record.winner.overrides.items()
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
    """The competitors' cells with numbers in every setting, those of a column from the first main table that
    has it, with the number of the search.

    A cell has a search where its runs are on the search's own clients and have all else as in the usual
    setting.
    """
    documents = [experiment.name for experiment in study.experiments if experiment.main]
    is_first = (cells["comparison_number"] == 0) & (cells["position"] == 0)
    board = cells[is_first & cells["document"].isin(documents)]
    board = board.merge(
        results.places[["place", "line_object", "line_number", "column_number", "reads"]], on="place"
    )
    board["document_number"] = board["document"].map(documents.index)
    titles = competitors(study, board)
    board = board[board["method"].isin(titles) & (board["n"] > 0)]
    board = board.sort_values(["document_number", "column_number", "line_number"], ignore_index=True)
    board = board[board["document"] == board.groupby(WHERE)["document"].transform("first")]
    board = board.assign(title=board["method"].map(titles))

    runs = results.members[results.members["is_done"] & results.members["search"].notna()]
    clients = [results.searches[number].record.clients for number in runs["search"]]
    has_its_clients = runs["partition_hash"] == clients
    found = runs["search"].where(has_its_clients.groupby(runs["place"]).transform("all"))
    search = board["place"].map(found.groupby(runs["place"]).first()).astype("Int64")
    return board.assign(search=search.where(board["usual"] | (board["tuning"] == TUNED)))


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
    parts = [pd.DataFrame(columns=["place", "difference", "low", "high", "p", "p_holm", "verdict"])]
    for _, column in pairs[pairs["place"] != pairs["place_default"]].groupby(WHERE):
        tuned = column.assign(method=column["method"] + " tuned")
        usual = column.assign(method=column["method"] + " default", place=column["place_default"])
        methods = [*tuned["method"], *usual["method"]]
        rows = scores_of(results, pd.concat([tuned, usual]), study.average)
        tests = compare(rows, methods, list(zip(tuned["method"], usual["method"], strict=True)))
        parts.append(tests.assign(place=column["place"].tolist())[parts[0].columns])
    pairs = pairs.drop(columns=["difference", "verdict", "low", "high"])
    pairs = pairs.merge(pd.concat(parts[1:] or parts), on="place", how="left")
    return pairs.assign(verdict=pairs["verdict"].fillna(DEFAULT_WON))


def _ranking(study: Study, results: Results, board: pd.DataFrame, pairs: pd.DataFrame) -> Ranking | None:
    """The ranking of the winners; None where no column has two."""
    cells = pairs[pairs.groupby(WHERE)["method"].transform("size") > 1]
    if cells.empty:
        return None
    cells = cells.assign(task=cells.groupby(WHERE, sort=False).ngroup())
    titles = dict(zip(pairs["method"], pairs["title"], strict=True))
    columns = board.merge(pairs[WHERE].drop_duplicates(), on=WHERE)
    planned = columns.drop_duplicates(PAIR)["method"].value_counts()
    return ranking_of(study, results, cells, titles, planned)


def _table(study: Study, pairs: pd.DataFrame) -> Table:
    """Both numbers of every pair, their difference and its p value, methods by columns."""
    rows = []
    for _, column in pairs.groupby(WHERE, sort=False):
        dataset, scenario, clients = column[WHERE].iloc[0]
        heading = study.column_title(Column(dataset, scenario, int(clients)))
        best, best_default = places(column["mean"].to_dict()), places(column["mean_default"].to_dict())
        for row in rows_of(column):
            gain = "-" if row.verdict != DEFAULT_WON else DEFAULT_WON
            if not pd.isna(row.difference):
                gain = f"{gap(row.difference)} {MARKS[row.verdict]}"
            default_rank = best_default.get(row.Index, 0)
            cells = {
                "Default": Value(row.mean_default, row.std_default, rank=default_rank),
                "Tuned": Value(row.mean, row.std, rank=best.get(row.Index, 0)),
                "Difference": gain,
                "p": number(row.p_holm, ".2g"),
            }
            rows += [(row.title, heading, name, cell) for name, cell in cells.items()]
    long = pd.DataFrame(rows, columns=["title", "heading", "column", "cell"])
    body = pivot(long, "title", "Method", ["heading", "column"])
    return Table("tuned", "Default and tuned", body.loc[pairs["title"].unique()].fillna("-"))


def _searches(study: Study, pairs: pd.DataFrame) -> Table:
    """The search behind every pair: its budget and its winner."""
    rows = []
    for row in rows_of(pairs):
        place = study.column_title(Column(row.dataset, row.scenario, row.clients))
        texts = {
            "Trials": f"{row.trials} of {row.trials_granted}",
            "Client epochs": f"{row.client_epochs:,.0f} of {row.client_epochs_granted:,.0f}",
            "Validation, default": number(100 * row.validation_default),
            "Validation, winner": f"{100 * row.validation_tuned:.2f}",
            "Winner's settings": row.winner.replace(" ", ", ") or "the default's",
        }
        rows.append((f"{row.title}, {place}", texts))
    return listing("searches", "The searches", "Method", rows)


BUDGET = ["trials_granted", "client_epochs_granted"]


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
    digits = {"p": 6, "p_holm": 6, "validation_default": 6, "validation_tuned": 6}
    digits |= {"client_epochs": 1, "client_epochs_granted": 1}
    texts = {
        name: ["" if pd.isna(value) else f"{value:.{places}f}" for value in pairs[name]]
        for name, places in digits.items()
    }
    record = pairs.assign(default=pairs["mean_default"], n_tuned=pairs["n"], tuned=pairs["mean"], **texts)
    names = [*PAIR, "n_default", "default", "n_tuned", "tuned", "difference", "low", "high", "p", "p_holm"]
    names += ["verdict", "validation_default", "validation_tuned", "trials", "trials_granted"]
    return record[[*names, "client_epochs", "client_epochs_granted", "winner"]]


def tuned_document(study: Study, results: Results, cells: pd.DataFrame) -> Document | None:
    """Default against tuned in every column of a study; None where no method was tuned."""
    board = tuned_board(study, results, cells)
    pairs = default_and_tuned(study, results, board)
    if pairs.empty:
        return None
    ranking = _ranking(study, results, board, pairs)
    table = _table(study, pairs)
    is_fair = pairs.groupby(WHERE)[BUDGET].nunique().to_numpy().max() == 1
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
        notes=tuple(_notes(study, board, pairs)),
        views=(table, ranking_table(ranking)) if ranking else (table,),
        details=(_searches(study, pairs),),
        printed=tuple(table.blocks(4)),
        fine_print=(
            "Difference: tuned minus default in points over common seeds. p: paired t test, two-sided, with "
            "the unit of the ranking's tests and Holm's correction over the methods of a column. Better (>) "
            f"or worse (<): p below {ALPHA:g} and more than {REGION:g} points. Equivalent (=): the 95 % "
            f"interval lies within ±{REGION:g} points. Undecided (?): neither.",
            f"The ranking is that of the tuned cells, made as in {study.name}_ranking.",
        ),
        records={"pairs": record_of(pairs)},
    )
