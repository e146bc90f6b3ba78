"""What the tables of a bundle are: their columns, and the rules that their rows keep."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pyarrow as pa
from pydantic import ValidationError
from sqlalchemy import BigInteger, Column

from bench.engine.states import OUTCOMES
from bench.errors import RequestError, first_problem
from bench.metric_names import ACCURACY
from bench.spec import RunSpec, sha256
from bench.store.models import (
    Artefact,
    Base,
    ClientResult,
    Confusion,
    Curve,
    Run,
    spec_columns,
    unpack_array,
)

CURVE_SPLIT = "test"

# Columns ------------------------------------------------------------------------------------------

KINDS = {
    str: pa.string(),
    int: pa.int32(),
    float: pa.float64(),
    datetime: pa.timestamp("us"),
    bytes: pa.binary(),
}
NAMES = {"run_id": "run"}
"""Columns that are called otherwise than in the database: ids differ from one database to the next."""

NOT_OF_A_RUN = ("id", "cell", "traceback", "environment_id", "bundle_id")
"""Columns of ``runs`` that say something of a database or a machine, or that follow from the spec."""


def _field(column: Column[Any]) -> pa.Field:
    is_large = isinstance(column.type, BigInteger) or column.name == "seed"
    kind = pa.int64() if is_large else KINDS[column.type.python_type]
    return pa.field(NAMES.get(column.name, column.name), kind, nullable=False)


def _schema(model: type[Base], *names: str) -> pa.Schema:
    columns = {column.name: column for column in Base.metadata.tables[model.__tablename__].columns}
    return pa.schema([_field(columns[name]) for name in names])


_RUN = _schema(Run, *(column.name for column in Run.__table__.columns if column.name not in NOT_OF_A_RUN))
_COUNTS = pa.list_(pa.field("element", pa.int32(), nullable=False))

SCHEMAS: dict[str, pa.Schema] = {
    "runs": _RUN.insert(
        _RUN.get_field_index("started"), pa.field("environment", pa.string(), nullable=False)
    ),
    "client_results": _schema(ClientResult, "run_id", "stage", "split", "rule", "metric", "client", "samples")
    .append(pa.field("correct", pa.int32()))
    .append(pa.field("value", pa.float64())),
    "curves": _schema(Curve, "run_id", "stage", "split", "rows", "clients").append(
        pa.field("correct", _COUNTS, nullable=False)
    ),
    "artefacts": _schema(Artefact, "run_id", "name", "data"),
    "confusions": _schema(Confusion, "run_id", "stage", "rule", "clients", "classes").append(
        pa.field("counts", _COUNTS, nullable=False)
    ),
}
"""Table -> its columns. ``run`` is a row of ``runs``, from 0."""

KEYS = {
    "runs": ["spec_hash"],
    "client_results": ["run", "stage", "split", "rule", "metric", "client"],
    "curves": ["run", "stage", "split"],
    "artefacts": ["run", "name"],
    "confusions": ["run", "stage", "rule"],
}
"""Table -> the columns that tell its rows apart, and by which they are ordered."""

MANIFEST = "bundle.json"
FILES = {MANIFEST, *(f"{name}.parquet" for name in SCHEMAS)}
"""Every file of a bundle."""

VERSIONS = {1: FILES - {"confusions.parquet"}, 2: FILES}
"""Version of a bundle -> its files; the newest is written."""


def refuse(folder: Path, file: str, problem: str) -> NoReturn:
    """Raise ``RequestError`` with the file's name and the problem."""
    raise RequestError(f"bundle {folder}: {file}: {problem}")


# Rows ---------------------------------------------------------------------------------------------


