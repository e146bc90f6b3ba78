"""What people and programs see of stored runs and cells, and the commands that make them again."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from bench import paths
from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.errors import RequestError, unknown
from bench.metric_names import ACCURACY
from bench.registry import PLUGINS, plugin_files
from bench.resolve import Overrides, resolve
from bench.spec import RunSpec, difference
from bench.store import Store
from bench.store.tables import Tables, filter_known_runs

FORM = "DATASET/SCENARIO/CLIENTS/METHOD"


def command(spec: RunSpec, seeds: Sequence[int] = ()) -> str:
    """A ``bench sweep`` line with whatever differs from the defaults written out.

    ``seeds`` makes the same runs with these seeds, in place of the spec's own. A method or data set of a file
    of the user's is loaded from ``FILE.py``; where it is not loaded here, every setting is written out.
    """
    words = ["bench", "sweep", "-d", spec.dataset, "-s", spec.scenario, "-k", str(spec.clients)]
    words += ["-m", spec.method, "--seed", ",".join(map(str, seeds or (spec.seed,)))]
    settings = spec.settings()
    try:
        default = resolve(spec.dataset, spec.scenario, spec.clients, spec.method, spec.seed)
        settings = {key: settings[key] for key in difference(spec, default) if key in settings}
        origins = (METHODS.origins().get(spec.method), DATASETS.origins().get(spec.dataset))
        is_own = any(origin in plugin_files() for origin in origins)
    except RequestError:
        is_own = True
    for key, value in settings.items():
        # JSON writes numbers, truth values, lists and quoted texts as TOML does.
        words += ["--set", f"{key}={json.dumps(value, ensure_ascii=False)}"]
    line = shlex.join(words)
    if not is_own:
        return line
    return f"{PLUGINS}=FILE.py {line}  # FILE.py is the file that has the method or the data set"


def _tests(source: Tables, runs: pd.DataFrame) -> pd.Series:
    """Test accuracy of runs in percent: mean over clients of the trained model at the round of best
    validation accuracy; missing without one.
    """
    reading = {"stage": "trained", "split": "test", "rule": "best_val", "metric": ACCURACY}
    results = source.client_results(runs["id"], **reading)
    return runs["id"].map((100 * results.groupby("run_id")["value"].mean()).round(2))


def _records(frame: pd.DataFrame, **options: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(frame.to_json(orient="records", **options))
    return rows


def chosen_runs(
    store: Store, filters: Mapping[str, Any], states: Sequence[str] = (), settings: Overrides | None = None
) -> pd.DataFrame:
    """Stored runs, oldest first: those that all of the filters leave, as somebody typed them.

    Raises:
        RequestError: a filter that no stored run passes but for its state; a setting that none of them has.
    """
    runs = store.runs()
    if filters or settings:
        runs = filter_known_runs(runs, filters)
    for key, value in (settings or {}).items():
        values = [RunSpec.model_validate_json(spec).settings().get(key) for spec in runs["spec"]]
        runs = runs[[one == value for one in values]]
        if runs.empty:
            theirs = ", ".join(sorted({str(one) for one in values}))
            raise RequestError(f"no such run has {key} = {value}; theirs: {theirs}")
    return runs[runs["state"].isin(states)] if states else runs


def run_list(store: Store, runs: pd.DataFrame) -> list[dict[str, Any]]:
    """Names, state, seconds and test accuracy (percent; mean over clients of the trained model at the round
    of best validation accuracy; None without one) of these runs, and the settings in which one differs from
    others of its cell and seed.
    """
    runs = runs.assign(seconds=runs["seconds_total"].round(2), test=_tests(store, runs), settings="")
    for _, alike in runs.groupby(["dataset", "scenario", "clients", "method", "seed"], sort=False):
        if len(alike) > 1:
            settings = pd.DataFrame(
                [RunSpec.model_validate_json(spec).settings() for spec in alike["spec"]], index=alike.index
            )
            texts = settings.map(lambda value: json.dumps(value, ensure_ascii=False))
            apart = texts.loc[:, texts.nunique() > 1]
            runs.loc[alike.index, "settings"] = apart.apply(
                lambda row: " ".join(f"{key}={value}" for key, value in row.items()), axis=1
            )
    names = ["id", "dataset", "scenario", "clients", "method", "seed", "settings", "rounds", "state"]
    return _records(runs[[*names, "reason", "seconds", "test"]])


def run_detail(store: Store, run_id: int) -> dict[str, Any]:
    """Everything stored of a run but its arrays, the log it left if it failed here, and the command that
    makes it again.

    Accuracies are mean, sample standard deviation (None for one client) and minimum over clients.

    Raises:
        RequestError: no such run.
    """
    runs = store.runs(id=run_id)
    if runs.empty:
        raise RequestError(f"no run {run_id} in {store.name}: 'bench runs list' prints the ids")
    (row,) = _records(runs, date_format="iso")
    (description,) = store.table("environments", id=row.pop("environment_id"))["description"]
    results = store.client_results([run_id], metric=ACCURACY)
    readings = results["stage"] + " " + results["split"] + " " + results["rule"]
    clients = results["value"].groupby(readings).agg(["mean", "std", "min"]).round(6)
    log = paths.home() / "logs" / f"{row['spec_hash']}.log"
    return row | {
        "spec": json.loads(row["spec"]),
        "environment": json.loads(description),
        "accuracy": json.loads(clients.to_json(orient="index")),
        "arrays": store.table("artefacts", run_id=run_id)["name"].tolist(),
        "log": str(log) if log.exists() else None,
        "command": command(RunSpec.model_validate_json(row["spec"])),
    }


def cell(source: Tables, name: str) -> list[dict[str, Any]]:
    """The runs of the cell ``name`` (``FORM``) in a report's source, by the command that makes them, largest
    part first; runs that differ in more than their seed are made by different commands.

    Raises:
        RequestError: the name is none, or there is no run of such a cell.
    """
    if name.count("/") != 3:
        example = "cora/non-overlapping/10/fedavg"
        raise RequestError(f"expected a run's id or {FORM} such as {example}, got '{name}'")
    runs = source.runs()
    names = runs[["dataset", "scenario", "clients", "method"]].astype(str).agg("/".join, axis=1)
    rows = runs[names == name]
    if rows.empty:
        raise unknown("cell", name, set(names))
    rows = rows.assign(test=_tests(source, rows)).sort_values("seed", kind="stable")
    columns = ["seed", "state", "test", "device", "partition_hash", "spec_hash"]
    parts: list[dict[str, Any]] = []
    for _, part in rows.groupby("cell"):
        seeds = part["seed"].unique().tolist()
        parts.append(
            {
                "command": command(RunSpec.model_validate_json(part["spec"].iloc[0]), seeds),
                "seeds": seeds,
                "states": dict(Counter(part["state"])),
                "origins": sorted(set(part["origin"])),
                "runs": _records(part[columns]),
            }
        )
    return sorted(parts, key=lambda part: (-len(part["seeds"]), part["command"]))
