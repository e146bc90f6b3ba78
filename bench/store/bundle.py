"""Bundles: measured results in a folder of JSON and Parquet files (``docs/results-format.md``)."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from bench.engine.states import OUTCOMES
from bench.errors import RequestError, first_problem
from bench.replacement import replacing_folder
from bench.spec import canonical_json, cell_of, sha256
from bench.store.bundle_check import CURVE_SPLIT, FILES, MANIFEST, SCHEMAS, VERSIONS, check_rows, refuse
from bench.store.models import ClientResult, pack_array, unpack_array
from bench.store.queries import RUN_COLUMNS, TIMED, Readings, Timing, filter_runs
from bench.store.store import Store

TEXTS = ("stage", "split", "rule", "metric")

SHIPPED = Path(str(files("bench.results"))) / "measured"
"""Where the bundles are that come with the suite."""

# bundle.json --------------------------------------------------------------------------------------


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class File(_Part):
    """Size, SHA-256 and rows of one Parquet file."""

    bytes: int
    rows: int
    sha256: str


class EnvironmentEntry(_Part):
    """Where runs were made; ``hash`` is the SHA-256 of the description's canonical JSON."""

    hash: str
    description: dict[str, JsonValue]


class PartitionEntry(_Part):
    """A federation that runs used and how it was made."""

    hash: str
    dataset: str
    scenario: str
    clients: int
    provenance: dict[str, JsonValue]


class Manifest(_Part):
    """``bundle.json``. ``source`` says who made the runs and where more is to be read."""

    format: Literal["pfl-bench bundle"]
    version: Literal[1, 2]
    source: str = ""
    files: dict[str, File]
    environments: list[EnvironmentEntry]
    partitions: list[PartitionEntry]


def _read_manifest(folder: Path) -> tuple[Manifest, str]:
    """``bundle.json``, checked in itself, and its SHA-256."""
    if not (folder / MANIFEST).is_file():
        raise RequestError(f"no bundle at {folder}: expected a folder with {MANIFEST}")
    data = _read_bytes(folder, MANIFEST)
    try:
        manifest = Manifest.model_validate_json(data)
        canonical_json(manifest.model_dump())  # refuses numbers that JSON does not have
    except ValidationError as error:
        refuse(folder, MANIFEST, first_problem(error))
    except ValueError as error:
        refuse(folder, MANIFEST, str(error))
    names = VERSIONS[manifest.version]
    present, stated = {path.name for path in folder.iterdir()}, {MANIFEST, *manifest.files}
    if stated != names or not present <= names:
        found = ", ".join(sorted(present | stated))
        refuse(folder, MANIFEST, f"expected {', '.join(sorted(names))}, got {found}")
    return manifest, sha256(data)


# Reading ------------------------------------------------------------------------------------------


