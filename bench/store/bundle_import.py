"""Taking a bundle's runs into a result database: all that may be written, or nothing; and how far they
are to be trusted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from bench.engine.states import SETTLED
from bench.metric_names import ACCURACY
from bench.selection import RULES, Counts, client_mean
from bench.spec import STAGES, run_name
from bench.store.bundle import Bundle
from bench.store.bundle_check import CURVE_SPLIT, refuse
from bench.store.models import Environment, ImportedBundle, Partition, Run
from bench.store.store import Store, Stored, id_of, now, open_store, replace_run, write_rows

ROUNDING = 1e-9  # of a mean over clients, whose last digits depend on the order of summing

RUNS_AT_A_TIME = 200

COPIED = {column.name for column in Run.__table__.columns} - {"id", "environment_id", "bundle_id", "started"}
"""Columns of a run that are stored as the bundle has them."""

NAMES = ("dataset", "scenario", "clients", "method", "seed")


class ImportInfo(NamedTuple):
    """How many of a bundle's runs were not stored, took the place of runs without an outcome, and were left
    out as there is a run with an outcome already.
    """

    added: int
    replaced: int
    skipped: int


def name_of(run: Mapping[Any, Any]) -> str:
    """The name of a run, from a row of ``runs()``; the start of its hash tells variants apart."""
    return f"{run_name(*(run[name] for name in NAMES))} ({run['spec_hash'][:8]})"


# Whether the numbers agree among themselves ---------------------------------------------------------


def check_consistent(bundle: Bundle) -> None:
    """Check of every ``done`` run what a report can do without, and an import cannot: every reading of
    every client is there, all count the same samples, and what a rule chose is in the curve it chose from.

    Raises:
        RequestError: one has no partition, lacks a reading or a curve, counts other samples from
            one reading to the next, or has an accuracy that is no count or not from its curve.
    """

    def require(holds: bool, run: int, problem: str) -> None:
        if not holds:
            refuse(bundle.folder, "client_results.parquet", f"run {run - 1}: {problem}")

    done_runs = bundle.runs(state="done")
    results = bundle.client_results(done_runs["id"], metric=ACCURACY)
    results["correct"] = np.rint(results["value"] * results["samples"]).astype(np.int64)
    for run in results.loc[results["correct"] / results["samples"] != results["value"], "run_id"]:
        require(False, run, f"{ACCURACY} without a count of correct predictions")
    tests = results[results["split"] == CURVE_SPLIT]
    tested_runs = set(tests["run_id"])
    for run, partition in zip(done_runs["id"], done_runs["partition_hash"], strict=True):
        require(partition != "", run, "a finished run needs a partition_hash")
        require(run in tested_runs, run, f"a finished run needs {ACCURACY} on the {CURVE_SPLIT} split")
    readings = results.groupby(["run_id", "split", "client"])["samples"].agg(["size", "nunique"])
    for (run, split, client), size, numbers in readings.itertuples(name=None):
        is_complete = size == len(STAGES) * len(RULES) and numbers == 1
        problem = f"expected every stage and rule, with the same samples; got {size} values"
        require(is_complete, run, f"client {client}, {split}: {problem}")
    curves = bundle.curves(done_runs["id"], CURVE_SPLIT)
    for key, part in tests.groupby(["run_id", "stage", "rule"]):
        run, stage, rule = cast("tuple[int, str, str]", key)
        require((run, stage) in curves, run, f"{stage}: a finished run needs the curve of the test split")
        clients, counts, samples = (part[name].to_numpy() for name in ("client", "correct", "samples"))
        holds_choice = is_choice_of(rule, curves[run, stage][:, clients], counts, samples.astype(np.int32))
        require(holds_choice, run, f"{stage}: the results of rule {rule} are not from its curve")


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


# Writing ------------------------------------------------------------------------------------------


def import_bundle(url: str, bundle: Bundle) -> ImportInfo:
    """Write a bundle's runs in one transaction, by the rules of ``docs/results-format.md``.

    The database at ``url`` is made where it is missing. Times, versions and numerics stay as the
    bundle has them. A settled run that is stored stays. A bundle of which no run is written leaves nothing.

    Raises:
        RequestError: its numbers do not agree among themselves, or the database cannot be written; nothing
            is written then.
    """
    check_consistent(bundle)
    runs = bundle.runs()
    with open_store(url, create=True) as store, store.transaction() as session:
        old_runs = store.states()
        states = runs["spec_hash"].map({digest: row.state for digest, row in old_runs.items()})
        is_new = states.isna()
        gives_way = ~is_new & ~states.isin(SETTLED) & runs["state"].isin(SETTLED)
        is_written = is_new | gives_way
        if is_written.any():
            _write(session, bundle, runs[is_written], old_runs)
    return ImportInfo(int(is_new.sum()), int(gives_way.sum()), int((~is_written).sum()))


def _write(session: Session, bundle: Bundle, runs: pd.DataFrame, old_runs: Mapping[str, Stored]) -> None:
    """Write runs and what belongs to them, in the place of those that are stored."""
    bundle_id = id_of(
        session,
        ImportedBundle,
        bundle.hash,
        name=bundle.name,
        source=bundle.source,
        imported=now(),
        state="unverified",
        sample="{}",
    )
    environments = {
        number: id_of(session, Environment, digest, description=text)
        for number, digest, text in bundle.environments().itertuples(index=False)
        if number in set(runs["environment_id"])
    }
    for row in bundle.partitions().to_dict("records"):
        if row["hash"] in set(runs["partition_hash"]) and session.get(Partition, row["hash"]) is None:
            session.add(Partition(**{str(name): value for name, value in row.items()}))
    ids: dict[int, int] = {}
    for row in runs.to_dict("records"):
        values = {str(name): value for name, value in row.items() if name in COPIED}
        values |= {
            "started": row["started"].to_pydatetime(),
            "environment_id": environments[row["environment_id"]],
            "bundle_id": bundle_id,
        }
        ids[row["id"]] = replace_run(session, old_runs.get(row["spec_hash"]), values).id
    for start in range(0, len(runs), RUNS_AT_A_TIME):
        numbers = runs["id"].iloc[start : start + RUNS_AT_A_TIME].tolist()
        for name in ("client_results", "curves", "confusions", "artefacts"):
            rows = bundle.table(name, run_id=numbers)
            rows = rows.assign(run_id=rows["run_id"].map(ids))
            write_rows(session, name, rows.to_dict("records"))


# Trust --------------------------------------------------------------------------------------------

Finding = Literal["equal", "close", "differs"]
"""Of a run made again: every count is equal; accuracies agree within the tolerance; or neither."""


def mark(store: Store, digest: str, findings: Mapping[str, Finding]) -> str | None:
    """Store what came of runs (spec hash -> finding) of the bundle with this hash.

    Findings are kept for every run that was ever made again, the latest of each: one that differs
    is not outweighed by drawing others. Returned is the bundle's state: ``contradicted`` if one of
    them differs, else ``verified``; None where no such bundle was imported. When that was is stored, too.
    Raises as ``Store.transaction``.
    """
    with store.transaction() as session:
        row = session.scalar(select(ImportedBundle).where(ImportedBundle.hash == digest))
        if row is None:
            return None
        sample: dict[str, str] = json.loads(row.sample) | findings
        row.sample = json.dumps(sample, sort_keys=True)
        row.checked = now()
        row.state = "contradicted" if "differs" in sample.values() else "verified"
        return row.state
