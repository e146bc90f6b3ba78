"""Whether the numbers of a bundle's finished runs agree among themselves.

What ``bundle_check`` leaves open because a report can be made without it, and an import cannot:
every reading of every client is there, all readings count the same samples, and what a rule chose
is to be found in the curve that it chose from.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.selection import RULES, Counts, client_mean
from bench.spec import STAGES
from bench.store.bundle import Bundle
from bench.store.bundle_files import BundleFile
from bench.store.bundle_format import CURVE_SPLIT
from bench.store.store import METRIC

ROUNDING = 1e-9  # of a mean over clients, whose last digits depend on the order of summing

Fits = Callable[[Counts, NDArray[np.int64], NDArray[np.int64]], bool]
"""Whether the counts of the clients with samples can be what a rule read from their curve."""


def _last(curve: Counts, correct: NDArray[np.int64], samples: NDArray[np.int64]) -> bool:
    return bool((curve[-1] == correct).all())


def _one_row(curve: Counts, correct: NDArray[np.int64], samples: NDArray[np.int64]) -> bool:
    return bool((curve == correct).all(axis=1).any())


def _best_row(curve: Counts, correct: NDArray[np.int64], samples: NDArray[np.int64]) -> bool:
    means = client_mean(curve, samples.astype(np.int32))
    return bool(((curve == correct).all(axis=1) & (means >= means.max() - ROUNDING)).any())


def _any_row(curve: Counts, correct: NDArray[np.int64], samples: NDArray[np.int64]) -> bool:
    return bool((curve == correct).any(axis=0).all())


FITS: dict[str, Fits] = {
    "best_val": _one_row,
    "last": _last,
    "best_test": _best_row,
    "client_best_val": _any_row,
}
"""Rule of ``bench.selection`` -> its test; validation curves are not in a bundle."""


def check_consistent(bundle: Bundle) -> None:
    """Check every ``done`` run of a bundle.

    Raises:
        RequestError: one has no partition, lacks a reading or a curve, counts other samples from
            one reading to the next, or has an accuracy that is no count or not from its curve.
    """
    runs, results = (BundleFile(bundle.folder, f"{name}.parquet") for name in ("runs", "client_results"))
    done = bundle.runs(state="done")
    for run, digest in zip(done["id"], done["partition_hash"], strict=True):
        runs.require(digest != "", f"row {run - 1}: a finished run needs a partition_hash")
    rows = bundle.client_results(done["id"])
    rows = rows[rows["metric"] == METRIC]
    _check_readings(results, done, rows)
    correct = np.rint(rows["value"] * rows["samples"]).astype(np.int64)
    for run in rows.loc[correct / rows["samples"] != rows["value"], "run_id"]:
        results.refuse(f"run {run - 1}: {METRIC} without a count of correct predictions")
    test = rows.assign(correct=correct)[rows["split"] == CURVE_SPLIT]
    for _, part in test.groupby(["run_id", "stage", "rule"]):
        _check_curve(bundle, part)


def _check_readings(file: BundleFile, done: pd.DataFrame, rows: pd.DataFrame) -> None:
    lacking = done.loc[~done["id"].isin(rows.loc[rows["split"] == CURVE_SPLIT, "run_id"]), "id"]
    for run in lacking:
        file.refuse(f"run {run - 1}: a finished run needs {METRIC} on the {CURVE_SPLIT} split")
    readings = rows.groupby(["run_id", "split", "client"])["samples"].agg(["size", "min", "max"])
    for (run, split, client), size, least, most in readings.itertuples(name=None):
        where = f"run {run - 1}, client {client}, {split}"
        complete = size == len(STAGES) * len(RULES)
        file.require(complete, f"{where}: expected every stage and rule, got {size} values")
        file.require(least == most, f"{where}: samples differ, {least} and {most}")


def _check_curve(bundle: Bundle, part: pd.DataFrame) -> None:
    """``part``: the test results of one run, stage and rule."""
    run, stage, rule = part["run_id"].tolist()[0], part["stage"].tolist()[0], part["rule"].tolist()[0]
    file = BundleFile(bundle.folder, "curves.parquet")
    where = f"run {run - 1}, {stage}"
    try:
        curve = bundle.curve(run, stage, CURVE_SPLIT)
    except KeyError:
        file.refuse(f"{where}: a finished run needs the curve of the {CURVE_SPLIT} split")
    fits = FITS[rule](curve[:, part["client"]], part["correct"].to_numpy(), part["samples"].to_numpy())
    file.require(fits, f"{where}: the results of rule {rule} are not from this curve")
