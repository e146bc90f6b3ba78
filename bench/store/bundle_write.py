"""Writing a bundle from a result database."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bench.errors import RequestError
from bench.spec import STAGES
from bench.store.arrays import pack_array
from bench.store.bundle import Bundle
from bench.store.bundle_format import (
    ARRAY_BYTES,
    CURVE_SPLIT,
    FORMAT,
    MANIFEST,
    SCHEMAS,
    STATES,
    USUAL_ARRAY_BYTES,
    VERSION,
)
from bench.store.store import Store


@dataclass(frozen=True)
class Written:
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
) -> Written:
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
    _check_folder(folder)
    try:
        with _replacing(folder) as fresh:
            _write(store, runs, fresh, largest_array)
            Bundle(fresh)  # what would be refused on reading is refused before it is in place
    except OSError as error:
        raise RequestError(f"--out {folder}: cannot write there: {error.strerror or error}") from None
    return Written(folder, len(runs), {path.name: path.stat().st_size for path in sorted(folder.iterdir())})


def _check_folder(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise RequestError(f"--out {folder}: expected a folder, this is a file")
    found = {path.name for path in folder.iterdir()}
    foreign = sorted(found - {MANIFEST, *SCHEMAS})
    if found and (foreign or MANIFEST not in found):
        what = f"holds {foreign[0]}" if foreign else f"has no {MANIFEST}"
        raise RequestError(
            f"--out {folder}: expected a new folder, an empty one or a bundle, this one {what}"
        )


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """A new folder beside ``folder`` that takes its place at the end, if nothing goes wrong."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as room:
        fresh, old = Path(room, "new"), Path(room, "old")
        fresh.mkdir()
        yield fresh
        if folder.exists():
            folder.rename(old)
        try:
            fresh.rename(folder)
        except OSError:
            if old.exists():
                old.rename(folder)
            raise


def _write(store: Store, runs: pd.DataFrame, folder: Path, largest_array: int) -> None:
    environments = store.environments().set_index("id")
    partitions = store.partitions().set_index("hash")
    tables = {
        "runs.parquet": runs.assign(environment=runs["environment_id"].map(environments["hash"])),
        "client_results.parquet": _client_results(store, runs),
        "curves.parquet": _curves(store, runs),
        "artefacts.parquet": _artefacts(store, runs, largest_array),
    }
    files = {}
    for name, frame in tables.items():
        path = folder / name
        _write_table(path, frame, SCHEMAS[name])
        data = path.read_bytes()
        files[name] = {
            "bytes": len(data),
            "rows": len(frame),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
    used_environments = environments.loc[sorted(set(runs["environment_id"].dropna()))].sort_values("hash")
    used_partitions = sorted(set(runs["partition_hash"]) & set(partitions.index))
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "files": files,
        "environments": [
            {"hash": row["hash"], "description": json.loads(row["description"])}
            for row in used_environments.to_dict(orient="records")
        ],
        "partitions": [
            {
                "hash": digest,
                "dataset": str(row["dataset"]),
                "scenario": str(row["scenario"]),
                "clients": int(row["clients"]),
                "provenance": json.loads(row["provenance"]),
            }
            for digest, row in partitions.loc[used_partitions].iterrows()
        ],
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def _write_table(path: Path, frame: pd.DataFrame, schema: pa.Schema) -> None:
    try:
        table = pa.Table.from_arrays(
            [pa.array(frame[field.name], field.type, from_pandas=field.nullable or None) for field in schema],
            schema=schema,
        )
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise RequestError(f"the database holds what no bundle may, {path.stem}: {error}") from None
    numbers = [name for name in schema.names if pa.types.is_integer(schema.field(name).type)]
    if "correct" in schema.names and pa.types.is_list(schema.field("correct").type):
        numbers.append("correct.list.element")
    pq.write_table(
        table,
        path,
        compression="zstd",
        compression_level=19,
        use_dictionary=[name for name in schema.names if pa.types.is_string(schema.field(name).type)],
        column_encoding=dict.fromkeys(numbers, "BYTE_STREAM_SPLIT"),
        store_schema=False,
    )


def _client_results(store: Store, runs: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``client_results``; the counts stand for the value wherever they give it exactly."""
    rows = store.client_results(runs["id"])
    rows["run"] = rows["run_id"].map(_numbers(runs))
    value, samples = rows["value"].to_numpy(np.float64), rows["samples"].to_numpy(np.int64)
    correct: NDArray[np.float64] = np.rint(value * samples)
    exact = correct / samples == value
    rows["correct"] = pd.array(np.where(exact, correct, 0).astype(np.int64), dtype="Int64")
    rows.loc[~exact, "correct"] = pd.NA
    rows["value"] = rows["value"].where(~exact)
    return rows.sort_values(["run", "stage", "split", "rule", "metric", "client"], ignore_index=True)


def _numbers(runs: pd.DataFrame) -> dict[int, int]:
    """Id in the database -> row of ``runs.parquet``."""
    return {int(run): row for row, run in enumerate(runs["id"])}


def _curves(store: Store, runs: pd.DataFrame) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for run, number in _numbers(runs).items():
        for stage in STAGES:
            try:
                correct = store.curve(run, stage, CURVE_SPLIT)
            except KeyError:
                continue
            rows.append(
                {
                    "run": number,
                    "stage": stage,
                    "split": CURVE_SPLIT,
                    "rows": correct.shape[0],
                    "clients": correct.shape[1],
                    # Client by client: a client's counts change little from row to row.
                    "correct": np.ascontiguousarray(correct.T).ravel(),
                }
            )
    return pd.DataFrame(rows, columns=SCHEMAS["curves.parquet"].names)


def _artefacts(store: Store, runs: pd.DataFrame, largest_array: int) -> pd.DataFrame:
    rows = [
        {"run": number, "name": name, "data": data}
        for run, number in _numbers(runs).items()
        for name in store.artefact_names(run)
        if len(data := pack_array(store.artefact(run, name))) <= largest_array
    ]
    return pd.DataFrame(rows, columns=SCHEMAS["artefacts.parquet"].names)
