"""Single runs as records for the page of a run, in files that the page loads one at a time.

A file holds the runs whose spec hashes begin alike: a call with JSON, deflated and in Base64, which needs no
escapes. Results and curves are read a block of runs at a time.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.frames.stored_runs import rows_of
from bench.metric_names import ACCURACY
from bench.site.folder import dataset_page, method_page
from bench.spec import RunSpec
from bench.store.tables import Tables
from bench.sweep.run_details import command

BLOCK = 4000
"""Runs whose results are in memory at a time."""

LEVEL = 4
"""Of compression: the next ones take twice and three times as long for files that are a tenth smaller."""

POINTS = 200
"""Rows of a curve that a record keeps; of a longer one every k-th and the last."""

SPLITS = ("val", "test")

Counts = dict[str, dict[str, Any]]
"""Split -> the clients with samples there, how many each has, and how many are right by stage and rule."""

STORED = [
    *("state", "reason", "origin", "bundle", "bundle_state", "bundle_sampled", "bundle_close"),
    *("partition_hash", "environment_id", "started", "device"),
    *("code_version", "source_hash", "method_numerics", "engine_numerics"),
    *("seconds_total", "seconds_client", "seconds_server", "seconds_evaluation"),
    *("peak_memory", "bytes_up", "bytes_down"),
]
"""Columns of ``bench.runs()`` that a record has."""


def write(
    source: Tables, folder: Path, titles: Mapping[str, str], boards: Mapping[str, Sequence[Mapping[str, str]]]
) -> int:
    """Write ``runs-00.js``, ... with every run of the source by its spec hash; the number of runs.

    ``titles`` are the methods' titles by name, ``boards`` by spec hash the rows that a run stands in: their
    ``address`` and ``title``, and the ``stage`` and ``rule`` that they are read at.
    """
    environments = source.environments()
    descriptions = dict(zip(environments["id"], map(json.loads, environments["description"]), strict=True))
    number = 0
    for first, shard in groupby(_records(source, titles, boards), lambda item: item[0][:2]):
        runs = dict(shard)
        number += len(runs)
        known = {run["environment_id"] for run in runs.values()} - {None}
        content = {"runs": runs, "environments": {name: descriptions[name] for name in sorted(known)}}
        text = json.dumps(content, allow_nan=False, separators=(",", ":"))
        blob = base64.b64encode(zlib.compress(text.encode(), LEVEL)).decode()
        (folder / f"runs-{first}.js").write_text(f'benchRuns("{blob}");\n', encoding="ascii", newline="\n")
    return number


def _records(
    source: Tables, titles: Mapping[str, str], boards: Mapping[str, Sequence[Mapping[str, str]]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Spec hash and record of every run, in the order of the hashes."""
    runs = source.runs().sort_values("spec_hash", ignore_index=True)
    commands: dict[str, str] = {}
    for start in range(0, len(runs), BLOCK):
        block = runs.iloc[start : start + BLOCK]
        ids = block.loc[block["state"] == "done", "id"].tolist()
        counts = _counts(source.client_results(ids, metric=ACCURACY))
        curves = _curves(source, ids, counts)
        stored = json.loads(block[STORED].to_json(orient="records", date_format="iso", date_unit="s"))
        for run, record in zip(rows_of(block), stored, strict=True):
            cell = run.cell or run.spec_hash
            if cell not in commands:
                commands[cell] = command(RunSpec.model_validate_json(run.spec), [-1])
            record |= {
                "spec": json.loads(run.spec),
                "command": commands[cell].replace("--seed -1", f"--seed {run.seed}"),
                "title": titles.get(run.method, run.method),
                "page": method_page(run.method) if run.method in titles else "",
                "data": dataset_page(run.dataset),
                "boards": boards.get(run.spec_hash, ()),
                "counts": counts.get(run.id, {}),
                "curves": curves.get(run.id, {}),
            }
            yield run.spec_hash, record


def _counts(results: pd.DataFrame) -> dict[int, Counts]:
    """Run -> what was tested in it, from ``Tables.client_results``."""
    keys = ["run_id", "split", "stage", "rule"]
    rows = results[results["split"].isin(SPLITS) & (results["samples"] > 0)].sort_values([*keys, "client"])
    clients, samples = rows["client"].tolist(), rows["samples"].tolist()
    right = np.rint(rows["value"] * rows["samples"]).astype(int).tolist()
    counts: dict[int, Counts] = {}
    groups = rows.groupby(keys, observed=True).size().reset_index(name="number")
    end = 0
    for run, split, stage, rule, number in groups.itertuples(index=False, name=None):
        start, end = end, end + number
        tested = {"clients": clients[start:end], "samples": samples[start:end], "right": []}
        known = counts.setdefault(run, {}).setdefault(split, tested)
        known["right"].append([stage, rule, right[start:end]])
    return counts


def _curves(source: Tables, ids: Sequence[int], counts: Mapping[int, Counts]) -> dict[int, dict[str, Any]]:
    """Run -> stage -> split -> its curve, the mean over clients with samples there."""
    curves: dict[int, dict[str, Any]] = {}
    for split in SPLITS:
        for (run, stage), correct in source.curves(ids, split).items():
            if split in counts.get(run, {}):
                tested = counts[run][split]
                right, samples = correct[:, tested["clients"]], np.array(tested["samples"])
                curves.setdefault(run, {}).setdefault(stage, {})[split] = thinned(right, samples)
    return curves


def thinned(correct: NDArray[np.int32], samples: NDArray[np.int64]) -> dict[str, Any]:
    """A curve from the counts ``[rows, clients]``: accuracy in hundredths of a percent, mean over clients, by
    row. ``every`` says which rows were kept, ``rows`` how many there are.
    """
    rows = len(correct)
    step = -(-rows // POINTS)
    kept = [*range(0, rows - 1, step), *range(rows)[-1:]]
    share = (correct[kept] / samples).mean(axis=1)
    return {"rows": rows, "every": step, "values": np.rint(10_000 * share).astype(int).tolist()}
