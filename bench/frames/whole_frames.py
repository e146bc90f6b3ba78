"""The public frames of runs, clients and curves as they are stored, and of what studies say of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from bench.errors import unknown
from bench.metric_names import ACCURACY, Metric
from bench.spec import RunSpec
from bench.store.tables import Tables
from bench.studies.members import check_kept, client_rows, curves_by_run
from bench.studies.source import OWN

PLACE = ["run", "spec_hash", "dataset", "scenario", "clients", "method", "seed"]
"""Columns by which the rows of two frames belong together."""

READING = ("stage", "split", "rule")

MOST_NAMES = 100
"""Different texts that a column of names has at most."""


def whole_frame(
    name: str, source: Tables, metric: Metric = ACCURACY, filters: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """A frame with the rows that match all ``filters``; cells and clients by a metric. Only cells and ranks
    need torch.

    Raises:
        RequestError: there is no run, none keeps what the metric needs, or as ``matching``.
    """
    filters = filters or {}
    if name in ("cells", "ranks"):
        return matching(name, frames_of_studies(source, metric)[name], filters)
    all_runs = source.runs().rename(columns={"id": "run"})
    if name == "runs":
        return matching(name, _with_results(all_runs, source), filters)
    done_runs = all_runs.loc[all_runs["state"] == "done", PLACE]
    done_runs = matching(name, done_runs, {key: filters[key] for key in filters if key in PLACE})
    done_runs = _with_categories(done_runs).set_index("run", drop=False)
    runs = done_runs["run"].tolist()
    asked = {key: filters[key] for key in READING if isinstance(filters.get(key), str)}
    if name == "curves":
        asked["rule"] = "last"
    rows = client_rows(source, runs, metric, **asked)
    if rows.empty:  # then ``matching`` says which readings there are
        rows = client_rows(source, runs, metric, rule=asked["rule"] if name == "curves" else None)
    if metric != ACCURACY:
        check_kept(metric, len(runs), len(runs) - rows["run"].nunique())
    rows = rows.rename(columns={"value": metric})
    rows[metric] = 100.0 * rows[metric]
    if name == "curves":
        parts = [
            curves_by_run(source, rows[rows["split"] == split], split).assign(split=split)
            for split in ("test", "train", "val")
        ]
        rows = pd.concat(parts).rename(columns={"row": "evaluation", "clients": ACCURACY})
        rows = rows[["run", "stage", "split", "evaluation", ACCURACY]]
    run_columns = done_runs.loc[rows["run"]].reset_index(drop=True)
    rows = _with_categories(rows).drop(columns="run").reset_index(drop=True)
    return matching(name, pd.concat([run_columns, rows], axis=1), filters)


def _with_results(runs: pd.DataFrame, source: Tables) -> pd.DataFrame:
    """All runs with settings, test accuracy and origin."""
    first_runs = runs.drop_duplicates("cell").set_index("cell")["spec"]
    settings = {
        cell: json.dumps(RunSpec.model_validate_json(text).settings(), sort_keys=True)
        for cell, text in first_runs.items()
    }
    results = client_rows(source, runs["run"].tolist(), ACCURACY, "trained", "test", "best_val")
    means = 100.0 * results.groupby("run")["value"].mean()
    runs = runs.assign(
        settings=runs["cell"].map(settings),
        test=runs["run"].map(means).astype(float),
        origin=runs["origin"].replace({OWN: "own"}) if "origin" in runs else "own",
    )
    return runs.astype(dict.fromkeys(runs.select_dtypes(["object", "str"]), "str"))


def _with_categories(rows: pd.DataFrame) -> pd.DataFrame:
    """A frame of many rows and few different texts."""
    return rows.astype(dict.fromkeys(rows.select_dtypes(["string", "object"]), "category"))


def matching(name: str, frame: pd.DataFrame, filters: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of the frame of a name that match every filter: a column and a value, or several.

    Raises:
        RequestError: there is no such column, or no such name in a column of few names.
    """
    rows = frame
    for column, value in filters.items():
        if column not in frame:
            raise unknown(f"column of {name}:", column, frame.columns)
        is_several = isinstance(value, Iterable) and not isinstance(value, str | bytes)
        choices = list(value) if is_several else [value]
        known = set(frame[column].unique())
        for choice in choices:
            if isinstance(choice, str) and choice not in known and 0 < len(known) <= MOST_NAMES:
                raise unknown(f"{column} among the {name}:", choice, known)
        rows = rows[rows[column].isin(choices)]
    return rows.reset_index(drop=True)


def frames_of_studies(source: Tables, metric: Metric = ACCURACY) -> dict[str, pd.DataFrame]:
    """The frames of what studies say, all rows of each, by name; ranks are of accuracy."""
    from bench.frames.graded_cells import COLUMNS, PUBLIC, collect
    from bench.frames.ranking import RANKS, rank
    from bench.studies.study import STUDIES

    studies = [study() for study in STUDIES.all().values()]
    results = collect(source, studies, metric)
    rankings = [rank(study, results) for study in studies] if metric == ACCURACY else []
    tables = [pd.DataFrame(columns=list(RANKS)).astype(RANKS), *(each.ranks for each in rankings if each)]
    ranks = pd.concat(tables[1:] or tables, ignore_index=True)
    types = {name: COLUMNS[name] for name in PUBLIC}
    return {"cells": results.cells[PUBLIC].astype(types), "ranks": ranks[list(RANKS)].astype(RANKS)}
