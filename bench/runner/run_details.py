"""What people and programs see of stored runs and cells, and the commands that make them again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pandas as pd

from bench.errors import RequestError
from bench.frames.whole_frames import whole_frame
from bench.metric_names import ACCURACY
from bench.resolve import Overrides, resolve
from bench.spec import RunSpec
from bench.store import Store
from bench.store.tables import Tables

CELL = ["dataset", "scenario", "clients", "method"]


def command(spec: RunSpec, seeds: Sequence[int] = ()) -> str:
    """A ``bench sweep`` line with whatever differs from the defaults written out; with every setting where
    the method or the data set is not loaded here.

    ``seeds`` makes the same runs with these seeds, in place of the spec's own.
    """
    words = ["bench", "sweep", "-d", spec.dataset, "-s", spec.scenario, "-k", str(spec.clients)]
    words += ["-m", spec.method, "--seed", ",".join(map(str, seeds or (spec.seed,)))]
    settings = spec.settings()
    with suppress(RequestError):
        usual = resolve(spec.dataset, spec.scenario, spec.clients, spec.method, spec.seed).settings()
        settings = {key: value for key, value in settings.items() if value != usual.get(key)}
    for key, value in settings.items():
        # JSON writes numbers, truth values, lists and quoted texts as TOML does.
        words += ["--set", f"{key}={json.dumps(value, ensure_ascii=False)}"]
    return shlex.join(words)


def _records(frame: pd.DataFrame, **options: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(frame.to_json(orient="records", **options))
    return rows


def chosen_runs(
    store: Store, filters: Mapping[str, Any], states: Sequence[str] = (), settings: Overrides | None = None
) -> pd.DataFrame:
    """Rows of ``bench.runs``, oldest first, that all filters leave; ``settings`` are dictionaries."""
    runs = whole_frame("runs", store, filters=filters)
    runs["settings"] = runs["settings"].map(json.loads)
    for key, value in (settings or {}).items():
        runs = runs[[own.get(key) == value for own in runs["settings"]]]
    return runs[runs["state"].isin(states)] if states else runs


def run_list(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """Names, settings, state, seconds and test accuracy of some of ``chosen_runs``. ``apart`` says in which
    settings a run differs from others of its cell and seed.
    """
    runs = runs.assign(apart="")
    has_others = runs.duplicated([*CELL, "seed"], keep=False)
    for _, alike in runs[has_others].groupby([*CELL, "seed"]):
        settings = pd.DataFrame(alike["settings"].tolist(), index=alike.index).map(json.dumps)
        differing = settings.loc[:, settings.nunique() > 1]
        for index, values in differing.iterrows():
            runs.loc[index, "apart"] = " ".join(f"{key}={value}" for key, value in values.items())
    runs = runs.rename(columns={"run": "id", "seconds_total": "seconds"}).round({"seconds": 2, "test": 2})
    names = ["id", *CELL, "seed", "settings", "apart", "rounds", "state", "reason", "seconds", "test"]
    return _records(runs[names])


def run_detail(store: Store, run_id: int) -> dict[str, Any]:
    """Everything stored of a run but its arrays, and the command that makes it again. Accuracies are means
    over clients. An id of no run is a ``RequestError``.
    """
    runs = store.runs(id=run_id)
    if runs.empty:
        raise RequestError(f"no run {run_id} in {store.name}: 'bench runs list' prints the ids")
    (row,) = _records(runs, date_format="iso")
    (description,) = store.table("environments", id=row.pop("environment_id"))["description"]
    results = store.client_results([run_id], metric=ACCURACY)
    readings = results["stage"] + " " + results["split"] + " " + results["rule"]
    return row | {
        "spec": json.loads(row["spec"]),
        "environment": json.loads(description),
        "accuracy": results["value"].groupby(readings).mean().round(6).to_dict(),
        "command": command(RunSpec.model_validate_json(row["spec"])),
    }


def cell(source: Tables, name: str) -> list[dict[str, Any]]:
    """The runs of a cell (DATASET/SCENARIO/CLIENTS/METHOD) in a report's source, by the command that makes
    them, most runs first; runs that differ in more than their seed are made by different commands. A cell
    without runs is a ``RequestError``.
    """
    rows = whole_frame("runs", source).round({"test": 2})
    rows = rows[rows[CELL].astype(str).agg("/".join, axis=1) == name]
    if rows.empty:
        form = "a run's id or DATASET/SCENARIO/CLIENTS/METHOD such as cora/non-overlapping/10/fedavg"
        raise RequestError(f"no run of a cell '{name}': expected {form}")
    columns = ["seed", "state", "test", "origin", "device", "partition_hash", "spec_hash"]
    parts = []
    for _, runs in rows.sort_values("seed", kind="stable").groupby("cell"):
        spec = RunSpec.model_validate_json(runs["spec"].iloc[0])
        parts.append(
            {"command": command(spec, runs["seed"].unique().tolist()), "runs": _records(runs[columns])}
        )
    return sorted(parts, key=lambda part: (-len(part["runs"]), part["command"]))
