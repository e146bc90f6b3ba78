"""Single runs as records for the page of a run, in files that the page loads one at a time.

The runs are ordered by spec hash and cut into shards; a page finds the shard of a hash from the first hash
of each. A shard is a call with JSON, deflated and in Base64, which needs no escapes. Results and curves are
read a block of runs at a time.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.leaderboard.folder import dataset_page, method_page
from bench.metric_names import ACCURACY
from bench.spec import RunSpec
from bench.studies.source import Source
from bench.sweep.run_details import command

BLOCK = 1000
"""Runs whose results are in memory at a time."""

SHARD = 2_000_000
"""Bytes of JSON after which a shard ends."""

LEVEL = 4
"""Of compression: the next ones take twice and three times as long for files that are a tenth smaller."""

POINTS = 200
"""Rows of a curve that a record keeps; of a longer one every k-th and the last."""

SPLITS = ("val", "test")

_json = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode

Tests = Mapping[tuple[int, str], tuple[str, str, str]]
"""Run and split -> the clients with samples there, how many each has, as numbers with commas between, and how
many are right by stage and rule, as JSON.
"""

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


def write(
    source: Source, folder: Path, titles: Mapping[str, str], boards: Mapping[str, Sequence[Mapping[str, str]]]
) -> tuple[list[str], int]:
    """Write ``runs-0000.js``, ... with every run of the source: the first spec hash of each, and the number
    of runs. ``titles`` are the methods' titles by name, ``boards`` by spec hash the rows that a run stands
    in: their ``address`` and ``title``, and the ``stage`` and ``rule`` that they are read at.
    """
    rows = source.environments()
    environments = dict(zip(map(str, rows["id"]), rows["description"], strict=True))
    first_hashes: list[str] = []
    shard: dict[str, str] = {}
    size = number = 0
    for digest, record in _records(source, titles, boards):
        if not shard:
            first_hashes.append(digest)
        shard[digest] = record
        size += len(shard[digest])
        number += 1
        if size > SHARD:
            _write_shard(folder, len(first_hashes) - 1, shard, environments)
            shard, size = {}, 0
    if shard:
        _write_shard(folder, len(first_hashes) - 1, shard, environments)
    return first_hashes, number


def _object(texts: Mapping[str, str]) -> str:
    """A JSON object of values that are JSON already."""
    return "{" + ",".join(f"{_json(key)}:{text}" for key, text in texts.items()) + "}"


def _write_shard(
    folder: Path, number: int, shard: Mapping[str, str], environments: Mapping[str, str]
) -> None:
    """A call with the runs and the environments of the source."""
    text = _object({"runs": _object(shard), "environments": _object(environments)})
    blob = base64.b64encode(zlib.compress(text.encode(), LEVEL)).decode()
    (folder / f"runs-{number:04d}.js").write_text(f'benchRuns("{blob}");\n', encoding="ascii", newline="\n")


def _records(
    source: Source, titles: Mapping[str, str], boards: Mapping[str, Sequence[Mapping[str, str]]]
) -> Iterator[tuple[str, str]]:
    """Spec hash and record, as JSON, of every run."""
    runs = source.runs().sort_values("spec_hash", ignore_index=True)
    commands: dict[str, str] = {}
    for start in range(0, len(runs), BLOCK):
        block = runs.iloc[start : start + BLOCK]
        ids = block.loc[block["state"] == "done", "id"].tolist()
        tests = _tested_clients(source.client_results(ids, metric=ACCURACY))
        curves = _curves(source, ids, tests)
        for run in block.to_dict("records"):
            number, method, cell = run["id"], run["method"], run["cell"] or run["spec_hash"]
            if cell not in commands:
                commands[cell] = command(RunSpec.model_validate_json(run["spec"]), [-1])
            record = {
                **_record(run),
                "command": commands[cell].replace("--seed -1", f"--seed {run['seed']}"),
                "title": titles.get(method, method),
                "page": method_page(method) if method in titles else "",
                "data": dataset_page(run["dataset"]),
                "boards": boards.get(run["spec_hash"], ()),
            }
            counts = _object(
                {
                    split: '{{"clients":[{}],"samples":[{}],"right":[{}]}}'.format(*tests[number, split])
                    for split in SPLITS
                    if (number, split) in tests
                }
            )
            run_curves = _object({stage: _object(texts) for stage, texts in curves.get(number, {}).items()})
            # The spec is canonical JSON, as are counts and curves; one call writes all else.
            yield (
                run["spec_hash"],
                f'{{"spec":{run["spec"]},{_json(record)[1:-1]},"counts":{counts},"curves":{run_curves}}}',
            )


def _record(run: Mapping[Any, Any]) -> dict[str, Any]:
    """What is stored of a run beside its spec and its results."""
    environment = run["environment_id"]
    return {
        **{name: run[name] for name in ("state", "reason", "origin", "bundle")},
        "trust": run["bundle_state"],
        "sampled": bool(run["bundle_sampled"]),
        "close": bool(run["bundle_close"]),
        "partition": run["partition_hash"],
        "environment": None if pd.isna(environment) else int(environment),
        "started": run["started"].isoformat(sep=" ", timespec="seconds"),
        "device": run["device"],
        "code": {name: run[name] for name in CODE},
        "costs": {name: run[name] for name in COSTS},
    }


def _tested_clients(results: pd.DataFrame) -> Tests:
    """What was tested in some runs, from ``Source.client_results``."""
    keys = ["run_id", "split", "stage", "rule"]
    rows = results[results["split"].isin(SPLITS) & (results["samples"] > 0)].sort_values([*keys, "client"])
    right = np.rint(rows["value"] * rows["samples"]).astype(np.int64)
    texts = rows.assign(right=right)[["client", "samples", "right"]].astype(str)
    counts = texts.groupby([rows[key] for key in keys], observed=True).agg(",".join).reset_index()
    readings = counts["stage"].map(_json) + "," + counts["rule"].map(_json)
    parts = (
        counts.assign(right="[" + readings + ",[" + counts["right"] + "]]")
        .groupby(["run_id", "split"])
        .agg({"client": "first", "samples": "first", "right": ",".join})
    )
    return dict(zip(parts.index, parts.itertuples(index=False, name=None), strict=True))


def _curves(source: Source, ids: Sequence[int], tests: Tests) -> dict[int, dict[str, dict[str, str]]]:
    """Run -> stage -> split -> its curve as JSON. Runs of the same clients are averaged at once."""
    curves: dict[int, dict[str, dict[str, str]]] = {}
    for split in SPLITS:
        groups: dict[tuple[str, str, int], list[tuple[int, str, NDArray[np.int32]]]] = {}
        for (run, stage), correct in source.curves(ids, split).items():
            if (run, split) in tests:
                clients, samples, _ = tests[run, split]
                groups.setdefault((clients, samples, len(correct)), []).append((run, stage, correct))
                curves.setdefault(run, {}).setdefault(stage, {})
        for (clients, samples, _), group in groups.items():
            correct = np.stack([counts for _, _, counts in group])
            columns, sizes = (np.array(text.split(","), np.int64) for text in (clients, samples))
            for (run, stage, _), curve in zip(group, thinned(correct[:, :, columns], sizes), strict=True):
                curves[run][stage][split] = _json(curve)
    return curves


def thinned(correct: NDArray[np.int32], samples: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """The curves of some runs with as many rows, ``[runs, rows, clients]``: accuracy in hundredths of a
    percent, mean over clients, by row. ``every`` says which rows were kept, ``rows`` how many there are.
    """
    rows = correct.shape[1]
    step = -(-rows // POINTS)
    row_numbers = [*range(0, rows - 1, step), *([rows - 1] if rows else [])]
    share = (correct[:, row_numbers] / samples).mean(axis=2)
    for values in np.rint(10_000 * share).astype(int).tolist():
        yield {"rows": rows, "every": step, "values": values}
