"""The frames of ``bench.frames`` with all their rows. For cells and ranks, which need torch (the settings of
methods), this is a process of its own.

``python -m bench.report.whole_frames NAME FILE [URL or null, true for the database alone, metric]``; without
arguments it writes those of the suite's own results into ``results/frames`` (``make frames``).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bench import frames
from bench.errors import RequestError
from bench.metric_names import ACCURACY, Metric
from bench.report import run_frames
from bench.report.cells import Selection
from bench.report.collect import Collected, collect
from bench.report.frame import frame
from bench.report.ranking import TABLE, rank
from bench.report.shipped import opened
from bench.report.source import Source
from bench.report.study import STUDIES


def whole(name: str, source: Source, metric: Metric = ACCURACY) -> pd.DataFrame:
    """A frame with all its rows, by a metric."""
    if name in OF_STUDIES:
        return OF_STUDIES[name](_collected(source, metric))
    return run_frames.whole(name, source, metric)


def _collected(source: Source, metric: Metric = ACCURACY) -> Collected:
    return collect(source, [study() for study in STUDIES.all().values()], metric)


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


OF_STUDIES = {"cells": _cells, "ranks": _ranks}
"""Frames of what studies say of the runs."""


def ship(source: Source, folder: Path) -> None:
    """Write the frames that come with the suite, and into them what they are made from."""
    found = _collected(source)
    for name in frames.SHIPPED:
        table = pa.Table.from_pandas(OF_STUDIES[name](found), preserve_index=False)
        made_from = {**table.schema.metadata, frames.MADE_FROM: frames.results_digest()}
        pq.write_table(
            table.replace_schema_metadata(made_from), folder / f"{name}.parquet", compression="zstd"
        )


if __name__ == "__main__":
    try:
        url, own, metric = json.loads(sys.argv[3]) if sys.argv[1:] else (None, False, ACCURACY)
        with opened(url, own) as results:
            if sys.argv[1:]:
                whole(sys.argv[1], results, metric).to_parquet(sys.argv[2], index=False)
            else:
                ship(results, frames.SHIPPED_FOLDER)
    except RequestError as error:
        sys.exit(f"bench: {error}")
