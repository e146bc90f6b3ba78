"""The format of a bundle's tables: their columns, and the rules for their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pyarrow as pa
from pydantic import ValidationError

from bench.engine.states import OUTCOMES
from bench.errors import RequestError, first_problem
from bench.metric_names import ACCURACY
from bench.selection import RULES
from bench.spec import STAGES, RunSpec
from bench.store.tables import spec_columns

CURVE_SPLIT = "test"

TEXT, COUNT, LARGE, NUMBER = pa.string(), pa.int32(), pa.int64(), pa.float64()
COUNTS = pa.list_(pa.field("element", COUNT, nullable=False))


def _columns(*groups: tuple[str, pa.DataType]) -> pa.Schema:
    """Return columns, given in groups of one type; no column may lack a value."""
    fields = [pa.field(name, kind, nullable=False) for names, kind in groups for name in names.split()]
    return pa.schema(fields)


SCHEMAS: dict[str, pa.Schema] = {
    "runs": _columns(
        ("spec_hash spec dataset scenario", TEXT),
        ("clients", COUNT),
        ("method", TEXT),
        ("seed", LARGE),
        ("rounds", COUNT),
        ("state reason partition_hash environment", TEXT),
        ("started", pa.timestamp("us")),
        ("seconds_total seconds_client seconds_server seconds_evaluation", NUMBER),
        ("peak_memory bytes_up bytes_down", LARGE),
        ("device code_version source_hash", TEXT),
        ("method_numerics engine_numerics", COUNT),
    ),
    "client_results": _columns(("run", COUNT), ("stage split rule metric", TEXT), ("client samples", COUNT))
    .append(pa.field("correct", COUNT))
    .append(pa.field("value", NUMBER)),
    "curves": _columns(("run", COUNT), ("stage split", TEXT), ("rows clients", COUNT), ("correct", COUNTS)),
    "artefacts": _columns(("run", COUNT), ("name", TEXT), ("data", pa.binary())),
    "confusions": _columns(
        ("run", COUNT), ("stage rule", TEXT), ("clients classes", COUNT), ("counts", COUNTS)
    ),
}
"""Columns by table. ``run`` is a row number of ``runs``, from 0."""

MANIFEST = "bundle.json"


def refuse(folder: Path, file: str, problem: str) -> NoReturn:
    """Raise ``RequestError`` with the file's name and the problem."""
    raise RequestError(f"bundle {folder}: {file}: {problem}")


def check_rows(folder: Path, tables: Mapping[str, pd.DataFrame]) -> None:
    """Check the rows of every table; raise ``RequestError`` for the first row that breaks a rule."""
    for row, run in enumerate(tables["runs"].to_dict("records")):
        try:
            columns = spec_columns(RunSpec.model_validate_json(run["spec"], strict=True))
        except ValidationError as error:
            refuse(folder, "runs.parquet", f"row {row}: spec: {first_problem(error)}")
        for name, value in columns.items():
            if run.get(name, value) != value:
                refuse(folder, "runs.parquet", f"row {row}: spec: its {name} is not that in the column")
    try:
        for table, holds, expected in _rules(tables):
            bad_rows = np.flatnonzero(~np.asarray(holds, bool))
            if len(bad_rows):
                refuse(folder, f"{table}.parquet", f"row {bad_rows[0]}: expected {expected}")
    except (LookupError, ValueError) as error:
        refuse(folder, MANIFEST, f"its tables do not go together: {error}")


def _rules(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple[str, Any, str]]:
    """Yield a table's name, whether each of its rows keeps a rule, and what the rule expects."""
    runs, results, curves = tables["runs"], tables["client_results"], tables["curves"]
    numbers, is_done = runs.select_dtypes("number"), runs["state"] == "done"
    yield "runs", runs["state"].isin(OUTCOMES), f"a state of {', '.join(OUTCOMES)}"
    yield "runs", ((numbers >= 0) & (numbers < np.inf)).all(axis=1), "finite numbers from 0 on"
    is_known = runs["environment"].isin(tables["environments"]["hash"])
    is_known &= runs["partition_hash"].isin(tables["partitions"]["hash"]) | ~is_done
    yield "runs", is_known, f"an environment and, where it is done, a partition_hash of {MANIFEST}"
    for table in list(SCHEMAS)[1:]:
        yield table, tables[table]["run"].map(runs["state"]) == "done", "a run of this bundle that is done"

    correct, value, samples = results["correct"], results["value"], results["samples"]
    is_share = (correct / samples).fillna(value).between(0, 1) & (samples >= 1)
    is_share &= correct.isna() != value.isna()
    yield "client_results", is_share, "correct or value, from 0 to 1 of the samples"

    has_pair = curves.groupby("run")["stage"].transform("size") == len(STAGES)
    yield "curves", has_pair & (curves["split"] == CURVE_SPLIT), f"both stages of split {CURVE_SPLIT}"
    tests = results[(results["split"] == CURVE_SPLIT) & (results["metric"] == ACCURACY)]
    tests = tests.sort_values(["run", "stage", "rule", "client"])
    is_tested = runs.index.isin(tests["run"]) & runs.index.isin(curves["run"])
    yield "runs", is_tested | ~is_done, f"{ACCURACY} and curves of the {CURVE_SPLIT} split"
    readings = dict(list(tests.groupby(["run", "stage"])))
    fits = [_fits(curve, readings[curve.run, curve.stage]) for curve in curves.itertuples()]
    yield "curves", fits, "counts up to the samples, with what every rule has read"


def _fits(curve: Any, reading: pd.DataFrame) -> bool:
    """Return whether a curve fits: its counts are from 0 to the samples, and it holds the counts that every
    rule has read. A rule reads the last row or some row, of all clients at once or of each client.
    """
    by_rule = reading["correct"].to_numpy(np.int64).reshape(len(RULES), -1)  # every rule has the same clients
    tested = reading["client"].to_numpy()[: by_rule.shape[1]]
    samples = np.zeros(curve.clients, np.int64)
    samples[tested] = reading["samples"].iloc[: len(tested)]
    counts = curve.correct.reshape(curve.clients, curve.rows).T
    is_read = {rule: counts[:, tested] == read for rule, read in zip(sorted(RULES), by_rule, strict=True)}
    is_found = is_read["last"][-1].all() and is_read["client_best_val"].any(axis=0).all()
    for rule in ("best_val", "best_test"):
        is_found &= is_read[rule].all(axis=1).any()
    return bool(is_found and ((counts >= 0) & (counts <= samples)).all())
