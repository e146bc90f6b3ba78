"""Boards: the rows of a study's tables on one data set, measured beside published."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bench.dataset import DATASETS
from bench.frames.graded_cells import Results
from bench.frames.ranking import Ranking
from bench.frames.stored_runs import DEFAULT, TUNED, parts_of
from bench.metric_names import ACCURACY
from bench.site.folder import board_page
from bench.statistics.summary import LEAST_RUNS
from bench.studies.study import Study

Row = Mapping[str, Any]
"""A row of a board by the names of its columns, None where a number is missing."""


def shown_cells(study: Study, results: Results) -> pd.DataFrame:
    """The cells of a study's main tables and of its experiments with runs, with columns of their places."""
    places = results.places.set_index("place")
    cells = results.cells[results.cells["study"] == study.name]
    cells = cells.join(places[["column_number", "inner", "line_object", "reads", "main"]], on="place")
    has_runs = (cells["runs"] > 0).groupby(cells["document"]).transform("any")
    return cells[cells["main"] | has_runs]


def board_rows(study: Study, cells: pd.DataFrame, ranking: Ranking | None, results: Results) -> pd.DataFrame:
    """The rows of a study's boards, from the shown cells: each beside its table's first comparison, read by
    its first measure of accuracy.

    Main tables come first, then experiments. In each table the rows are by column, point, settings (default,
    tuned, others) and measured mean, the best first; cells without numbers come last. New columns:

    usual           of a table that compares methods, in its usual settings
    title, heading  of the line, and of its table
    group           its group of ties
    runs            seed, spec_hash and state of each of its runs
    board, anchor   its page, and its name there
    where, study_title   where it stands, in words
    """
    documents = {document.name: document for document in study.experiments}
    has_runs = (cells["runs"] > 0).groupby([cells["document"], cells["column_number"]]).transform("any")
    is_accuracy = cells["measure_number"].map(lambda number: results.measures[number].metric == ACCURACY)
    rows = cells[(cells["main"] | has_runs) & is_accuracy & (cells["comparison_number"] == 0)]
    rows = rows[rows["position"] == rows.groupby("document")["position"].transform("min")]
    rows = rows.assign(
        usual=rows["usual"] & rows["document"].map(lambda name: documents[name].competes),
        title=rows["line_object"].map(lambda line: line.title).where(rows["main"], rows["line"]),
        heading=rows["table"].where(rows["main"], rows["document"].map(lambda name: documents[name].title)),
        document_number=rows["document"].map(list(documents).index),
        kind=rows["tuning"].map({DEFAULT: 0, TUNED: 1}).fillna(2),
        inner=rows["inner"].where(~rows["main"], 0),  # a main table has no points
        is_empty=rows["n"] == 0,
        loss=-rows["mean"],
    )
    order = ["document_number", "column_number", "inner", "kind", "is_empty", "loss"]
    rows = rows.sort_values(order, kind="stable", ignore_index=True)
    groups = ranking.cells.set_index("place")["group"].dropna().to_dict() if ranking else {}
    members = results.members[results.members["place"].isin(rows["place"])]
    runs = run_links(members, "place")
    pages = rows["dataset"].map(lambda dataset: board_page(study.name, dataset))
    numbers = (rows.groupby("dataset").cumcount() + 1).astype(str)
    return rows.assign(
        group=pd.array([groups.get(place) for place in rows["place"]], "Int64"),
        runs=rows["place"].map(lambda place: runs[place]),
        board=pages,
        anchor=pages.map(lambda page: Path(page).stem) + "-" + numbers,
        where=rows["dataset"].map(dataset_title) + " · " + rows["heading"],
        study_title=study.title,
    )


def with_pictures(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with ``axis_low`` and ``axis_high``, the ends of the axis that a task's rows share, and where
    numbers stand on it in percent of its width; what lies beyond an end stands at it.

    The axis spans the means that lie no further from their middle half than one and a half times its width:
    otherwise nobody would see the intervals of most.
    """
    rows = rows.assign(axis_low=0.0, axis_high=100.0)
    for _, task in rows.groupby(["heading", "scenario", "clients", "point"]):
        means = pd.concat([task["mean"], task["published_mean"]]).dropna()
        if len(means):
            lower, upper = means.quantile([0.25, 0.75])
            reach = 1.5 * max(upper - lower, 1.0)
            usual_means = means[means.between(lower - reach, upper + reach)]
            rows.loc[task.index, "axis_low"] = usual_means.min() - 1
            rows.loc[task.index, "axis_high"] = usual_means.max() + 1
    has_interval = rows["n"] >= LEAST_RUNS
    std = rows["published_std"].fillna(0.0)
    for name, numbers in {
        "at_mean": rows["mean"],
        "at_low": rows["low"].where(has_interval),
        "at_high": rows["high"].where(has_interval),
        "at_published": rows["published_mean"],
        "at_published_low": rows["published_mean"] - std,
        "at_published_high": rows["published_mean"] + std,
    }.items():
        share = (numbers - rows["axis_low"]) / (rows["axis_high"] - rows["axis_low"])
        rows[name] = (100 * share.clip(0, 1)).round(1)
    return rows


def run_links(runs: pd.DataFrame, by: str) -> dict[Any, list[Any]]:
    """Value of a column -> seed, spec_hash and state of each of its runs, by seed."""
    found = defaultdict(list)
    names = [by, "seed", "spec_hash", "state"]
    for run in runs.sort_values(names[1:])[names].itertuples(index=False):
        found[run[0]].append(run)
    return found


def rows_by(rows: Iterable[Row], *names: str) -> dict[Any, list[Row]]:
    """The rows by their value of a column, or their values of several."""
    found = defaultdict(list)
    for row in rows:
        values = tuple(row[name] for name in names)
        found[values if len(names) > 1 else values[0]].append(row)
    return found


def dataset_title(name: str) -> str:
    """A data set's own title, the same on every page; its name where it is not installed."""
    kind = DATASETS.all().get(name)
    return kind.title if kind else name


def coverage(rows: Sequence[Row]) -> tuple[int, int, list[tuple[str, int]]]:
    """Of a board's rows in main tables and usual settings: how many have numbers, how many there are, and
    what became of the others.
    """
    usual_rows = [row for row in rows if row["usual"]]
    missing = Counter(row["verdict"] for row in usual_rows if not row["n"])
    return len(usual_rows) - missing.total(), len(usual_rows), sorted(missing.items())


def guests(study: Study, results: Results, suite: Collection[str]) -> tuple[list[str], list[str]]:
    """Methods beyond the study's rows and the suite: those that compete, and those that do not yet.

    All their bundles must be verified, each by a run of the method that was made again: otherwise runs of
    other methods would have verified it.
    """
    competing = [experiment.name for experiment in study.experiments if experiment.competes]
    own_methods = {line.method for line in study.lines} | set(suite)
    cells = results.cells[(results.cells["study"] == study.name) & results.cells["document"].isin(competing)]
    members = results.members[results.members["place"].isin(cells["place"])]
    others = members[~members["method"].isin(own_methods)]
    waiting: set[str] = set()
    for (method, bundle), runs in parts_of(others, ["method", "bundle"]):
        is_verified = (runs["bundle_state"] == "verified").all() and runs["bundle_sampled"].any()
        if bundle and not is_verified:
            waiting.add(method)
    return sorted({*others["method"]} - waiting), sorted(waiting)
