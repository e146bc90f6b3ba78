"""What the tables of a bundle are: their columns, and the rules that their rows keep."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError
from sqlalchemy import BigInteger, Column

from bench.engine.states import OUTCOMES
from bench.errors import RequestError, first_problem
from bench.metric_names import ACCURACY
from bench.selection import RULES as SELECTION_RULES
from bench.spec import STAGES, RunSpec, sha256
from bench.store.models import Artefact, Base, ClientResult, Confusion, Curve, Run, spec_columns

SPLITS = ("train", "val", "test")
CURVE_SPLIT = "test"
ARRAY_BYTES = 2**20
"""Largest NPY data of an array that a reader takes: what hundreds of rounds weigh by layer fits."""

LONGEST = 300
"""Characters of a problem that a message tells; names and values in it may be anybody's."""

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

MANIFEST = "bundle.json"
FILES = {MANIFEST, *(f"{name}.parquet" for name in SCHEMAS)}
"""Every file of a bundle."""

VERSIONS = {1: FILES - {"confusions.parquet"}, 2: FILES}
"""Version of a bundle -> its files; the newest is written."""


Tables = Mapping[str, pd.DataFrame]
"""The content of a bundle by table; ``environments`` and ``partitions`` stand in ``bundle.json``."""


def refuse(folder: Path, file: str, problem: str) -> NoReturn:
    """Raise ``RequestError`` with the file's name and the problem, in one line."""
    line = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in problem)
    raise RequestError(f"bundle {folder}: {file}: {line if len(line) <= LONGEST else f'{line[:LONGEST]}...'}")


def check_columns(folder: Path, name: str, table: pa.Table) -> None:
    """Check what the schema says of every value: that it is there, finite, and one printable line.

    ``reason`` may have several lines.

    Raises:
        RequestError: a value is not.
    """
    for field in SCHEMAS[name]:
        column = table.column(field.name)
        problem = ""
        if column.null_count and not field.nullable:
            problem = "a value is missing"
        elif pa.types.is_floating(field.type) and not np.isfinite(column.drop_null().to_numpy()).all():
            problem = "a value is not finite"
        elif pa.types.is_string(field.type):
            breaks = "\n\t" if field.name == "reason" else ""
            texts = (
                text.translate(dict.fromkeys(map(ord, breaks))) for text in pc.unique(column).to_pylist()
            )
            problem = next(
                (f"a control character in {text!r}" for text in texts if not text.isprintable()), ""
            )
        if problem:
            refuse(folder, f"{name}.parquet", f"column {field.name}: {problem}")


# Rows ---------------------------------------------------------------------------------------------

VALUES = {"states": OUTCOMES, "stages": STAGES, "splits": SPLITS, "rules": tuple(SELECTION_RULES)}

Rule = str | tuple[str, str | Callable[[Tables], Any]]
"""A boolean a row: an expression over a table's columns (``DataFrame.eval``), or words and such an expression
or a function.
"""


def _keys(table: str) -> Rule:
    model = Base.metadata.tables[table]
    unique = [column for column in model.columns if column.unique] or model.primary_key
    keys = [NAMES.get(column.name, column.name) for column in unique]
    return f"no earlier row with the same {', '.join(keys)}", lambda t: ~t[table].duplicated(keys)


def _has_known_partition(tables: Tables) -> list[bool]:
    columns = ["hash", "dataset", "scenario", "clients"]
    partitions = set(tables["partitions"][columns].itertuples(index=False, name=None))
    runs = tables["runs"][["partition_hash", *columns[1:]]].itertuples(index=False, name=None)
    return [not run[0] or run in partitions for run in runs]


def _counts_fit(tables: Tables) -> list[bool]:
    """Whether each curve's counts are 0 to the client's test samples; a client without has no results."""
    curves, results = tables["curves"], tables["client_results"]
    test = results[results["split"] == CURVE_SPLIT]
    samples = test.groupby(["run", "client"])["samples"].max()
    clients = [np.arange(count) for count in curves["clients"]]
    keys = [np.repeat(curves["run"], curves["clients"]), np.concatenate([*clients, np.arange(0)])]
    bounds = samples.reindex(pd.MultiIndex.from_arrays(keys), fill_value=0).to_numpy()
    limits = np.split(bounds, np.cumsum(curves["clients"]))
    return [
        bool(counts.min() >= 0 and (counts.reshape(len(limit), -1).max(axis=1) <= limit).all())
        for counts, limit in zip(curves["correct"], limits, strict=False)  # the last limit is empty
    ]


def _confusions_fit(tables: Tables) -> list[bool]:
    """Whether each client's counts are those of its test samples, and the right ones its correct ones."""
    results = tables["client_results"]
    results = results[(results["split"] == CURVE_SPLIT) & (results["metric"] == ACCURACY)]
    of_client = results.set_index(["run", "stage", "rule", "client"])[["correct", "samples"]].sort_index()
    groups = {key: part.droplevel([0, 1, 2]) for key, part in of_client.groupby(level=[0, 1, 2])}
    holds = []
    for run, stage, rule, clients, classes, counts in tables["confusions"].itertuples(index=False):
        matrices = counts.reshape(clients, classes, classes).astype(np.int64)
        diagonal, items = np.trace(matrices, axis1=1, axis2=2), matrices.sum(axis=(1, 2))
        readings = groups.get((run, stage, rule), of_client.iloc[:0].droplevel([0, 1, 2]))
        readings = readings.reindex(range(clients), fill_value=0).fillna(-1).astype(np.int64)
        fits = np.array_equal(diagonal, readings["correct"]) and np.array_equal(items, readings["samples"])
        holds.append(fits and bool(counts.min() >= 0))
    return holds


