"""Default against tuned: what a search with equal budgets is worth to every method."""

from __future__ import annotations

import pandas as pd

from bench.frames.graded_cells import Results
from bench.frames.ranking import competitors
from bench.frames.stored_runs import TUNED, WHERE
from bench.report.captions import with_runs
from bench.report.document import Document
from bench.report.table import Table, Value, measured, pivot
from bench.report.tables import places
from bench.studies.settings import Column
from bench.studies.study import Study
from bench.studies.wording import signed

PAIR = [*WHERE, "method"]

SEARCH = ["trials", "trials_granted", "client_epochs", "client_epochs_granted", "winner"]
RECORD = [*PAIR, "n_default", "default", "n_tuned", "tuned", "difference", *SEARCH]
"""Columns of ``pairs.csv``."""


def _searches(results: Results) -> pd.DataFrame:
    """A row a search by its number: whose it is, its clients, what it used and was granted, and what the
    winner has otherwise than the default.
    """
    rows = []
    for search in results.searches:
        record = search.record
        default, overrides = record.tuning.default, record.winner.overrides.items()
        rows.append(
            {
                "is_own": search.own,
                "searched_clients": record.clients,
                "trials": record.used.trials,
                "trials_granted": record.budget.trials,
                "client_epochs": record.used.client_epochs,
                "client_epochs_granted": record.budget.client_epochs,
                "winner": " ".join(f"{key}={value}" for key, value in overrides if value != default[key]),
            }
        )
    return pd.DataFrame(rows)


def _pairs(study: Study, results: Results, cells: pd.DataFrame) -> pd.DataFrame:
    """A row a column and competitor with numbers in the default (columns with ``_default``) and the tuned
    setting of a main table. Of two searches the user's own stands; where the default won both are the same.

    A search counts where the runs are on its own clients: on others it may have seen the test items.
    """
    runs = results.members[results.members["is_done"] & results.members["search"].notna()]
    if runs.empty:
        return runs
    runs = runs.join(_searches(results), on="search")
    is_elsewhere = runs["partition_hash"] != runs["searched_clients"]
    runs = runs[~is_elsewhere.groupby(runs["place"]).transform("any")]
    searches = runs.groupby("place")[["is_own", *SEARCH]].first()

    documents = [experiment.name for experiment in study.experiments if experiment.main]
    board = cells[(cells["n"] > 0) & cells["document"].isin(documents)]
    columns = ["place", "line_object", "line_number", "column_number", "reads"]
    board = board.merge(results.places[columns], on="place")
    board["document_number"] = board["document"].map(documents.index)
    titles = competitors(study, board)
    board = board[board["method"].isin(titles)].assign(title=board["method"].map(titles))
    board = board.sort_values(["document_number", "column_number", "line_number"], ignore_index=True)
    tuned = board[board["usual"] | (board["tuning"] == TUNED)].join(searches, on="place", how="inner")
    tuned = tuned.sort_values("is_own", ascending=False, kind="stable").drop_duplicates(PAIR).sort_index()
    default = board.loc[board["usual"], [*PAIR, "document", "place", "n", "mean", "std"]]
    return tuned.merge(default, on=[*PAIR, "document"], suffixes=("", "_default"))


def _table(study: Study, pairs: pd.DataFrame) -> Table:
    """Both numbers of every pair and their difference, methods by columns."""
    where = pairs[WHERE].itertuples(index=False, name=None)
    pairs = pairs.assign(heading=[study.column_title(Column(*each)) for each in where])
    parts = []
    for name, suffix in (("Default", "_default"), ("Tuned", "")):
        ranks = pairs.groupby(WHERE)[f"mean{suffix}"].transform(places)
        numbers = zip(pairs[f"mean{suffix}"], pairs[f"std{suffix}"], ranks, strict=True)
        values = [measured(mean, std, rank=rank) for mean, std, rank in numbers]
        parts.append(pairs.assign(name=name, cell=pd.Series(values, pairs.index, dtype=object)))
    is_won = pairs["place"] == pairs["place_default"]
    gains = pairs["difference"].map(signed).mask(is_won, "default won")
    parts.append(pairs.assign(name="Difference", cell=gains.map(lambda text: Value(text))))
    rows = pd.concat([part.assign(order=order) for order, part in enumerate(parts)])
    body = pivot(rows, "Method", ["line_number", "title"], ["column_number", "order"])
    return Table("tuned", "Default and tuned", body)


def tuned_document(study: Study, results: Results, cells: pd.DataFrame) -> Document | None:
    """Default against tuned in every column of a study; None where no method was tuned."""
    first_cells = cells[(cells["comparison_number"] == 0) & (cells["position"] == 0)]
    pairs = _pairs(study, results, first_cells)
    if pairs.empty:
        return None
    pairs["difference"] = pairs["mean"] - pairs["mean_default"]
    places_of_pairs = pairs[["place_default", "place"]].to_numpy().ravel()
    record = pairs.assign(default=pairs["mean_default"], n_tuned=pairs["n"], tuned=pairs["mean"])
    document = Document(
        study,
        "tuned",
        "Default against tuned",
        "Every method in its default settings and in those that a search found by validation accuracy.",
        caption=(
            "Tuned: what a search found by validation accuracy (bench tune). 'Default won': no "
            "configuration that was tried was better, and the tuned cell is the default's. Differences are "
            "those of the means, in points; pairs.csv has the searches.",
        ),
        views=(_table(study, pairs),),
        cells=first_cells.set_index("place").loc[pd.unique(places_of_pairs)].reset_index(),
        records={"pairs": record[RECORD]},
    )
    return with_runs(document, results)
