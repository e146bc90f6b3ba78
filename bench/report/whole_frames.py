"""The frames of ``bench.frames`` with all their rows, written by a process of its own.

``python -m bench.report.whole_frames NAME FILE '[URL or null, true for the database alone, metric]'``
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd

from bench.errors import RequestError
from bench.metrics import ACCURACY, Metric
from bench.report.cells import Selection
from bench.report.collect import Collected, collect
from bench.report.frame import frame
from bench.report.metric import check_kept, client_values
from bench.report.ranking import TABLE, rank
from bench.report.shipped import opened
from bench.report.source import Source
from bench.report.study import STUDIES
from bench.spec import RunSpec

PLACE = ["run", "spec_hash", "dataset", "scenario", "clients", "method", "seed"]
"""Columns by which the rows of two frames belong together."""


def whole(name: str, source: Source, metric: Metric = ACCURACY) -> pd.DataFrame:
    """A frame with all its rows; of clients and cells by a metric."""
    if name in ("cells", "ranks"):
        found = collect(source, [study() for study in STUDIES.all().values()], metric)
        return _cells(found) if name == "cells" else _ranks(found)
    every = source.runs().rename(columns={"id": "run"})
    if name == "runs":
        settings = [RunSpec.model_validate_json(text).settings() for text in every["spec"]]
        return every.assign(settings=[json.dumps(some, sort_keys=True) for some in settings])
    kept = every.loc[every["state"] == "done", PLACE]
    texts = dict.fromkeys(kept.select_dtypes(["string", "object"]), "category")
    kept = kept.astype(texts).set_index("run", drop=False)
    rows = client_values(source, kept["run"].tolist(), metric)
    if metric != ACCURACY:
        check_kept(metric, len(kept), len(kept) - rows["run_id"].nunique())
    rows = rows.rename(columns={"run_id": "run", "value": metric})
    rows[metric] = 100.0 * rows[metric]
    if name == "curves":
        rows = _curves(kept["run"].tolist(), rows, source)
    rows = rows.astype(dict.fromkeys(rows.select_dtypes(["string", "object"]), "category"))
    whose = kept.loc[rows["run"]].reset_index(drop=True)
    return pd.concat([whose, rows.drop(columns="run").reset_index(drop=True)], axis=1)


def _cells(found: Collected) -> pd.DataFrame:
    """The cells of all studies; ``primary`` are those that verdicts rest on."""
    parts = [
        frame(cells.own).assign(primary=[not cell.measure.other for cell in cells.own])
        for _, every in found.studies
        for cells in every
    ]
    return pd.concat(parts, ignore_index=True)


def _ranks(found: Collected) -> pd.DataFrame:
    """The ranking of every study that has one."""
    parts = [pd.DataFrame(columns=["study", *TABLE]).astype({"study": "string", **TABLE})]
    for study, every in found.studies:
        competing = [cells for cells in every if cells.experiment.competes]
        ranking = rank(study, competing, found.results, Selection())
        if ranking:
            parts.append(ranking.table.assign(study=study.name))
    return pd.concat(parts[1:] or parts, ignore_index=True)[["study", *TABLE]].astype({"study": "string"})


def _curves(runs: list[int], rows: pd.DataFrame, source: Source) -> pd.DataFrame:
    """Every curve of the runs, averaged over clients with samples."""
    last = rows[rows["rule"] == "last"].sort_values(["split", "run", "stage", "client"], kind="stable")
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
            "stage": np.repeat(np.array(stage, object), lengths),
            "split": np.repeat(np.array(of_split, object), lengths),
            "evaluation": np.concatenate([np.arange(1, length + 1) for length in lengths] or [np.arange(0)]),
            "accuracy": np.concatenate(curves or [np.zeros(0)]),
        }
    )


if __name__ == "__main__":
    try:
        url, own, *asked = json.loads(sys.argv[3])
        with opened(url, own) as results:
            whole(sys.argv[1], results, *asked).to_parquet(sys.argv[2], index=False)
    except RequestError as error:
        sys.exit(f"bench: {error}")
