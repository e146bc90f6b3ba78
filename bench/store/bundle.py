"""Bundles: measured results in a folder of JSON and Parquet files (``docs/results-format.md``)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from bench.engine.states import COMPLETE, OUTCOMES
from bench.errors import RequestError, first_problem
from bench.replacement import replacing_folder
from bench.spec import canonical_json, cell_of, sha256
from bench.store.bundle_check import CURVE_SPLIT, FILES, KEYS, MANIFEST, SCHEMAS, VERSIONS, check_rows, refuse
from bench.store.models import AXES
from bench.store.store import RUN_VALUES, Stored
from bench.store.tables import Tables, filter_runs

TEXTS = ("stage", "split", "rule", "metric")

ENTRIES = {
    "environments": ["hash", "description"],
    "partitions": ["hash", "dataset", "scenario", "clients", "provenance"],
}
"""Columns of the tables that are lists of ``bundle.json``; the last one is JSON."""

SHIPPED = Path(str(files("bench.results"))) / "measured"
"""Where the bundles are that come with the suite."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class File(_Part):
    """One Parquet file of a bundle."""

    bytes: int
    rows: int
    sha256: str


class Manifest(_Part):
    """``bundle.json``. ``source`` says who made the runs and where more is to be read. Environments and
    partitions have the columns of their tables, their texts as JSON values.
    """

    format: Literal["pfl-bench bundle"]
    version: Literal[1, 2]
    source: str = ""
    files: dict[str, File]
    environments: list[dict[str, JsonValue]]
    partitions: list[dict[str, JsonValue]]


class Bundle(Tables):
    """A bundle, checked whole when it is opened; of a ``trusted`` one only the SHA-256 of its files is.

    Run ids are 1, 2, ... in the order of the file. A bundle has no tracebacks, no curves but those of the
    test split, and does not say where its runs came from. ``hash`` is the SHA-256 of ``bundle.json``, which
    holds those of the other files; ``source`` is what it says of its origin. What is no bundle, or a damaged
    one, is a ``RequestError`` that names the file and the problem.
    """

    def __init__(self, folder: Path, *, name: str = "", trusted: bool = False) -> None:
        self.folder = folder
        self.name = name or folder.resolve().name
        manifest, self.hash = _read_manifest(folder)
        self.source = manifest.source
        self._files = manifest.files
        environments = _entries(manifest.environments, "environments")
        partitions = _entries(manifest.partitions, "partitions")
        if trusted:
            for file, stated in self._files.items():
                _read_bytes(folder, file, stated)
        else:
            tables = {table: self._rows(table) for table in SCHEMAS}
            check_rows(folder, {**tables, "environments": environments, "partitions": partitions})
        environments.insert(0, "id", range(1, len(environments) + 1))
        runs = _runs(self._rows("runs"), environments)
        self._tables = {"runs": runs, "environments": environments, "partitions": partitions}

    def table(self, name: str, /, **filters: Any) -> pd.DataFrame:
        """As ``Tables.table``; values are bit by bit those of the database."""
        if name not in self._tables:
            self._tables[name] = _from_file(name, self._rows(name))
        rows = filter_runs(self._tables[name], filters)
        if name != "client_results":
            return rows
        rows = rows.sort_values(["run_id", "client", *TEXTS], ignore_index=True)
        return rows.assign(
            **{text: rows[text].cat.categories[rows[text].cat.codes.to_numpy()] for text in TEXTS}
        )

    def _rows(self, name: str) -> pd.DataFrame:
        return _read_table(self.folder, name, self._files)


def read_bundles(folder: Path, *, trusted: bool = False) -> tuple[list[Bundle], list[RequestError]]:
    """The bundles below a folder, named by their paths within it, and the errors of damaged ones."""
    bundles: list[Bundle] = []
    errors: list[RequestError] = []
    for path in sorted(folder.rglob(MANIFEST)):
        try:
            name = path.parent.relative_to(folder).as_posix()
            bundles.append(Bundle(path.parent, name=name, trusted=trusted))
        except RequestError as error:
            errors.append(error)
    return bundles, errors


