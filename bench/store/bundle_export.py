"""Writing runs of a database as a bundle, in the place of an older one or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bench.errors import RequestError
from bench.replacement import replacing_folder
from bench.spec import sha256
from bench.store.bundle import Bundle
from bench.store.bundle_check import (
    ARRAY_BYTES,
    CURVE_SPLIT,
    FILES,
    MANIFEST,
    SCHEMAS,
    STATES,
    VERSIONS,
)
from bench.store.models import pack_array
from bench.store.store import Store

USUAL_ARRAY_BYTES = 4096
"""Largest NPY data of an array that a bundle keeps unless more is asked for."""


@dataclass(frozen=True)
class ExportInfo:
    """What an export wrote: where, how many runs, and the size of every file in bytes."""

    folder: Path
    runs: int
    files: dict[str, int]

    @property
    def bytes(self) -> int:
        """Size of all files together."""
        return sum(self.files.values())


def write_bundle(
    store: Store, runs: pd.DataFrame, folder: Path, largest_array: int = USUAL_ARRAY_BYTES
) -> ExportInfo:
    """Write the runs that have an outcome (``STATES``) as the bundle ``folder``.

    ``runs`` are rows of ``Store.runs``; arrays of more than ``largest_array`` bytes are left out. The
    same runs give the same bytes, whatever their ids. A bundle that stands there is replaced in one
    step, after the new one was read back whole.

    Raises:
        RequestError: ``largest_array`` is more than a reader takes; no run has an outcome; ``folder`` is
            a file or holds something else than a bundle; it cannot be written; the database holds what
            a bundle may not.
    """
    if not 0 <= largest_array <= ARRAY_BYTES:
        raise RequestError(f"largest array: expected 0 to {ARRAY_BYTES} bytes, got {largest_array}")
    folder = folder.resolve()
    runs = runs[runs["state"].isin(STATES)].sort_values("spec_hash", ignore_index=True)
    if runs.empty:
        raise RequestError(f"no run to export: expected some in state {', '.join(STATES)}")
    _check_target(folder)
    with replacing_folder(folder) as new_folder:
        _write(store, runs, new_folder, largest_array)
        Bundle(new_folder)  # what would be refused on reading is refused before it is in place
    return ExportInfo(
        folder, len(runs), {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    )


def _check_target(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise RequestError(f"--out {folder}: expected a folder, this is a file")
    names = {path.name for path in folder.iterdir()}
    other_names = sorted(names - FILES)
    if names and (other_names or MANIFEST not in names):
        content = f"holds {other_names[0]}" if other_names else f"has no {MANIFEST}"
        raise RequestError(
            f"--out {folder}: expected a new folder, an empty one or a bundle, this one {content}"
        )


def _write(store: Store, runs: pd.DataFrame, folder: Path, largest_array: int) -> None:
    environments = store.environments().set_index("id")
    partitions = store.partitions()
    rows = {int(run): row for row, run in enumerate(runs["id"])}
    tables = {
        "runs": runs.assign(environment=runs["environment_id"].map(environments["hash"])),
        "client_results": _client_results(store, rows),
        "curves": _curves(store, rows),
        "artefacts": _artefacts(store, rows, largest_array),
        "confusions": _confusions(store, rows),
    }
    entries = {}
    for name, frame in tables.items():
        path = folder / f"{name}.parquet"
        _write_table(path, frame, SCHEMAS[name])
        data = path.read_bytes()
        entries[path.name] = {"bytes": len(data), "rows": len(frame), "sha256": sha256(data)}
    run_environments = environments.loc[sorted(set(runs["environment_id"].dropna()))].sort_values("hash")
    run_partitions = partitions[partitions["hash"].isin(runs["partition_hash"])].sort_values("hash")
    manifest = {
        "format": "pfl-bench bundle",
        "version": max(VERSIONS),
        "files": entries,
        "environments": [
            {"hash": row["hash"], "description": json.loads(row["description"])}
            for row in run_environments.to_dict("records")
        ],
        "partitions": [
            row | {"provenance": json.loads(row["provenance"])} for row in run_partitions.to_dict("records")
        ],
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def _write_table(path: Path, frame: pd.DataFrame, schema: pa.Schema) -> None:
    try:
        columns = [
            pa.array(frame[field.name], field.type, from_pandas=field.nullable or None) for field in schema
        ]
        table = pa.Table.from_arrays(columns, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise RequestError(f"the database holds what no bundle may, {path.stem}: {error}") from None
    numbers = [field.name for field in schema if pa.types.is_integer(field.type)]
    numbers += [f"{field.name}.list.element" for field in schema if pa.types.is_list(field.type)]
    pq.write_table(
        table,
        path,
        compression="zstd",
        compression_level=19,
        use_dictionary=[field.name for field in schema if pa.types.is_string(field.type)],
        column_encoding=dict.fromkeys(numbers, "BYTE_STREAM_SPLIT"),
        store_schema=False,
    )


def _client_results(store: Store, rows: Mapping[int, int]) -> pd.DataFrame:
    """Rows of ``client_results``; the counts stand for the value wherever they give it exactly."""
    results = store.client_results(rows)
    results["run"] = results["run_id"].map(rows)
    value, samples = results["value"].to_numpy(np.float64), results["samples"].to_numpy(np.int64)
    correct: NDArray[np.float64] = np.rint(value * samples)
    is_exact = correct / samples == value
    results["correct"] = pd.array(np.where(is_exact, correct, 0).astype(np.int64), dtype="Int64")
    results.loc[~is_exact, "correct"] = pd.NA
    results["value"] = results["value"].where(~is_exact)
    return results.sort_values(["run", "stage", "split", "rule", "metric", "client"], ignore_index=True)


def _curves(store: Store, rows: Mapping[int, int]) -> pd.DataFrame:
    """Counts client by client: those of one client change little from row to row."""
    curves = [
        (rows[run], stage, CURVE_SPLIT, *counts.shape, np.ascontiguousarray(counts.T).ravel())
        for (run, stage), counts in store.curves(rows, CURVE_SPLIT).items()
    ]
    return pd.DataFrame(curves, columns=SCHEMAS["curves"].names).sort_values(["run", "stage"])


def _confusions(store: Store, rows: Mapping[int, int]) -> pd.DataFrame:
    counts = [
        (rows[run], stage, rule, *matrices.shape[:2], matrices.ravel())
        for (run, stage, rule), matrices in store.confusions(rows).items()
    ]
    return pd.DataFrame(counts, columns=SCHEMAS["confusions"].names).sort_values(["run", "stage", "rule"])


def _artefacts(store: Store, rows: Mapping[int, int], largest_array: int) -> pd.DataFrame:
    arrays = [
        (row, name, data)
        for run, row in rows.items()
        for name in store.artefact_names(run)
        if len(data := pack_array(store.artefact(run, name))) <= largest_array
    ]
    return pd.DataFrame(arrays, columns=SCHEMAS["artefacts"].names)
