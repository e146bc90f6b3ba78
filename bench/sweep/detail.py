"""Stored runs as plain values, for people and programs that look at single ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isnan
from typing import Any

from bench import paths
from bench.errors import RequestError
from bench.spec import RunSpec
from bench.store import Store
from bench.sweep.command import command


def run_list(store: Store, filters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Names, state, seconds and test accuracy (percent; mean over clients of the trained model at
    the round of best validation accuracy; None without one) of the runs that the filters leave.
    """
    runs = store.runs(**filters)
    results = store.client_results(runs["id"], stage="trained", split="test", rule="best_val")
    means = (100 * results.groupby("run_id")["value"].mean()).round(2).to_dict()
    names = ["id", "dataset", "scenario", "clients", "method", "seed", "rounds", "state", "reason"]
    rows: list[dict[str, Any]] = json.loads(runs[names].to_json(orient="records"))
    for row, seconds in zip(rows, runs["seconds_total"], strict=True):
        row["seconds"] = round(float(seconds), 2)
        row["test"] = means.get(row["id"])
    return rows


def run_detail(store: Store, run_id: int) -> dict[str, Any]:
    """Everything stored of a run but its arrays, the log it left if it failed here, and the command that
    makes it again.

    Accuracies are mean, sample standard deviation (None for one client) and minimum over clients.

    Raises:
        RequestError: no such run.
    """
    runs = store.runs(id=run_id)
    if runs.empty:
        raise RequestError(f"no run {run_id} in {store.url}: 'bench runs list' prints the ids")
    row: dict[str, Any] = json.loads(runs.to_json(orient="records", date_format="iso"))[0]
    row["spec"] = json.loads(row["spec"])
    row["environment"] = _environment(store, row.pop("environment_id"))
    results = store.client_results([run_id])
    readings = results["stage"] + " " + results["split"] + " " + results["rule"]
    clients = results["value"].groupby(readings).agg(["mean", "std", "min"])
    row["accuracy"] = {
        str(reading): {name: None if isnan(value) else round(value, 6) for name, value in values.items()}
        for reading, values in clients.to_dict(orient="index").items()
    }
    row["arrays"] = store.artefact_names(run_id)
    log = paths.home() / "logs" / f"{row['spec_hash']}.log"
    row["log"] = str(log) if log.exists() else None
    try:
        row["command"] = command(RunSpec.model_validate(row["spec"]))
    except RequestError as error:
        row["command"] = f"not available here: {error}"
    return row


def _environment(store: Store, environment_id: int) -> dict[str, Any]:
    environments = store.environments().set_index("id")["description"]
    found: dict[str, Any] = json.loads(environments.loc[environment_id])
    return found
