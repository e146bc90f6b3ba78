"""The frames of ``bench.frames`` that show runs as they are stored, with all their rows."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from bench.metric_names import ACCURACY, Metric
from bench.report.metric import check_kept, client_values
from bench.report.source import Source
from bench.spec import RunSpec

FRAMES = ("runs", "clients", "curves")

PLACE = ["run", "spec_hash", "dataset", "scenario", "clients", "method", "seed"]
"""Columns by which the rows of two frames belong together."""


def whole(name: str, source: Source, metric: Metric = ACCURACY) -> pd.DataFrame:
    """One of ``FRAMES`` with all its rows; clients by a metric.

    Raises:
        RequestError: no run keeps what the metric needs.
    """
    every = source.runs().rename(columns={"id": "run"})
    if name == "runs":
        settings = [RunSpec.model_validate_json(text).settings() for text in every["spec"]]
        return every.assign(settings=[json.dumps(some, sort_keys=True) for some in settings])
    kept = every.loc[every["state"] == "done", PLACE]
    texts = dict.fromkeys(kept.select_dtypes(["string", "object"]), "category")
    kept = kept.astype(texts).set_index("run", drop=False)
    rule = "last" if name == "curves" else None
    rows = client_values(source, kept["run"].tolist(), metric, rule=rule)
    if metric != ACCURACY:
        check_kept(metric, len(kept), len(kept) - rows["run_id"].nunique())
    rows = rows.rename(columns={"run_id": "run", "value": metric})
    rows[metric] = 100.0 * rows[metric]
    if name == "curves":
        rows = _curves(kept["run"].tolist(), rows, source)
    rows = rows.astype(dict.fromkeys(rows.select_dtypes(["string", "object"]), "category"))
    whose = kept.loc[rows["run"]].reset_index(drop=True)
    return pd.concat([whose, rows.drop(columns="run").reset_index(drop=True)], axis=1)


def _curves(runs: list[int], rows: pd.DataFrame, source: Source) -> pd.DataFrame:
    """Every curve of the runs, averaged over clients with samples."""
    last = rows.sort_values(["split", "run", "stage", "client"], kind="stable")
    parts = []
    for split, there in last.groupby("split", sort=False):
        clients, samples = there["client"].to_numpy(), there["samples"].to_numpy()
        stops = there.groupby(["run", "stage"]).size().cumsum()
        starts = stops.shift(fill_value=0)
        held = {key: slice(*span) for key, *span in zip(stops.index, starts, stops, strict=True)}
        for key, counts in source.curves(runs, str(split)).items():
            if key in held:
                span = held[key]
                parts.append((*key, split, 100.0 * (counts[:, clients[span]] / samples[span]).mean(axis=1)))
    run, stage, of_split, curves = zip(*parts, strict=True) if parts else ((), (), (), ())
    lengths = [len(curve) for curve in curves]
    return pd.DataFrame(
        {
            "run": np.repeat(np.array(run, np.int64), lengths),
            "stage": pd.Categorical(stage).repeat(lengths),
            "split": pd.Categorical(of_split).repeat(lengths),
            "evaluation": np.concatenate([np.arange(1, length + 1) for length in lengths] or [np.arange(0)]),
            "accuracy": np.concatenate(curves or [np.zeros(0)]),
        }
    )
