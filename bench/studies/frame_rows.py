"""The frames of ``bench.frames`` with all their rows: runs as they are stored, and what studies say of them.

Cells and ranks need torch (the settings of methods), so that ``bench.frames`` has this as its own process:
``python -m bench.studies.frame_rows NAME FILE [URL or null, true for the database alone, metric]``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import numpy as np
import pandas as pd

from bench.errors import RequestError
from bench.metric_names import ACCURACY, Metric
from bench.spec import RunSpec
from bench.studies.cells import Cells, Selection
from bench.studies.collect import collect
from bench.studies.frame import frame
from bench.studies.metric import check_kept, client_values
from bench.studies.ranking import TABLE, rank
from bench.studies.shipped import opened_results
from bench.studies.source import OWN, Source
from bench.studies.study import STUDIES, Study

PLACE = ["run", "spec_hash", "dataset", "scenario", "clients", "method", "seed"]
"""Columns by which the rows of two frames belong together."""


def whole_frame(name: str, source: Source, metric: Metric = ACCURACY) -> pd.DataFrame:
    """A frame with all its rows; cells and clients by a metric.

    Raises:
        RequestError: no run keeps what the metric needs.
    """
    if name in OF_STUDIES:
        return OF_STUDIES[name](_collect(source, metric))
    all_runs = source.runs().rename(columns={"id": "run"})
    if name == "runs":
        settings = [RunSpec.model_validate_json(text).settings() for text in all_runs["spec"]]
        results = client_values(source, all_runs["run"].tolist(), ACCURACY, "trained", "test", "best_val")
        means = 100.0 * results.groupby("run_id")["value"].mean()
        origin = all_runs["origin"].replace({OWN: "own"}) if "origin" in all_runs else "own"
        return all_runs.assign(
            settings=[json.dumps(row, sort_keys=True) for row in settings],
            test=all_runs["run"].map(means).astype(float),
            origin=origin,
        )
    done_runs = all_runs.loc[all_runs["state"] == "done", PLACE]
    texts = dict.fromkeys(done_runs.select_dtypes(["string", "object"]), "category")
    done_runs = done_runs.astype(texts).set_index("run", drop=False)
    rule = "last" if name == "curves" else None
    rows = client_values(source, done_runs["run"].tolist(), metric, rule=rule)
    if metric != ACCURACY:
        check_kept(metric, len(done_runs), len(done_runs) - rows["run_id"].nunique())
    rows = rows.rename(columns={"run_id": "run", "value": metric})
    rows[metric] = 100.0 * rows[metric]
    if name == "curves":
        rows = _curves(done_runs["run"].tolist(), rows, source)
    rows = rows.astype(dict.fromkeys(rows.select_dtypes(["string", "object"]), "category"))
    run_columns = done_runs.loc[rows["run"]].reset_index(drop=True)
    return pd.concat([run_columns, rows.drop(columns="run").reset_index(drop=True)], axis=1)


def _curves(runs: list[int], rows: pd.DataFrame, source: Source) -> pd.DataFrame:
    """Every curve of the runs, averaged over clients with samples."""
    sorted_rows = rows.sort_values(["split", "run", "stage", "client"], kind="stable")
    parts = []
    for split, split_rows in sorted_rows.groupby("split", sort=False):
        clients, samples = split_rows["client"].to_numpy(), split_rows["samples"].to_numpy()
        stops = split_rows.groupby(["run", "stage"]).size().cumsum()
        starts = stops.shift(fill_value=0)
        spans = {key: slice(*span) for key, *span in zip(stops.index, starts, stops, strict=True)}
        for key, counts in source.curves(runs, str(split)).items():
            if key in spans:
                span = spans[key]
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


StudyCells = Sequence[tuple[Study, Sequence[Cells]]]
"""Each study with its experiments."""


def _collect(source: Source, metric: Metric = ACCURACY) -> StudyCells:
    return collect(source, [study() for study in STUDIES.all().values()], metric)[1]


def _cells(studies: StudyCells) -> pd.DataFrame:
    """The cells of all studies; ``primary`` are those that verdicts rest on."""
    parts = [
        frame(cells).assign(primary=[not cell.measure.is_extra for cell in cells])
        for _, study_cells in studies
        for cells in study_cells
    ]
    return pd.concat(parts, ignore_index=True)


def _ranks(studies: StudyCells) -> pd.DataFrame:
    """The ranking of every study that has one."""
    parts = [pd.DataFrame(columns=["study", *TABLE]).astype({"study": "string", **TABLE})]
    for study, study_cells in studies:
        competing_cells = [cells for cells in study_cells if cells.experiment.competes]
        ranking = rank(study, competing_cells, Selection())
        if ranking:
            parts.append(ranking.table.assign(study=study.name))
    return pd.concat(parts[1:] or parts, ignore_index=True)[["study", *TABLE]].astype({"study": "string"})


OF_STUDIES = {"cells": _cells, "ranks": _ranks}
"""Frames of what studies say of the runs."""


def of_studies(source: Source) -> dict[str, pd.DataFrame]:
    """The frames of what studies say, all rows of each, by name."""
    studies = _collect(source)
    return {name: frame_of(studies) for name, frame_of in OF_STUDIES.items()}


if __name__ == "__main__":
    try:
        url, own_alone, metric = json.loads(sys.argv[3])
        with opened_results(url, own_alone) as results:
            whole_frame(sys.argv[1], results, metric).to_parquet(sys.argv[2], index=False)
    except RequestError as error:
        sys.exit(f"bench: {error}")
