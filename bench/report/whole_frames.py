"""The frames of ``bench.frames`` with all their rows, written by a process of its own.

``python -m bench.report.whole_frames NAME FILE '[URL or null, true for the database alone]'``
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd

from bench.errors import RequestError
from bench.report.collect import collect
from bench.report.frame import frame
from bench.report.shipped import opened
from bench.report.source import Source
from bench.report.study import STUDIES
from bench.spec import RunSpec

PLACE = ["run", "spec_hash", "dataset", "scenario", "clients", "method", "seed"]
"""Columns by which the rows of two frames belong together."""


def whole(name: str, source: Source) -> pd.DataFrame:
    """A frame with all its rows."""
    if name == "cells":
        found = collect(source, [study() for study in STUDIES.all().values()])
        parts = [
            frame(cells.own).assign(primary=[not cell.measure.other for cell in cells.own])
            for _, every in found.studies
            for cells in every
        ]
        return pd.concat(parts, ignore_index=True)
    every = source.runs().rename(columns={"id": "run"})
    if name == "runs":
        settings = [RunSpec.model_validate_json(text).settings() for text in every["spec"]]
        return every.assign(settings=[json.dumps(some, sort_keys=True) for some in settings])
    kept = every.loc[every["state"] == "done", PLACE]
    rows = source.client_results(kept["run"].tolist()).rename(columns={"run_id": "run", "value": "accuracy"})
    rows = rows[(rows["metric"] == "accuracy") & (rows["samples"] > 0)].drop(columns="metric")
    rows = rows.assign(accuracy=100.0 * rows["accuracy"])
    return kept.merge(rows if name == "clients" else _curves(kept["run"].tolist(), rows, source), on="run")


def _curves(runs: list[int], rows: pd.DataFrame, source: Source) -> pd.DataFrame:
    """Every curve of the runs, averaged over clients with samples."""
    parts = []
    for split in ("val", "test"):
        last = rows[(rows["split"] == split) & (rows["rule"] == "last")].sort_values(["run", "client"])
        samples = dict(iter(last.groupby(["run", "stage"])[["client", "samples"]]))
        for (run, stage), counts in source.curves(runs, split).items():
            if (run, stage) in samples:
                held = samples[run, stage]
                share = counts[:, held["client"].to_numpy()] / held["samples"].to_numpy()
                parts.append(
                    pd.DataFrame(
                        {
                            "run": run,
                            "stage": stage,
                            "split": split,
                            "evaluation": np.arange(1, len(share) + 1),
                            "accuracy": 100.0 * share.mean(axis=1),
                        }
                    )
                )
    empty = pd.DataFrame(columns=["run", "stage", "split", "evaluation", "accuracy"])
    return pd.concat(parts, ignore_index=True) if parts else empty


if __name__ == "__main__":
    try:
        with opened(*json.loads(sys.argv[3])) as results:
            whole(sys.argv[1], results).to_parquet(sys.argv[2], index=False)
    except RequestError as error:
        sys.exit(f"bench: {error}")