def shipped_runs() -> dict[str, Stored]:
    """The finished runs that come with the suite, by spec hash, with id 0; ``runs.parquet`` has them."""
    names = [name for name in Stored._fields if name != "id"]
    runs: dict[str, Stored] = {}
    for path in sorted(SHIPPED.rglob(MANIFEST)):
        rows = _read_table(path.parent, "runs", _read_manifest(path.parent)[0].files)
        done = rows.loc[rows["state"].isin(COMPLETE), names]
        runs |= {row[0]: Stored(row[0], 0, *row[1:]) for row in done.itertuples(index=False, name=None)}
    return runs


def _read_manifest(folder: Path) -> tuple[Manifest, str]:
    """``bundle.json`` of a folder that has exactly its files, and its SHA-256."""
    if not (folder / MANIFEST).is_file():
        raise RequestError(f"no bundle at {folder}: expected a folder with {MANIFEST}")
    data = (folder / MANIFEST).read_bytes()
    try:
        manifest = Manifest.model_validate_json(data)
    except ValidationError as error:
        refuse(folder, MANIFEST, first_problem(error))
    expected, found = VERSIONS[manifest.version], {path.name for path in folder.iterdir()}
    wrong_names = (expected ^ found) | (expected ^ {MANIFEST, *manifest.files})
    if wrong_names:
        refuse(folder, MANIFEST, f"file missing or one too many: {', '.join(sorted(wrong_names))}")
    return manifest, sha256(data)


def _entries(entries: Sequence[Mapping[str, JsonValue]], name: str) -> pd.DataFrame:
    """A list of ``bundle.json`` as a table, whose last column is JSON."""
    *_, text = columns = ENTRIES[name]
    table = pd.DataFrame(entries, columns=columns)
    return table.assign(**{text: table[text].map(canonical_json).astype("str")})


def _read_bytes(folder: Path, name: str, stated: File) -> bytes:
    """The bytes of a file, if they are those that ``bundle.json`` states."""
    data = (folder / name).read_bytes()
    if (len(data), sha256(data)) != (stated.bytes, stated.sha256):
        refuse(folder, name, f"damaged: its size or its SHA-256 is not that of {MANIFEST}")
    return data


def _read_table(folder: Path, name: str, files: Mapping[str, File]) -> pd.DataFrame:
    """A table of exactly the columns of its schema; whole numbers are int64, as those of a database. One that
    bundles of an older version do not have is empty.
    """
    file = f"{name}.parquet"
    if file not in files:
        return pd.DataFrame(SCHEMAS[name].empty_table().to_pandas())
    data = _read_bytes(folder, file, files[file])
    schema = pa.schema(
        field.with_type(pa.int64()) if pa.types.is_integer(field.type) else field for field in SCHEMAS[name]
    )
    try:
        return pd.DataFrame(pq.ParquetFile(pa.BufferReader(data)).read().cast(schema).to_pandas())
    except (pa.ArrowException, OSError, ValueError) as error:
        refuse(folder, file, f"no Parquet file with the columns of the format: {error}")


# Between the files and ``Tables`` -----------------------------------------------------------------


def _runs(runs: pd.DataFrame, environments: pd.DataFrame) -> pd.DataFrame:
    runs = runs.assign(
        id=np.arange(1, len(runs) + 1),
        cell=runs["spec"].map(cell_of).astype("str"),
        traceback="",
        bundle="",
        bundle_state="",
        bundle_sampled=False,
        bundle_close=False,
        environment_id=runs["environment"].map(environments.set_index("hash")["id"]).astype(np.int64),
    )
    return runs[list(RUN_VALUES)]