class Bundle:
    """A bundle, read and checked whole when it is opened; it answers as a ``Store`` does.

    Of a ``trusted`` one, whose rows were checked before, the SHA-256 of its files are compared alone. What
    is large is read when it is asked for.

    Run ids are 1, 2, ... in the order of the file. ``traceback`` is empty: a bundle keeps none; so are
    ``bundle`` and ``bundle_state``: it does not say where its runs came from. ``hash`` is the SHA-256
    of ``bundle.json``, which holds those of the other files; ``source`` is what that says of its origin.

    Raises:
        RequestError: ``folder`` is no bundle, or a damaged one; the line names the file and what
            is wrong with it.
    """

    def __init__(self, folder: Path, *, trusted: bool = False) -> None:
        self.folder = folder
        self.name = folder.resolve().name
        manifest, self.hash = _read_manifest(folder)
        self.source = manifest.source
        self._files = manifest.files
        environments = _frame(EnvironmentEntry, manifest.environments)
        self._partitions = _frame(PartitionEntry, manifest.partitions)
        if trusted:
            for file in self._files:
                _read_stated(folder, file, self._files)
        else:
            tables = {name: self._table(name) for name in SCHEMAS}
            check_rows(folder, {**tables, "environments": environments, "partitions": self._partitions})
        environments.insert(0, "id", range(1, len(environments) + 1))
        self._environments = environments
        self._runs = _runs(self._table("runs"), environments)

    def _table(self, name: str) -> pd.DataFrame:
        """A table; one that bundles of this version do not have is empty."""
        if f"{name}.parquet" in self._files:
            return _read_table(self.folder, name, self._files)
        empty: pd.DataFrame = SCHEMAS[name].empty_table().to_pandas()
        return empty

    @cached_property
    def _results(self) -> pd.DataFrame:
        return _results(self._table("client_results"))

    @cached_property
    def _curves(self) -> dict[tuple[int, str], NDArray[np.int32]]:
        return {
            (run + 1, stage): counts.reshape(clients, rows).T.astype(np.int32)
            for run, stage, _, rows, clients, counts in self._table("curves").itertuples(index=False)
        }

    @cached_property
    def _confusions(self) -> dict[tuple[int, str, str], NDArray[np.int32]]:
        return {
            (run + 1, stage, rule): counts.reshape(clients, classes, classes).astype(np.int32)
            for run, stage, rule, clients, classes, counts in self._table("confusions").itertuples(
                index=False
            )
        }

    @cached_property
    def _artefacts(self) -> dict[tuple[int, str], bytes]:
        rows = self._table("artefacts").itertuples(index=False)
        return {(run + 1, name): data for run, name, data in rows}

    def runs(self, **filters: Any) -> pd.DataFrame:
        """One row a run with the columns of ``Store.runs``, ordered by id; the same filters."""
        return filter_runs(self._runs, filters)

    def client_results(self, run_ids: Iterable[int], **only: Unpack[Readings]) -> pd.DataFrame:
        """As ``Store.client_results``; values are bit by bit those of the database."""
        results = self._filtered_results(run_ids, only)
        return _with_texts(results.sort_values(["run_id", "client", *TEXTS], ignore_index=True), TEXTS)

    def _filtered_results(self, run_ids: Iterable[int], only: Readings) -> pd.DataFrame:
        results = self._results
        is_wanted = results["run_id"].isin({int(run) for run in run_ids})
        for name, value in only.items():
            if value is not None:
                is_wanted &= results[name] == value
        return results[is_wanted]

    def curves(self, run_ids: Iterable[int], split: str) -> dict[tuple[int, str], NDArray[np.int32]]:
        """As ``Store.curves``; a bundle keeps the curves of the test split alone."""
        ids = {int(run) for run in run_ids} if split == CURVE_SPLIT else set()
        return {key: counts for key, counts in self._curves.items() if key[0] in ids} if ids else {}

    def confusions(self, run_ids: Iterable[int]) -> dict[tuple[int, str, str], NDArray[np.int32]]:
        """As ``Store.confusions``; a bundle of version 1 has none."""
        ids = {int(run) for run in run_ids}
        return {key: counts for key, counts in self._confusions.items() if key[0] in ids}

    def artefact(self, run_id: int, name: str) -> NDArray[Any]:
        """An array kept with a run; raises ``KeyError`` where there is none or it was too large."""
        return unpack_array(self._artefacts[run_id, name])

    def artefact_names(self, run_id: int) -> list[str]:
        """Names of the arrays kept with a run."""
        return sorted(name for run, name in self._artefacts if run == run_id)

    def environments(self) -> pd.DataFrame:
        """One row an environment: id, hash, description (JSON)."""
        return self._environments.copy()

    def partitions(self) -> pd.DataFrame:
        """One row a partition: hash, dataset, scenario, clients, provenance (JSON)."""
        return self._partitions.copy()


def read_bundles(folder: Path, *, trusted: bool = False) -> tuple[list[Bundle], list[RequestError]]:
    """The bundles in a folder, by name, and what is wrong with those that cannot be read.

    Both are empty where there is no such folder.
    """
    bundles: list[Bundle] = []
    errors: list[RequestError] = []
    for path in sorted(folder.glob(f"*/{MANIFEST}")):
        try:
            bundles.append(Bundle(path.parent, trusted=trusted))
        except RequestError as error:
            errors.append(error)
    return bundles, errors


def read_timings(folder: Path) -> dict[str, Timing]:
    """What the done runs of the bundles in a folder took, by spec hash; bundles that cannot be read are left
    out. Of a bundle these columns alone are read, a tenth of the time of the whole.
    """
    timings: dict[str, Timing] = {}
    for path in sorted(folder.glob(f"*/{MANIFEST}")):
        try:
            data = _read_stated(path.parent, "runs.parquet", _read_manifest(path.parent)[0].files)
            is_done = pc.field("state") == "done"
            table = pq.read_table(pa.BufferReader(data), columns=["spec_hash", *TIMED], filters=is_done)
        except (RequestError, pa.ArrowException, OSError, ValueError):
            continue
        columns = [table.column(name).to_pylist() for name in ("spec_hash", *TIMED)]
        timings |= {spec_hash: Timing(*values) for spec_hash, *values in zip(*columns, strict=True)}
    return timings


def _read_bytes(folder: Path, name: str, size: int | None = None) -> bytes:
    """A file's bytes, as many as stated, of a regular file alone: no link is followed, no pipe waited for."""
    path = folder / name
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            refuse(folder, name, "expected a regular file, no link or folder")
        if size not in (None, status.st_size):
            refuse(folder, name, f"damaged: {status.st_size:,} bytes, {MANIFEST} says {size:,}")
        return path.read_bytes()
    except OSError as error:
        refuse(folder, name, f"cannot read it: {error.strerror}")


def _read_stated(folder: Path, name: str, files: Mapping[str, File]) -> bytes:
    """The bytes of a file if they are those that ``bundle.json`` states."""
    data = _read_bytes(folder, name, files[name].bytes)
    if sha256(data) != files[name].sha256:
        refuse(folder, name, f"damaged: its SHA-256 is not that of {MANIFEST}")
    return data


