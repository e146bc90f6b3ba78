"""Single runs as records for the page of a run, in files that the page loads one at a time.

The runs are ordered by spec hash and cut into shards of about a megabyte; a page finds the shard of a
hash from the first hash of each. Results and curves are read a block of runs at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.leaderboard.script import call, script_json
from bench.report.source import Source
from bench.spec import RunSpec
from bench.sweep.command import command

BLOCK = 1000
"""Runs whose results are in memory at a time."""

SHARD = 900_000
"""Bytes after which a shard ends."""

POINTS = 200
"""Rows of a curve that a record keeps; of a longer one every k-th and the last."""

SPLITS = ("val", "test")


@dataclass(frozen=True)
class Shards:
    """How the runs are spread over files: the first spec hash of each, and the number of runs."""

    first: tuple[str, ...]
    runs: int


def write(source: Source, folder: Path, titles: Mapping[str, str], pages: Mapping[str, str]) -> Shards:
    """Write ``runs-0000.js``, ... with every run of the source.

    ``titles`` and ``pages`` are the methods' titles and the addresses of their pages, by name.
    """
    environments = _environments(source)
    first: list[str] = []
    shard: dict[str, dict[str, Any]] = {}
    size = number = 0
    for digest, record in _records(source, titles, pages):
        if not shard:
            first.append(digest)
        shard[digest] = record
        size += len(script_json(record))
        number += 1
        if size > SHARD:
            _write_shard(folder, len(first) - 1, shard, environments)
            shard, size = {}, 0
    if shard:
        _write_shard(folder, len(first) - 1, shard, environments)
    return Shards(tuple(first), number)


def _write_shard(
    folder: Path, number: int, shard: Mapping[str, dict[str, Any]], environments: Mapping[int, Any]
) -> None:
    """A call with the runs and the environments that they were made in."""
    used = sorted({run["environment"] for run in shard.values() if run["environment"] is not None})
    text = call("benchRuns", shard, {number: environments[number] for number in used})
    (folder / f"runs-{number:04d}.js").write_text(text, encoding="ascii", newline="\n")


def _environments(source: Source) -> dict[int, Any]:
    rows = source.environments()
    return {
        int(number): json.loads(text) for number, text in zip(rows["id"], rows["description"], strict=True)
    }


def _records(
    source: Source, titles: Mapping[str, str], pages: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    every = source.runs().sort_values("spec_hash", ignore_index=True)
    for start in range(0, len(every), BLOCK):
        block = every.iloc[start : start + BLOCK]
        ids = block.loc[block["state"] == "done", "id"].tolist()
        found = {split: source.client_results(ids, split=split) for split in SPLITS}
        summaries = _summaries(found)
        clients = _clients(found["test"])
        curves = _curves(source, ids, found)
        for run in block.to_dict("records"):
            record = _record({str(key): value for key, value in run.items()})
            record["title"] = titles.get(run["method"], run["method"])
            record["page"] = pages.get(run["method"], "")
            record["results"] = summaries.get(run["id"], [])
            record["accuracies"] = clients.get(run["id"], {})
            record["curves"] = curves.get(run["id"], {})
            yield run["spec_hash"], record


def _record(run: dict[str, Any]) -> dict[str, Any]:
    """All that is stored of a run but its results."""
    spec = json.loads(run["spec"])
    environment = run["environment_id"]
    return {
        "spec": spec,
        "command": _command(spec),
        "state": run["state"],
        "reason": run["reason"],
        "origin": run["origin"],
        "bundle": run["bundle"],
        "trust": run["bundle_state"],
        "partition": run["partition_hash"],
        "environment": None if environment is None or isnan(environment) else int(environment),
        "started": run["started"].isoformat(sep=" ", timespec="seconds"),
        "device": run["device"],
        "code": {name: run[name] for name in CODE},
        "costs": {name: run[name] for name in COSTS},
    }


CODE = ("code_version", "source_hash", "method_numerics", "engine_numerics")
COSTS = (
    "seconds_total",
    "seconds_client",
    "seconds_server",
    "seconds_evaluation",
    "peak_memory",
    "bytes_up",
    "bytes_down",
)


def _command(spec: dict[str, Any]) -> str:
    return _absent(spec["dataset"], spec["method"]) or command(RunSpec.model_validate(spec))


@cache
def _absent(dataset: str, method: str) -> str:
    """Why there is no command for runs of these names; empty where there is one."""
    try:
        DATASETS.named(dataset)
        METHODS.named(method)
    except RequestError as error:
        return f"not available here: {error}"
    return ""


def _percent(value: float | None) -> float | None:
    return None if value is None or isnan(value) else round(100 * value, 2)


def _summaries(found: Mapping[str, pd.DataFrame]) -> dict[int, list[list[Any]]]:
    """Run -> stage, split, rule, then in percent: mean over clients, over samples, std, lowest."""
    made: dict[int, list[list[Any]]] = {}
    for split, rows in found.items():
        rows = rows[rows["metric"] == "accuracy"]
        rows = rows.assign(correct=rows["value"] * rows["samples"])
        groups = rows.groupby(["run_id", "stage", "rule"], observed=True)
        table = groups.agg(
            mean=("value", "mean"),
            std=("value", "std"),
            low=("value", "min"),
            correct=("correct", "sum"),
            samples=("samples", "sum"),
        )
        pooled = table["correct"] / table["samples"]
        numbers = zip(
            *(column.tolist() for column in (table["mean"], pooled, table["std"], table["low"])), strict=True
        )
        for (run, stage, rule), values in zip(table.index.tolist(), numbers, strict=True):
            made.setdefault(run, []).append([stage, split, rule, *map(_percent, values)])
    return made


def _parts(rows: pd.DataFrame, keys: list[str]) -> Iterator[tuple[tuple[Any, ...], slice]]:
    """Each combination of keys in rows that are sorted by them, and where it stands."""
    if rows.empty:
        return
    change = np.zeros(len(rows), bool)
    for key in keys:
        values = rows[key].to_numpy()
        change[1:] |= values[1:] != values[:-1]
    starts = [0, *np.flatnonzero(change).tolist()]
    names = zip(*(rows[key].iloc[starts].tolist() for key in keys), strict=True)
    for name, start, stop in zip(names, starts, [*starts[1:], len(rows)], strict=True):
        yield name, slice(start, stop)


def _clients(rows: pd.DataFrame) -> dict[int, dict[str, Any]]:
    """Run -> clients, their test samples, and their test accuracies in percent by stage and rule."""
    made: dict[int, dict[str, Any]] = {}
    keys = ["run_id", "stage", "rule"]
    rows = rows[rows["metric"] == "accuracy"].sort_values([*keys, "client"], ignore_index=True)
    clients, samples = rows["client"].tolist(), rows["samples"].tolist()
    values = np.round(100 * rows["value"].to_numpy(np.float64), 2).tolist()
    for (run, stage, rule), where in _parts(rows, keys):
        empty = {"clients": clients[where], "samples": samples[where], "values": []}
        made.setdefault(run, empty)["values"].append([stage, rule, values[where]])
    return made


def _curves(
    source: Source, ids: list[int], found: Mapping[str, pd.DataFrame]
) -> dict[int, dict[str, dict[str, Any]]]:
    """Run -> stage -> split -> accuracy in hundredths of a percent, mean over clients, by row.

    ``every`` says which rows were kept, ``rows`` how many there are.
    """
    made: dict[int, dict[str, dict[str, Any]]] = {}
    for split, results in found.items():
        sizes = _sizes(results)
        for (run, stage), correct in sorted(source.curves(ids, split).items()):
            if run not in sizes:
                continue
            clients, samples = sizes[run]
            share = (correct[:, clients] / samples).mean(axis=1)
            every = -(-len(share) // POINTS)
            kept = np.append(share[: len(share) - 1 : every], share[-1:])
            curve = {
                "rows": len(share),
                "every": every,
                "values": np.rint(10_000 * kept).astype(int).tolist(),
            }
            made.setdefault(run, {}).setdefault(stage, {})[split] = curve
    return made


def _sizes(results: pd.DataFrame) -> dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Run -> its clients with samples, and how many samples each has."""
    last = results[(results["rule"] == "last") & (results["metric"] == "accuracy")]
    one = last.drop_duplicates(["run_id", "client"]).sort_values(["run_id", "client"], ignore_index=True)
    clients, samples = one["client"].to_numpy(np.int64), one["samples"].to_numpy(np.int64)
    return {run: (clients[where], samples[where]) for (run,), where in _parts(one, ["run_id"])}
