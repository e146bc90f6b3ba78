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
from bench.paths import replacing_folder
from bench.spec import canonical_json, cell_of, sha256
from bench.store.bundle_check import CURVE_SPLIT, MANIFEST, SCHEMAS, check_rows, refuse
from bench.store.tables import AXES, Stored, Tables, filter_runs

FILES = {MANIFEST, *(f"{name}.parquet" for name in SCHEMAS)}

TEXTS = ("stage", "split", "rule", "metric")
ORDER = ("run", *TEXTS, "client", "name")
"""Sort keys of the rows of a file; a file uses the columns that it has."""

ENTRIES = {
    "environments": ["hash", "description"],
    "partitions": ["hash", "dataset", "scenario", "clients", "provenance"],
}
"""Columns of the tables that ``bundle.json`` holds as lists; the last column is JSON."""

SHIPPED = Path(str(files("bench.results"))) / "measured"
"""Folder of the bundles that come with the suite."""


class Manifest(BaseModel):
    """``bundle.json``: ``docs/results-format.md`` describes it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    format: Literal["pfl-bench bundle"]
    version: Literal[2]
    source: str = ""
    files: dict[str, dict[str, JsonValue]]
    environments: list[dict[str, JsonValue]]
    partitions: list[dict[str, JsonValue]]


class Bundle(Tables):
    """A bundle that is checked in full when it is opened. If it is ``trusted``, only the SHA-256 of each file
    is checked, when the file is read. Damage is a ``RequestError`` that names the file and the problem.

    Run ids are 1, 2, ... in the order of the file. A bundle has no tracebacks, and curves of the test split
    only. ``hash`` is the SHA-256 of ``bundle.json``, which holds the SHA-256 of each other file.
    """

    def __init__(self, folder: Path, *, name: str = "", trusted: bool = False) -> None:
        self.folder = folder
        self.name = name or folder.resolve().name
        if not (folder / MANIFEST).is_file():
            raise RequestError(f"no bundle at {folder}: expected a folder with {MANIFEST}")
        data = (folder / MANIFEST).read_bytes()
        try:
            manifest = Manifest.model_validate_json(data)
        except ValidationError as error:
            refuse(folder, MANIFEST, first_problem(error))
        wrong_names = FILES ^ {path.name for path in folder.iterdir()} | FILES ^ {MANIFEST, *manifest.files}
        if wrong_names:
            refuse(folder, MANIFEST, f"file missing or one too many: {', '.join(sorted(wrong_names))}")
        self.hash = sha256(data)
        self.source = manifest.source
        self._files = manifest.files
        environments = _entries(manifest.environments, "environments")
        partitions = _entries(manifest.partitions, "partitions")
        if not trusted:
            tables = {table: self._rows(table) for table in SCHEMAS}
            check_rows(folder, {**tables, "environments": environments, "partitions": partitions})
        environments.insert(0, "id", range(1, len(environments) + 1))
        runs = self._rows("runs")  # its columns have the order of the database's, which has more
        numbers = runs["environment"].map(environments.set_index("hash")["id"]).astype(np.int64)
        runs = runs.assign(environment=numbers).rename(columns={"environment": "environment_id"})
        runs.insert(0, "id", np.arange(1, len(runs) + 1))
        runs.insert(list(runs).index("spec") + 1, "cell", runs["spec"].map(cell_of).astype("str"))
        runs.insert(list(runs).index("reason") + 1, "traceback", "")
        runs = runs.assign(bundle="", bundle_state="", bundle_sampled=False)
        self._tables = {"runs": runs, "environments": environments, "partitions": partitions}

    def table(self, name: str, /, **filters: Any) -> pd.DataFrame:
        """As ``Tables.table``; values are bit by bit equal to the database's."""
        if name not in self._tables:
            self._tables[name] = _from_file(name, self._rows(name, TEXTS if name == "client_results" else ()))
        rows = filter_runs(self._tables[name], filters)
        if name != "client_results":
            return rows
        codes = [rows[text].cat.codes.to_numpy() for text in TEXTS]  # the categories are sorted
        keys = [*codes[::-1], rows["client"].to_numpy(), rows["run_id"].to_numpy()]
        # Much faster than ``astype``, which makes every text anew.
        texts = {text: rows[text].cat.categories[code] for text, code in zip(TEXTS, codes, strict=True)}
        return rows.assign(**texts).iloc[np.lexsort(keys)].reset_index(drop=True)

    def _rows(self, name: str, categories: Sequence[str] = ()) -> pd.DataFrame:
        """Read the rows of a file, some texts as ``categories``; whole numbers are int64 as in a database."""
        file = f"{name}.parquet"
        data = (self.folder / file).read_bytes()
        if sha256(data) != self._files[file].get("sha256"):
            refuse(self.folder, file, f"damaged: its SHA-256 is not that of {MANIFEST}")
        columns = []
        for field in SCHEMAS[name]:
            kind = pa.int64() if pa.types.is_integer(field.type) else field.type
            is_category = field.name in categories
            columns.append(field.with_type(pa.dictionary(pa.int32(), kind) if is_category else kind))
        try:
            parquet = pq.ParquetFile(pa.BufferReader(data), read_dictionary=list(categories))
            return pd.DataFrame(parquet.read().cast(pa.schema(columns)).to_pandas())
        except (pa.ArrowException, OSError, ValueError) as error:
            refuse(self.folder, file, f"no Parquet file with the columns of the format: {error}")