def _from_file(name: str, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a file with the columns of ``Tables``; texts of client results are categories."""
    rows = rows.assign(run_id=rows.pop("run") + 1)
    if name == "client_results":
        shares = rows["correct"] / rows["samples"]
        rows["value"] = shares.where(rows["correct"].notna(), rows["value"]).astype(np.float64)
        order = ["run_id", "client", *TEXTS, "value", "samples"]
        return rows[order].astype(dict.fromkeys(TEXTS, "category"))
    if name == "curves":  # client by client: the counts of one client change little from row to row
        counts = zip(rows.pop("correct"), rows["clients"], strict=True)
        rows["counts"] = [each.reshape(clients, -1).T.astype(np.int32) for each, clients in counts]
    if name == "confusions":
        counts = zip(rows["counts"], rows[list(AXES[name])].itertuples(index=False, name=None), strict=True)
        rows["counts"] = [each.reshape(shape).astype(np.int32) for each, shape in counts]
    return rows


def _to_file(name: str, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table with the columns of its file."""
    if name == "client_results":  # counts stand for the value wherever they give it exactly
        value, samples = rows["value"], rows["samples"]
        correct = (value * samples).round()
        is_exact = correct / samples == value
        return rows.assign(correct=correct.where(is_exact).astype("Int64"), value=value.where(~is_exact))
    if name == "curves":
        return rows.assign(correct=rows["counts"].map(lambda counts: counts.T.ravel()))
    if name == "confusions":
        return rows.assign(counts=rows["counts"].map(np.ravel))
    return rows


def write_bundle(tables: Tables, runs: pd.DataFrame, folder: Path) -> int:
    """Write the runs that have an outcome (``OUTCOMES``) as the bundle ``folder``; returns how many they are.

    ``runs`` are rows of ``tables.runs``. The same runs give the same bytes, whatever their ids. A bundle that
    stands there is replaced in one step, after the new one was read back whole; a folder of anything else is
    a ``RequestError``.
    """
    folder = folder.resolve()
    runs = runs[runs["state"].isin(OUTCOMES)].sort_values("spec_hash", ignore_index=True)
    if runs.empty:
        raise RequestError(f"no run to export: expected some in state {', '.join(OUTCOMES)}")
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if names and (names - FILES or MANIFEST not in names):
        expected = "a new folder, an empty one or a bundle"
        raise RequestError(f"--out {folder}: expected {expected}, this one holds {', '.join(sorted(names))}")
    with replacing_folder(folder) as new_folder:
        _write(tables, runs, new_folder)
        Bundle(new_folder)  # what would be refused on reading is refused before it is in place
    return len(runs)


def _write(tables: Tables, runs: pd.DataFrame, folder: Path) -> None:
    environments, partitions = tables.table("environments"), tables.table("partitions")
    runs = runs.assign(environment=runs["environment_id"].map(environments.set_index("id")["hash"]))
    rows = {int(run): row for row, run in enumerate(runs["id"])}
    files = {}
    for name, schema in SCHEMAS.items():
        table = runs
        if name != "runs":
            filters = {"split": CURVE_SPLIT} if name == "curves" else {}
            table = _to_file(name, tables.table(name, run_id=list(rows), **filters))
            table = table.assign(run=table["run_id"].map(rows)).sort_values(KEYS[name], ignore_index=True)
        path = folder / f"{name}.parquet"
        _write_table(path, table, schema)
        data = path.read_bytes()
        files[path.name] = {"bytes": len(data), "rows": len(table), "sha256": sha256(data)}
    manifest = {
        "format": "pfl-bench bundle",
        "version": max(VERSIONS),
        "files": files,
        "environments": _listed(environments[environments["hash"].isin(runs["environment"])], "environments"),
        "partitions": _listed(partitions[partitions["hash"].isin(runs["partition_hash"])], "partitions"),
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def _listed(table: pd.DataFrame, name: str) -> list[dict[Any, Any]]:
    """A table as a list of ``bundle.json``: the reverse of ``_entries``."""
    *_, text = columns = ENTRIES[name]
    rows = table[columns].sort_values("hash").to_dict("records")
    return [row | {text: json.loads(row[text])} for row in rows]


def _write_table(path: Path, frame: pd.DataFrame, schema: pa.Schema) -> None:
    table = pa.Table.from_pandas(frame, schema, preserve_index=False).replace_schema_metadata()
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