def check_rows(folder: Path, tables: Mapping[str, pd.DataFrame]) -> None:
    """Check the specs, and what is said of the rows of every file, and of ``environments`` and
    ``partitions``, which stand in ``bundle.json``.

    Raises:
        RequestError: naming the first row of which something does not hold.
    """

    def require(table: str, rows: Any, words: str) -> None:
        bad_rows = np.flatnonzero(~np.asarray(rows, bool))
        if len(bad_rows):
            refuse(folder, f"{table}.parquet", f"row {bad_rows[0]}: expected {words}")

    runs, results, curves, artefacts, confusions = (tables[name] for name in SCHEMAS)
    environments = tables["environments"]
    for row, run in enumerate(runs.to_dict("records")):
        _check_spec(folder, row, run)
    for table, schema in SCHEMAS.items():
        for field in schema:
            if pa.types.is_floating(field.type):
                finite = np.isfinite(tables[table][field.name])
                require(
                    table, finite | (tables[table][field.name].isna() & field.nullable), "a finite number"
                )
        require(table, ~tables[table].duplicated(KEYS[table]), f"one row of a {', '.join(KEYS[table])}")
    require("runs", runs["state"].isin(OUTCOMES), f"a state of {', '.join(OUTCOMES)}")
    require("runs", (runs.select_dtypes("number") >= 0).all(axis=1), "no negative number")
    known = environments.loc[environments["description"].map(sha256) == environments["hash"], "hash"]
    require("runs", runs["environment"].isin(known), f"an environment of {MANIFEST}, with its hash")
    described = ["", *tables["partitions"]["hash"]]
    require("runs", runs["partition_hash"].isin(described), f"no partition_hash or one of {MANIFEST}")
    for table in list(SCHEMAS)[1:]:
        is_done = tables[table]["run"].map(runs["state"]) == "done"
        require(table, is_done, "a run of this bundle that is done")
    count = results["run"].map(runs["clients"])
    require("client_results", (results["client"] >= 0) & (results["client"] < count), "a client of the run")
    require("client_results", results["samples"] >= 1, "samples")
    correct, value = results["correct"], results["value"]
    require("client_results", correct.isna() != value.isna(), "correct or value")
    require("client_results", correct.isna() | ((correct >= 0) & (correct <= results["samples"])), "a count")
    require("client_results", value.isna() | ((value >= 0) & (value <= 1)), "a value from 0 to 1")
    require("curves", curves["split"] == CURVE_SPLIT, f"split {CURVE_SPLIT}")
    require("curves", curves["rows"] >= 1, "rows")
    require("curves", curves["clients"] == curves["run"].map(runs["clients"]), "the clients of the run")
    require("curves", curves["rows"] * curves["clients"] == curves["correct"].str.len(), "rows times clients")
    require("curves", _counts_fit(curves, results), "counts from 0 to the client's samples")
    require("artefacts", artefacts["data"].map(_is_array), "an NPY array of numbers")
    require(
        "confusions", confusions["clients"] == confusions["run"].map(runs["clients"]), "the run's clients"
    )
    sizes = confusions["clients"] * confusions["classes"].astype(float) ** 2
    require("confusions", (sizes > 0) & (sizes == confusions["counts"].str.len()), "counts of every class")
    require(
        "confusions", _confusions_fit(confusions, results), "the client's test items and its correct ones"
    )


def _counts_fit(curves: pd.DataFrame, results: pd.DataFrame) -> list[bool]:
    """Whether each curve's counts are 0 to the client's test samples; a client without has no results."""
    test = results[results["split"] == CURVE_SPLIT]
    samples = test.groupby(["run", "client"])["samples"].max()
    fits = []
    for run, clients, correct in zip(curves["run"], curves["clients"], curves["correct"], strict=True):
        limits = samples.reindex([(run, client) for client in range(clients)], fill_value=0).to_numpy()
        counts = correct.reshape(clients, -1)
        fits.append(bool((counts >= 0).all() and (counts <= limits[:, None]).all()))
    return fits


def _confusions_fit(confusions: pd.DataFrame, results: pd.DataFrame) -> list[bool]:
    """Whether each client's counts are those of its test samples, and the right ones its correct ones."""
    test = results[(results["split"] == CURVE_SPLIT) & (results["metric"] == ACCURACY)]
    readings = {key: part.set_index("client") for key, part in test.groupby(["run", "stage", "rule"])}
    fits = []
    for run, stage, rule, clients, classes, counts in confusions.itertuples(index=False):
        matrices = counts.reshape(clients, classes, classes).astype(np.int64)
        reading = readings.get((run, stage, rule), test.iloc[:0])[["correct", "samples"]]
        stated = reading.reindex(range(clients), fill_value=0).fillna(-1).to_numpy(np.int64)
        diagonal, items = np.trace(matrices, axis1=1, axis2=2), matrices.sum(axis=(1, 2))
        fits.append(bool((counts >= 0).all() and (stated == np.stack([diagonal, items], 1)).all()))
    return fits


def _is_array(data: bytes) -> bool:
    try:
        return unpack_array(data).dtype.kind in "biuf"
    except Exception:  # NumPy's reader raises errors of many kinds over what anybody may have written
        return False


def _check_spec(folder: Path, row: int, run: dict[Any, Any]) -> None:
    try:
        spec = RunSpec.model_validate_json(run["spec"], strict=True)
        for name, value in spec_columns(spec).items():
            if run.get(name, value) != value:
                raise ValueError(f"its {name} is not that in the column")
        return
    except ValidationError as error:
        problem = first_problem(error)
    except ValueError as error:
        problem = str(error)
    refuse(folder, "runs.parquet", f"row {row}: spec: {problem}")