def _read_table(folder: Path, name: str, files: Mapping[str, File]) -> pd.DataFrame:
    """A table of exactly the columns of its schema, and as many rows as ``bundle.json`` says."""
    file, schema = f"{name}.parquet", SCHEMAS[name]
    data, rows = _read_stated(folder, file, files), files[file].rows
    try:
        table = pq.ParquetFile(pa.BufferReader(data)).read()
    except (pa.ArrowException, OSError, ValueError) as error:
        refuse(folder, file, f"not readable as Parquet: {error}")
    found, expected = (
        sorted(f"{field.name} {field.type}" for field in each) for each in (table.schema, schema)
    )
    if found != expected:
        columns = ", ".join(sorted({*found} ^ {*expected}) or found)
        refuse(folder, file, f"column one too many, missing, twice or of another type: {columns}")
    if table.num_rows != rows:
        refuse(folder, file, f"{table.num_rows} rows, {MANIFEST} says {rows}")
    for field in schema:
        if table.column(field.name).null_count and not field.nullable:
            refuse(folder, file, f"column {field.name}: a value is missing")
    frame: pd.DataFrame = table.select(schema.names).replace_schema_metadata(None).to_pandas()
    return frame


def _frame(model: type[_Part], parts: Sequence[_Part]) -> pd.DataFrame:
    """One row a part; what is JSON in the database is JSON here."""
    rows = [
        {
            name: canonical_json(value) if isinstance(value, dict) else value
            for name, value in part.model_dump().items()
        }
        for part in parts
    ]
    return pd.DataFrame(rows, columns=list(model.model_fields))


def _runs(runs: pd.DataFrame, environments: pd.DataFrame) -> pd.DataFrame:
    numbers = dict(zip(environments["hash"], environments["id"], strict=True))
    columns: dict[str, Any] = {
        str(name): values.astype(np.int64) if values.dtype.kind == "i" else values
        for name, values in runs.items()
    }
    columns |= {
        "id": np.arange(1, len(runs) + 1),
        "cell": [cell_of(spec) for spec in runs["spec"]],
        "traceback": "",
        "bundle": "",
        "bundle_state": "",
        "bundle_checked": pd.NaT,
        "bundle_sampled": False,
        "bundle_close": False,
        "environment_id": runs["environment"].map(numbers).astype(np.int64),
    }
    return pd.DataFrame({name: columns[name] for name in RUN_COLUMNS}, runs.index)


def _with_texts(frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Columns of categories as text, which Arrow does in a tenth of the time of pandas."""
    texts = {}
    for name in names:
        categories = pa.array(frame[name].cat.categories, pa.large_string())
        text = pa.DictionaryArray.from_arrays(pa.array(frame[name].cat.codes), categories)
        texts[name] = pd.Series(text.dictionary_decode(), dtype="str")
    return frame.assign(**texts)


def _results(results: pd.DataFrame) -> pd.DataFrame:
    """Rows with the columns of the database; ``value`` from the counts where they are given."""
    value = (results["correct"] / results["samples"]).where(results["correct"].notna(), results["value"])
    results = results.assign(run_id=results["run"].astype(np.int64) + 1, value=value.astype(np.float64))
    columns = list(ClientResult.__table__.columns.keys())
    return results[columns].astype(
        {"client": np.int64, "samples": np.int64, **dict.fromkeys(TEXTS, "category")}
    )


# Writing ------------------------------------------------------------------------------------------

USUAL_ARRAY_BYTES = 4096
"""Largest NPY data of an array that a bundle keeps unless more is asked for."""


def write_bundle(
    store: Store, runs: pd.DataFrame, folder: Path, largest_array: int = USUAL_ARRAY_BYTES
) -> int:
    """Write the runs that have an outcome (``OUTCOMES``) as the bundle ``folder``; returns how many they are.

    ``runs`` are rows of ``Store.runs``; arrays of more than ``largest_array`` bytes are left out. The
    same runs give the same bytes, whatever their ids. A bundle that stands there is replaced in one
    step, after the new one was read back whole.

    Raises:
        RequestError: no run has an outcome; ``folder`` holds something else than a bundle; it cannot be
            written; the database holds what a bundle may not.
    """
    folder = folder.resolve()
    runs = runs[runs["state"].isin(OUTCOMES)].sort_values("spec_hash", ignore_index=True)
    if runs.empty:
        raise RequestError(f"no run to export: expected some in state {', '.join(OUTCOMES)}")
    _check_target(folder)
    with replacing_folder(folder) as new_folder:
        _write(store, runs, new_folder, largest_array)
        Bundle(new_folder)  # what would be refused on reading is refused before it is in place
    return len(runs)


def _check_target(folder: Path) -> None:
    """Refuse to replace anything but a bundle."""
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if names and (names - FILES or MANIFEST not in names):
        raise RequestError(
            f"--out {folder}: expected a new folder, an empty one or a bundle, this one holds "
            f"{', '.join(sorted(names))}"
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
    columns = [
        pa.array(frame[field.name], field.type, from_pandas=field.nullable or None) for field in schema
    ]
    numbers = [field.name for field in schema if pa.types.is_integer(field.type)]
    numbers += [f"{field.name}.list.element" for field in schema if pa.types.is_list(field.type)]
    pq.write_table(
        pa.Table.from_arrays(columns, schema=schema),
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
