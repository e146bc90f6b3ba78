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
from bench.errors import RequestError
from bench.frames.whole_frames import whole_frame
from bench.metric_names import ACCURACY
from bench.registry import PLUGINS
from bench.resolve import Overrides, resolve
from bench.spec import RunSpec
from bench.store import Store
from bench.store.tables import Tables

CELL = ["dataset", "scenario", "clients", "method"]


def command(spec: RunSpec, seeds: Sequence[int] = ()) -> str:
    """A ``bench sweep`` line with whatever differs from the defaults written out.

    ``seeds`` makes the same runs with these seeds, in place of the spec's own. A method or data set of a file
    of the user's is loaded from ``FILE.py``; where it is not loaded here, every setting is written out.
    """
    words = ["bench", "sweep", "-d", spec.dataset, "-s", spec.scenario, "-k", str(spec.clients)]
    words += ["-m", spec.method, "--seed", ",".join(map(str, seeds or (spec.seed,)))]
    settings = spec.settings()
    try:
        usual = resolve(spec.dataset, spec.scenario, spec.clients, spec.method, spec.seed).settings()
        settings = {key: value for key, value in settings.items() if value != usual.get(key)}
        kinds = (METHODS.named(spec.method), DATASETS.named(spec.dataset))
        is_own = not all(kind.__module__.startswith("bench.") for kind in kinds)
    except RequestError:
        is_own = True
    for key, value in settings.items():
        # JSON writes numbers, truth values, lists and quoted texts as TOML does.
        words += ["--set", f"{key}={json.dumps(value, ensure_ascii=False)}"]
    line = shlex.join(words)
    if not is_own:
        return line
    return f"{PLUGINS}=FILE.py {line}  # FILE.py is the file that has the method or the data set"


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
    return _records(
        runs[["id", *CELL, "seed", "settings", "apart", "rounds", "state", "reason", "seconds", "test"]]
    )


def run_detail(store: Store, run_id: int) -> dict[str, Any]:
    """Everything stored of a run but its arrays, the log it left if it failed here, and the command that
    makes it again. Accuracies are mean, sample standard deviation (None for one client) and minimum over
    clients.

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
        "log": str(log) if log.exists() else None,
        "command": command(RunSpec.model_validate_json(row["spec"])),
    }


def cell(source: Tables, name: str) -> list[dict[str, Any]]:
    """The runs of a cell (DATASET/SCENARIO/CLIENTS/METHOD) in a report's source, by the command that makes
    them, largest part first; runs that differ in more than their seed are made by different commands.

    Raises:
        RequestError: the name is none, or there is no run of such a cell.
    """
    words = name.rsplit("/", 3)
    if len(words) < 4 or not words[2].isdecimal():
        form = "DATASET/SCENARIO/CLIENTS/METHOD such as cora/non-overlapping/10/fedavg"
        raise RequestError(f"expected a run's id or {form}, got '{name}'")
    filters = dict(zip(CELL, (words[0], words[1], int(words[2]), words[3]), strict=True))
    rows = whole_frame("runs", source, filters=filters)
    if rows.empty:
        raise RequestError(f"no run of the cell {name}: 'bench runs list' has those of your database")
    rows = rows.round({"test": 2}).sort_values("seed", kind="stable")
    columns = ["seed", "state", "test", "device", "partition_hash", "spec_hash"]
    parts: list[dict[str, Any]] = []
    for _, part in rows.groupby("cell"):
        seeds = part["seed"].unique().tolist()
        part_command = command(RunSpec.model_validate_json(part["spec"].iloc[0]), seeds)
        told = {"command": part_command, "seeds": seeds, "states": dict(Counter(part["state"]))}
        parts.append({**told, "origins": sorted(set(part["origin"])), "runs": _records(part[columns])})
    return sorted(parts, key=lambda part: (-len(part["seeds"]), part["command"]))
