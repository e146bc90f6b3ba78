"""What the tables of a bundle are: their columns, and the rules that their rows keep."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import ValidationError
from sqlalchemy import BigInteger, Column

from bench.engine.states import OUTCOMES
from bench.errors import RequestError, first_problem
from bench.metric_names import ACCURACY
from bench.selection import RULES, Counts, client_mean
from bench.spec import STAGES, RunSpec, sha256
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
"""Columns that have another name than in the database, whose ids are its own."""

NOT_OF_A_RUN = ("id", "cell", "traceback", "environment_id", "bundle_id")
"""Columns of ``runs`` that are of one database or machine, or follow from the spec."""


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

ROUNDING = 1e-9  # of a mean over clients, whose last digits depend on the order of summing

Rule = tuple[str, Any, str]
"""A table, whether each of its rows keeps the rule, and what the rule expects, in words."""


def check_rows(folder: Path, tables: Mapping[str, pd.DataFrame]) -> None:
    """Check the rows of every file, and of ``environments`` and ``partitions``, which stand in
    ``bundle.json``; every run that is ``done`` has all of its results.

    Raises:
        RequestError: naming the first row that breaks a rule.
    """
    for row, run in enumerate(tables["runs"].to_dict("records")):
        _check_spec(folder, row, run)
    for table, holds, expected in _rules(tables):
        bad_rows = np.flatnonzero(~np.asarray(holds, bool))
        if len(bad_rows):
            refuse(folder, f"{table}.parquet", f"row {bad_rows[0]}: expected {expected}")


def _check_spec(folder: Path, row: int, run: dict[Any, Any]) -> None:
    try:
        spec = RunSpec.model_validate_json(run["spec"], strict=True)
        columns = spec_columns(spec)
    except ValidationError as error:
        refuse(folder, "runs.parquet", f"row {row}: spec: {first_problem(error)}")
    for name, value in columns.items():
        if run.get(name, value) != value:
            refuse(folder, "runs.parquet", f"row {row}: spec: its {name} is not that in the column")


def _rules(tables: Mapping[str, pd.DataFrame]) -> Iterator[Rule]:
    """The rules; those of the results hold before those of the counts are looked at."""
    runs, results, curves, artefacts, confusions = (tables[name] for name in SCHEMAS)
    environments, numbers = tables["environments"], runs.select_dtypes("number")
    known = environments.loc[environments["description"].map(sha256) == environments["hash"], "hash"]
    has_partition = runs["partition_hash"].isin(tables["partitions"]["hash"])
    needs_none = (runs["partition_hash"] == "") & (runs["state"] != "done")
    for table in SCHEMAS:
        yield table, ~tables[table].duplicated(KEYS[table]), f"one row of a {', '.join(KEYS[table])}"
    yield "runs", runs["state"].isin(OUTCOMES), f"a state of {', '.join(OUTCOMES)}"
    yield "runs", ((numbers >= 0) & (numbers < np.inf)).all(axis=1), "finite numbers from 0 on"
    yield "runs", runs["environment"].isin(known), f"an environment of {MANIFEST}, with its hash"
    yield "runs", has_partition | needs_none, f"a partition_hash of {MANIFEST}"
    for table in list(SCHEMAS)[1:]:
        yield table, tables[table]["run"].map(runs["state"]) == "done", "a run of this bundle that is done"

    # Results
    correct, value, samples = results["correct"], results["value"], results["samples"]
    share = (correct / samples).fillna(value)
    is_known = results["stage"].isin(STAGES) & results["rule"].isin(RULES)
    is_client = results["client"].between(0, results["run"].map(runs["clients"]) - 1)
    is_share = share.between(0, 1) & (samples >= 1) & (correct.isna() != value.isna())
    of_a_client = results.groupby(["run", "split", "client", "metric"])["samples"]
    is_complete = (of_a_client.transform("size") == len(STAGES) * len(RULES)) & correct.notna()
    is_complete &= of_a_client.transform("nunique") == 1
    is_test = (results["split"] == CURVE_SPLIT) & (results["metric"] == ACCURACY)
    tests = results[is_test].sort_values(["run", "stage", "rule", "client"])
    yield "client_results", is_known & is_client, "a stage, a rule and a client of the run"
    yield "client_results", is_share, "correct or value, from 0 to 1 of the samples"
    yield (
        "client_results",
        is_complete | (results["metric"] != ACCURACY),
        f"{ACCURACY} as counts of the same samples in every stage and rule",
    )
    is_tested = runs.index.isin(tests["run"]) & runs.index.isin(curves["run"])
    yield "runs", is_tested | (runs["state"] != "done"), f"{ACCURACY} and curves of the {CURVE_SPLIT} split"

    # Curves, arrays and counts by class
    readings = dict(list(tests.groupby(["run", "stage"])))
    for table, rows in (("curves", curves), ("confusions", confusions)):
        is_known = rows["stage"].isin(STAGES) & (rows["clients"] == rows["run"].map(runs["clients"]))
        yield table, is_known, "a stage and the clients of the run"
    has_pair = curves.groupby("run")["stage"].transform("size") == len(STAGES)
    yield "curves", has_pair & (curves["split"] == CURVE_SPLIT), f"both stages of split {CURVE_SPLIT}"
    sizes = curves["rows"] * curves["clients"]
    yield "curves", (sizes > 0) & (sizes == curves["correct"].str.len()), "rows times clients counts"
    by_area = set(runs.index[runs["spec"].str.contains('"metric":"roc_auc"', regex=False)])
    yield (
        "curves",
        _are_curves(curves, readings, by_area),
        "counts up to the samples, with what every rule has read",
    )
    yield "artefacts", artefacts["data"].map(_is_array), "an NPY array of numbers"
    sizes = confusions["clients"] * confusions["classes"].astype(float) ** 2
    yield "confusions", (sizes > 0) & (sizes == confusions["counts"].str.len()), "counts of every class"


def _are_curves(
    curves: pd.DataFrame, readings: Mapping[Any, pd.DataFrame], by_area: Collection[int]
) -> list[bool]:
    """Whether the counts of each curve are 0 to the samples, and hold what every rule has read.

    Of runs ``by_area`` the rules compare areas under the ROC curve, which a curve does not tell.
    """
    fits = []
    for run, stage, rows, clients, correct in zip(
        *(curves[name] for name in ("run", "stage", "rows", "clients", "correct")), strict=True
    ):
        reading = readings[run, stage]  # every rule has the same clients
        by_rule = reading["correct"].to_numpy(np.int64).reshape(len(RULES), -1)
        tested = reading["client"].to_numpy()[: by_rule.shape[1]]
        samples = np.zeros(clients, np.int32)
        samples[tested] = reading["samples"].iloc[: len(tested)]
        curve = correct.reshape(clients, rows).T
        are_choices = [
            is_choice_of(
                "best_val" if run in by_area and rule == "best_test" else rule,
                curve[:, tested],
                counts,
                samples[tested],
            )
            for rule, counts in zip(sorted(RULES), by_rule, strict=True)
        ]
        fits.append(all(are_choices) and bool(((curve >= 0) & (curve <= samples)).all()))
    return fits


def is_choice_of(rule: str, curve: Counts, correct: NDArray[np.int64], samples: NDArray[np.int32]) -> bool:
    """Whether a rule may have read these counts of clients with samples ``[clients]`` from their curve.

    Validation curves are not in a bundle: what was chosen by them has to be some row, of all clients or
    of each.
    """
    equal_counts = curve == correct
    if rule == "last":
        return bool(equal_counts[-1].all())
    if rule == "client_best_val":
        return bool(equal_counts.any(axis=0).all())
    equal_rows = equal_counts.all(axis=1)
    if rule == "best_test":
        means = client_mean(curve, samples)
        equal_rows &= means >= means.max() - ROUNDING
    return bool(equal_rows.any())


def _is_array(data: bytes) -> bool:
    try:
        return unpack_array(data).dtype.kind in "biuf"
    except Exception:  # NumPy's reader raises errors of many kinds over what anybody may have written
        return False
