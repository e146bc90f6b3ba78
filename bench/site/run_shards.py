"""Records of single runs, in files that the page of a run loads one at a time.

A file holds the runs whose spec hashes share two first characters: a call with deflated JSON in Base64.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.frames.stored_runs import rows_of
from bench.metric_names import ACCURACY
from bench.resolve import command
from bench.site.folder import dataset_page, method_page
from bench.spec import RunSpec
from bench.store.tables import Tables
from bench.studies.members import client_rows


def write(
    source: Tables, folder: Path, titles: Mapping[str, str], boards: Mapping[str, Sequence[Mapping[str, str]]]
) -> None:
    """Write every run of the source to ``runs-00.js``, ..., by its spec hash.

    ``titles`` maps a method's name to its title. ``boards`` maps a spec hash to the board rows that use the
    run: ``address`` and ``title`` of the row, ``stage`` and ``rule`` of its reading.
    """
    environments = source.table("environments")
    descriptions = dict(zip(environments["id"], map(json.loads, environments["description"]), strict=True))
    runs = source.runs().sort_values("spec_hash", ignore_index=True)
    # By first character: only a sixteenth of the results is in memory at a time.
    for _, block in runs.groupby(runs["spec_hash"].str[:1]):
        results = _results(source, block.loc[block["state"] == "done", "id"].tolist())
        stored = json.loads(block.to_json(orient="records", date_format="iso", date_unit="s"))
        shards: dict[str, dict[str, Any]] = defaultdict(dict)
        for run, record in zip(rows_of(block), stored, strict=True):
            shards[run.spec_hash[:2]][run.spec_hash] = record | {
                "spec": json.loads(run.spec),
                "environment": descriptions.get(run.environment_id),
                "command": command(RunSpec.model_validate_json(run.spec)),
                "title": titles[run.method],
                "page": method_page(run.method),
                "data": dataset_page(run.dataset),
                "boards": boards.get(run.spec_hash, ()),
                "results": results.get(run.id, ()),
            }
        for first, records in shards.items():
            text = json.dumps(records, allow_nan=False, separators=(",", ":"))
            blob = base64.b64encode(zlib.compress(text.encode(), 4)).decode()
            path = folder / f"runs-{first}.js"
            path.write_text(f'benchRuns("{blob}");\n', encoding="ascii", newline="\n")


def _results(source: Tables, runs: list[int]) -> dict[int, list[list[Any]]]:
    """Run -> rows: split, stage, rule, then accuracy in percent (mean over clients, mean over samples, sample
    standard deviation over clients, lowest client). None stands for a missing number.
    """
    rows = client_rows(source, runs, ACCURACY)
    rows = rows[rows["split"].isin(("test", "val"))]
    rows = rows.assign(value=100.0 * rows["value"], right=100.0 * rows["value"] * rows["samples"])
    by_reading = rows.groupby(["run", "split", "stage", "rule"], observed=True)
    numbers = by_reading.agg(
        mean=("value", "mean"), pooled=("right", "sum"), std=("value", "std"), lowest=("value", "min")
    )
    numbers["pooled"] /= by_reading["samples"].sum()
    found = defaultdict(list)
    for run, *reading in json.loads(numbers.round(4).reset_index().to_json(orient="values")):
        found[run].append(reading)
    return found