def trusted_bundles(folder: Path) -> list[Bundle]:
    """Return the bundles below a folder; each is named by its path within the folder."""
    folders = sorted(path.parent for path in folder.rglob(MANIFEST))
    return [Bundle(path, name=path.relative_to(folder).as_posix(), trusted=True) for path in folders]


def shipped_runs() -> dict[str, Stored]:
    """Return the finished runs that come with the suite, by spec hash."""
    runs: dict[str, Stored] = {}
    for bundle in trusted_bundles(SHIPPED):
        rows = bundle.runs(state=COMPLETE)[list(Stored._fields)]
        runs |= {row[0]: Stored(*row) for row in rows.itertuples(index=False, name=None)}
    return runs


def _entries(entries: Sequence[Mapping[str, JsonValue]], name: str) -> pd.DataFrame:
    """Convert a list of ``bundle.json`` to a table; its last column is JSON."""
    *_, text = columns = ENTRIES[name]
    table = pd.DataFrame(entries, columns=columns)
    return table.assign(**{text: table[text].map(canonical_json).astype("str")})


def _listed(table: pd.DataFrame, name: str) -> list[dict[Any, Any]]:
    """Convert a table to a list of ``bundle.json``: the reverse of ``_entries``."""
    *_, text = columns = ENTRIES[name]
    rows = table[columns].sort_values("hash").to_dict("records")
    return [row | {text: json.loads(row[text])} for row in rows]


def _from_file(name: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Convert rows of a file to the columns of ``Tables``; texts of client results become categories."""
    rows = rows.assign(run_id=rows.pop("run") + 1)
    if name == "client_results":
        shares = rows["correct"] / rows["samples"]
        rows["value"] = shares.where(rows["correct"].notna(), rows["value"]).astype(np.float64)
        for text in TEXTS:
            rows[text] = rows[text].cat.set_categories(sorted(rows[text].cat.categories))
        return rows[["run_id", "client", *TEXTS, "value", "samples"]]
    if name == "curves":  # client by client: the counts of one client change little from row to row
        counts = zip(rows.pop("correct"), rows["clients"], strict=True)
        rows["counts"] = [each.reshape(clients, -1).T.astype(np.int32) for each, clients in counts]
    if name == "confusions":
        counts = zip(rows["counts"], rows[list(AXES[name])].itertuples(index=False, name=None), strict=True)
        rows["counts"] = [each.reshape(shape).astype(np.int32) for each, shape in counts]
    return rows


def _to_file(name: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Convert rows of a table to the columns of its file."""
    if name == "client_results":  # counts replace the value where they give it exactly
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
    """Write the ``runs`` that have an outcome as the bundle ``folder``; return how many were written.

    The same runs give the same bytes, whatever their ids. A bundle in ``folder`` is replaced in one step,
    after the new one was read back in full. If ``folder`` holds anything else, raise ``RequestError``.
    """
    folder = folder.resolve()
    runs = runs[runs["state"].isin(OUTCOMES)].sort_values("spec_hash", ignore_index=True)
    if runs.empty:
        raise RequestError(f"no run to export: expected some in state {', '.join(OUTCOMES)}")
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if names and (names - FILES or MANIFEST not in names):
        expected = "a new folder, an empty one or a bundle"
        raise RequestError(f"--out {folder}: expected {expected}, this one holds {', '.join(sorted(names))}")
    environments, partitions = tables.table("environments"), tables.table("partitions")
    runs["environment"] = runs["environment_id"].map(environments.set_index("id")["hash"])
    row_of = {int(run): row for row, run in enumerate(runs["id"])}
    with replacing_folder(folder) as new_folder:
        entries = {}
        for name, schema in SCHEMAS.items():
            rows = runs
            if name != "runs":
                filters = {"split": CURVE_SPLIT} if name == "curves" else {}
                rows = _to_file(name, tables.table(name, run_id=list(row_of), **filters))
                keys = [key for key in ORDER if key in schema.names]
                rows = rows.assign(run=rows["run_id"].map(row_of)).sort_values(keys, ignore_index=True)
            file = new_folder / f"{name}.parquet"
            _write_table(file, rows, schema)
            data = file.read_bytes()
            entries[file.name] = {"bytes": len(data), "rows": len(rows), "sha256": sha256(data)}
        manifest = {
            "format": "pfl-bench bundle",
            "version": 2,
            "files": entries,
            "environments": _listed(
                environments[environments["hash"].isin(runs["environment"])], "environments"
            ),
            "partitions": _listed(partitions[partitions["hash"].isin(runs["partition_hash"])], "partitions"),
        }
        (new_folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        Bundle(new_folder)  # refuse here what reading would refuse, before the bundle is in place
    return len(runs)


def _write_table(file: Path, rows: pd.DataFrame, schema: pa.Schema) -> None:
    table = pa.Table.from_pandas(rows, schema, preserve_index=False).replace_schema_metadata()
    numbers = [field.name for field in schema if pa.types.is_integer(field.type)]
    numbers += [f"{field.name}.list.element" for field in schema if pa.types.is_list(field.type)]
    pq.write_table(
        table,
        file,
        compression="zstd",
        compression_level=19,
        use_dictionary=[field.name for field in schema if pa.types.is_string(field.type)],
        column_encoding=dict.fromkeys(numbers, "BYTE_STREAM_SPLIT"),
        store_schema=False,
    )
