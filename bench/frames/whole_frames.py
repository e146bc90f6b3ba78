"""The public frames with all their rows: runs as they are stored, and what studies say of them."""

from __future__ import annotations

import json

import pandas as pd

from bench.frames.values import check_kept, client_rows, curves_by_run
from bench.metric_names import ACCURACY, Metric
from bench.spec import RunSpec
from bench.store.tables import Tables
from bench.studies.source import OWN

PLACE = ["run", "spec_hash", "dataset", "scenario", "clients", "method", "seed"]
"""Columns by which the rows of two frames belong together."""


def whole_frame(name: str, source: Tables, metric: Metric = ACCURACY) -> pd.DataFrame:
    """A frame with all its rows; cells and clients by a metric. Only cells and ranks need torch.

    Raises:
        RequestError: there is no run, or none keeps what the metric needs.
    """
    if name in ("cells", "ranks"):
        return frames_of_studies(source, metric)[name]
    all_runs = source.runs().rename(columns={"id": "run"})
    if name == "runs":
        first_runs = all_runs.drop_duplicates("cell").set_index("cell")["spec"]
        settings = {
            cell: json.dumps(RunSpec.model_validate_json(text).settings(), sort_keys=True)
            for cell, text in first_runs.items()
        }
        results = client_rows(source, all_runs["run"].tolist(), ACCURACY, "trained", "test", "best_val")
        means = 100.0 * results.groupby("run")["value"].mean()
        origin = all_runs["origin"].replace({OWN: "own"}) if "origin" in all_runs else "own"
        return all_runs.assign(
            settings=all_runs["cell"].map(settings),
            test=all_runs["run"].map(means).astype(float),
            origin=origin,
        )
    done_runs = all_runs.loc[all_runs["state"] == "done", PLACE]
    texts = dict.fromkeys(done_runs.select_dtypes(["string", "object"]), "category")
    done_runs = done_runs.astype(texts).set_index("run", drop=False)
    rule = "last" if name == "curves" else None
    rows = client_rows(source, done_runs["run"].tolist(), metric, rule=rule)
    if metric != ACCURACY:
        check_kept(metric, len(done_runs), len(done_runs) - rows["run"].nunique())
    rows = rows.rename(columns={"value": metric})
    rows[metric] = 100.0 * rows[metric]
    if name == "curves":
        parts = [
            curves_by_run(source, rows[rows["split"] == split], split).assign(split=split)
            for split in ("test", "train", "val")
        ]
        rows = pd.concat(parts).rename(columns={"row": "evaluation", "clients": ACCURACY})
        rows = rows[["run", "stage", "split", "evaluation", ACCURACY]]
    rows = rows.astype(dict.fromkeys(rows.select_dtypes(["string", "object"]), "category"))
    run_columns = done_runs.loc[rows["run"]].reset_index(drop=True)
    return pd.concat([run_columns, rows.drop(columns="run").reset_index(drop=True)], axis=1)


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
