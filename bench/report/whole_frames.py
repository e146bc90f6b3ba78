"""The frames of ``bench.frames`` with all their rows: runs as they are stored, and what studies say of them.

Cells and ranks need torch (the settings of methods), so that ``bench.frames`` has this as its own process:
``python -m bench.report.whole_frames NAME FILE [URL or null, true for the database alone, metric]``.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bench.errors import RequestError
from bench.metric_names import ACCURACY, Metric
from bench.report.metric import check_kept, client_values
from bench.report.shipped import opened
from bench.report.source import Source
from bench.spec import RunSpec

if TYPE_CHECKING:
    from bench.report.collect import Collected

PLACE = ["run", "spec_hash", "dataset", "scenario", "clients", "method", "seed"]
"""Columns by which the rows of two frames belong together."""


def whole(name: str, source: Source, metric: Metric = ACCURACY) -> pd.DataFrame:
    """A frame with all its rows; cells and clients by a metric.

    Raises:
        RequestError: no run keeps what the metric needs.
    """
    if name in OF_STUDIES:
        return OF_STUDIES[name](_collected(source, metric))
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


def _collected(source: Source, metric: Metric = ACCURACY) -> Collected:
    from bench.report.collect import collect  # torch
    from bench.report.study import STUDIES

    return collect(source, [study() for study in STUDIES.all().values()], metric)


def _cells(found: Collected) -> pd.DataFrame:
    """The cells of all studies; ``primary`` are those that verdicts rest on."""
    from bench.report.frame import frame

    parts = [
        frame(cells.own).assign(primary=[not cell.measure.other for cell in cells.own])
        for _, every in found.studies
        for cells in every
    ]
    return pd.concat(parts, ignore_index=True)


def _ranks(found: Collected) -> pd.DataFrame:
    """The ranking of every study that has one."""
    from bench.report.cells import Selection
    from bench.report.ranking import TABLE, rank

    parts = [pd.DataFrame(columns=["study", *TABLE]).astype({"study": "string", **TABLE})]
    for study, every in found.studies:
        competing = [cells for cells in every if cells.experiment.competes]
        ranking = rank(study, competing, found.results, Selection())
        if ranking:
            parts.append(ranking.table.assign(study=study.name))
    return pd.concat(parts[1:] or parts, ignore_index=True)[["study", *TABLE]].astype({"study": "string"})


OF_STUDIES = {"cells": _cells, "ranks": _ranks}
"""Frames of what studies say of the runs."""


def of_studies(source: Source) -> dict[str, pd.DataFrame]:
    """The frames of what studies say, all rows of each, by name."""
    found = _collected(source)
    return {name: frame_of(found) for name, frame_of in OF_STUDIES.items()}


if __name__ == "__main__":
    try:
        url, own, metric = json.loads(sys.argv[3])
        with opened(url, own) as results:
            whole(sys.argv[1], results, metric).to_parquet(sys.argv[2], index=False)
    except RequestError as error:
        sys.exit(f"bench: {error}")