def _is_array(data: bytes) -> bool:
    """Whether these are the NPY bytes (version 1.0) of an array of numbers, and no more."""
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        shape, _, kind = np.lib.format.read_array_header_1_0(file)
        size = math.prod(shape) * kind.itemsize
        if version != (1, 0) or kind.kind not in "biuf" or file.tell() + size != len(data):
            return False
        np.ndarray(shape, kind, data, file.tell())  # refuses numbers that no dimension can have
    except Exception:  # NumPy's reader raises errors of many kinds over what anybody may have written
        return False
    return len(data) <= ARRAY_BYTES


OF_COLUMN = {
    "run": ["0 <= run < run_count", "run_is_done"],
    "stage": ["stage in @stages"],
    "rule": ["rule in @rules"],
}
"""Column -> what its values keep in every table that has it, in this order and before ``RULES``."""

RULES: dict[str, list[Rule]] = {
    "environments": [
        _keys("environments"),
        (
            "hash of the description",
            lambda t: t["environments"]["description"].map(sha256) == t["environments"]["hash"],
        ),
    ],
    "partitions": [_keys("partitions")],
    "runs": [
        _keys("runs"),
        "state in @states",
        ("no negative number", lambda tables: (tables["runs"].select_dtypes("number") >= 0).all(axis=1)),
        "'2000-01-01' <= started <= '2099-12-31'",
        (
            "an environment of bundle.json",
            lambda tables: tables["runs"]["environment"].isin(tables["environments"]["hash"]),
        ),
        ("no partition_hash or one of bundle.json, of these clients", _has_known_partition),
    ],
    "client_results": [
        "split in @splits",
        "metric.str.fullmatch('[a-z][a-z0-9_]{0,63}')",
        "0 <= client < run_clients",
        "samples >= 1",
        "correct.isna() != value.isna()",
        "correct.isna() or 0 <= correct <= samples",
        "value.isna() or 0 <= value <= 1",
        _keys("client_results"),
    ],
    "curves": [
        f"split == '{CURVE_SPLIT}'",
        "rows >= 1",
        "clients == run_clients",
        "rows * clients == correct.str.len()",
        _keys("curves"),
        ("counts from 0 to the client's samples", _counts_fit),
    ],
    "artefacts": [
        _keys("artefacts"),
        (
            f"as data an NPY array of numbers of at most {ARRAY_BYTES:,} bytes",
            lambda tables: tables["artefacts"]["data"].map(_is_array),
        ),
    ],
    "confusions": [
        "clients == run_clients",
        "classes >= 1",
        ("clients * classes * classes counts", "clients * classes * classes == counts.str.len()"),
        _keys("confusions"),
        (
            "every client's test samples, and its correct predictions where both classes agree",
            _confusions_fit,
        ),
    ],
}
"""Table -> what its rows keep, in this order: a rule may rely on those above it."""


def check_rows(folder: Path, tables: Tables) -> None:
    """Check the specs and every rule.

    Raises:
        RequestError: naming the first row of which one does not hold.
    """
    runs = tables["runs"]
    for row, run in enumerate(runs.to_dict("records")):
        _check_spec(folder, row, run)
    of_run = pd.DataFrame({"run_is_done": runs["state"] == "done", "run_clients": runs["clients"]})
    for table, rules in RULES.items():
        frame = tables[table].assign(run_count=len(runs))
        if "run" in frame:
            frame = frame.join(of_run, on="run")
        of_columns = [rule for column, checks in OF_COLUMN.items() if column in frame for rule in checks]
        for rule in (*of_columns, *rules):
            words, holds = rule if isinstance(rule, tuple) else (rule, rule)
            holding_rows = frame.eval(holds, local_dict=VALUES) if isinstance(holds, str) else holds(tables)
            bad_rows = np.flatnonzero(~np.asarray(holding_rows, bool))
            if len(bad_rows):
                words = re.sub(r"@(\w+)", lambda name: ", ".join(VALUES[name[1]]), words)
                file, part = (f"{table}.parquet", "row") if table in SCHEMAS else (MANIFEST, table)
                refuse(folder, file, f"{part} {bad_rows[0]}: expected {words}")


def _check_spec(folder: Path, row: int, run: dict[Any, Any]) -> None:
    try:
        spec = RunSpec.model_validate_json(run["spec"], strict=True)
        for name, value in spec_columns(spec).items():
            if run.get(name, value) != value:
                raise ValueError(f"its {name} is not that in the column")
        if "\\" in run["spec"]:  # letters beyond ASCII are escaped, as control characters are
            plain = json.dumps(spec.tree(), ensure_ascii=False)
            if not plain.isprintable() or "\\" in plain:
                raise ValueError("a text holds a control character, a quote or a backslash")
        return
    except ValidationError as error:
        problem = first_problem(error)
    except ValueError as error:  # also of a number of so many digits that Python does not write it
        problem = str(error)
    refuse(folder, "runs.parquet", f"row {row}: spec: {problem}")
