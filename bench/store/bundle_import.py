"""Taking a bundle's runs into a result database: all that may be written, or nothing; and how far they
are to be trusted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from bench.errors import RequestError
from bench.metric_names import ACCURACY, Metric
from bench.metrics import OF_COUNTS
from bench.selection import RULES, Counts, client_mean
from bench.spec import STAGES, run_name
from bench.store.bundle import Bundle
from bench.store.bundle_check import CURVE_SPLIT, refuse
from bench.store.models import Environment, ImportedBundle, Partition, Run
from bench.store.queries import CLOSE, Stored
from bench.store.store import Store, id_of, now, open_store, write_numbers

GIVES_WAY = ("failed", "no_data", "oom")
"""States of a stored run that a finished imported one takes the place of."""

ROUNDING = 1e-9  # of a mean over clients, whose last digits depend on the order of summing

RUNS_AT_A_TIME = 200

NOT_COPIED = (
    "id",
    "environment_id",
    "bundle",
    "bundle_state",
    "bundle_checked",
    "bundle_sampled",
    "bundle_close",
)

Reading = tuple[str, str]
"""Stage and rule."""
Row = tuple[int, str, str, str, str, float, int]
"""Client, stage, split, rule, metric, value, samples."""


@dataclass(frozen=True)
class ImportInfo:
    """What became of a bundle's runs.

    ``added`` were not stored, ``replaced`` took the place of runs without an outcome, ``equal``
    were stored already; ``conflicts`` names those of which another outcome is stored, which stays.
    """

    added: int
    replaced: int
    equal: int
    conflicts: tuple[str, ...]


NAMES = ("dataset", "scenario", "clients", "method", "seed")


def name_of(run: Mapping[Any, Any]) -> str:
    """The name of a run, from a row of ``runs()``; the start of its hash tells variants apart."""
    return f"{run_name(*(run[name] for name in NAMES))} ({run['spec_hash'][:8]})"


# What a run came to ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Outcome:
    """State, partition and numbers of one run: ``rows`` of accuracies, ``curves`` of the test split by stage,
    ``confusions`` (test items by client, true and predicted class) by stage and rule, ``areas``, the rows of
    ``roc_auc``, and ``traffic``, the bytes up and down. Older runs have no confusions and no areas.
    """

    state: str
    partition_hash: str
    rows: tuple[Row, ...]
    curves: dict[str, NDArray[np.int32]]
    confusions: dict[Reading, NDArray[np.int32]] = field(default_factory=dict)
    areas: tuple[Row, ...] = ()
    traffic: tuple[int, int] = (0, 0)

    def same(self, other: Outcome) -> bool:
        """Whether state, partition, every accuracy and every count of the curves are equal, and, where both
        have them, every count by class and every area.
        """
        return (
            (self.state, self.partition_hash, self.rows) == (other.state, other.partition_hash, other.rows)
            and _equal_arrays(self.curves, other.curves)
            and (not self.has_classes_as(other) or _equal_arrays(self.confusions, other.confusions))
            and (not (self.areas and other.areas) or self.areas == other.areas)
        )

    def has_classes_as(self, other: Outcome) -> bool:
        """Whether both have counts by class."""
        return bool(self.confusions) and bool(other.confusions)

    def other_metrics(self) -> dict[tuple[Metric, Reading], float]:
        """Mean over clients of every metric beside accuracy, in percent, by metric, stage and rule: those of
        ``metrics.OF_COUNTS`` where there are counts by class, and ``roc_auc`` where there are areas.
        """
        means: dict[tuple[Metric, Reading], float] = {
            (metric, reading): 100 * float(np.nanmean(of_counts(counts)))
            for reading, counts in self.confusions.items()
            for metric, of_counts in OF_COUNTS.items()
            if metric != ACCURACY
        }
        areas: dict[Reading, list[float]] = {}
        for _, stage, _, rule, _, value, _ in self.areas:
            areas.setdefault((stage, rule), []).append(100 * value)
        return means | {("roc_auc", reading): float(np.mean(values)) for reading, values in areas.items()}

    def tested(self) -> dict[Reading, tuple[float, int]]:
        """Correct predictions and samples of the test split over all clients, by stage and rule."""
        counts: dict[Reading, tuple[float, int]] = {}
        for _, stage, split, rule, metric, value, samples in self.rows:
            if split == CURVE_SPLIT and metric == ACCURACY:
                correct, total = counts.get((stage, rule), (0.0, 0))
                counts[stage, rule] = (correct + value * samples, total + samples)
        return counts


def _equal_arrays(first: Mapping[Any, NDArray[np.int32]], second: Mapping[Any, NDArray[np.int32]]) -> bool:
    return first.keys() == second.keys() and all(
        np.array_equal(array, second[key]) for key, array in first.items()
    )


def outcomes(source: Store | Bundle, runs: pd.DataFrame) -> Iterator[tuple[dict[str, Any], Outcome]]:
    """Every run (rows of ``runs()`` of the source, as dictionaries) with its outcome, in order."""
    for start in range(0, len(runs), RUNS_AT_A_TIME):
        part = runs.iloc[start : start + RUNS_AT_A_TIME]
        rows: dict[int, list[Row]] = {}
        areas: dict[int, list[Row]] = {}
        for run, *values in source.client_results(part["id"]).itertuples(index=False, name=None):
            row: Row = tuple(values)
            (rows if row[4] == ACCURACY else areas).setdefault(run, []).append(row)
        curves: dict[int, dict[str, NDArray[np.int32]]] = {}
        for (run, stage), counts in source.curves(part["id"], CURVE_SPLIT).items():
            curves.setdefault(run, {})[stage] = counts
        confusions: dict[int, dict[Reading, NDArray[np.int32]]] = {}
        for (run, stage, rule), counts in source.confusions(part["id"]).items():
            confusions.setdefault(run, {})[stage, rule] = counts
        for run_row in part.to_dict("records"):
            number = int(run_row["id"])
            outcome = Outcome(
                run_row["state"],
                run_row["partition_hash"],
                tuple(rows.get(number, ())),
                curves.get(number, {}),
                confusions.get(number, {}),
                tuple(areas.get(number, ())),
                (int(run_row["bytes_up"]), int(run_row["bytes_down"])),
            )
            yield {str(name): value for name, value in run_row.items()}, outcome


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
    correct = np.rint(results["value"] * results["samples"]).astype(np.int64)
    for run in results.loc[correct / results["samples"] != results["value"], "run_id"]:
        require(False, run, f"{ACCURACY} without a count of correct predictions")
    test = results.assign(correct=correct)[results["split"] == CURVE_SPLIT]
    tested_runs = set(test["run_id"])
    for run, partition in zip(done_runs["id"], done_runs["partition_hash"], strict=True):
        require(partition != "", run, "a finished run needs a partition_hash")
        require(run in tested_runs, run, f"a finished run needs {ACCURACY} on the {CURVE_SPLIT} split")
    readings = results.groupby(["run_id", "split", "client"])["samples"].agg(["size", "min", "max"])
    for (run, split, client), size, minimum, maximum in readings.itertuples(name=None):
        place = f"client {client}, {split}"
        is_complete = size == len(STAGES) * len(RULES)
        require(is_complete, run, f"{place}: expected every stage and rule, got {size} values")
        require(minimum == maximum, run, f"{place}: samples differ, {minimum} and {maximum}")
    curves = bundle.curves(done_runs["id"], CURVE_SPLIT)
    for key, part in test.groupby(["run_id", "stage", "rule"]):
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
    bundle has them. A bundle of which no run is written leaves nothing.

    Raises:
        RequestError: its numbers do not agree among themselves, a partition is known as that of
            other clients, or the database cannot be written; nothing is written then.
    """
    if not bundle.name.isprintable():
        raise RequestError(f"bundle {bundle.name!r}: a control character in its name: rename the folder")
    check_consistent(bundle)
    runs = bundle.runs()
    with open_store(url, create=True) as store, store.transaction() as session:
        _check_partitions(store, bundle)
        stored_runs = store.states()
        states = runs["spec_hash"].map({digest: row.state for digest, row in stored_runs.items()})
        is_new, gives_way = states.isna(), states.isin(GIVES_WAY) & (runs["state"] == "done")
        other_runs = runs[~(is_new | gives_way)]
        conflicts = _conflicts(store, bundle, other_runs)
        _write(session, bundle, runs[is_new | gives_way], stored_runs)
    return ImportInfo(int(is_new.sum()), int(gives_way.sum()), len(other_runs) - len(conflicts), conflicts)


def _check_partitions(store: Store, bundle: Bundle) -> None:
    """A hash names the same clients everywhere."""
    names = ["hash", "dataset", "scenario", "clients"]
    pairs = bundle.partitions()[names].merge(store.partitions()[names], on="hash", suffixes=("", "_stored"))
    for name in names[1:]:
        for digest in pairs.loc[pairs[name] != pairs[f"{name}_stored"], "hash"]:
            raise RequestError(
                f"bundle {bundle.folder}: partition {digest[:12]} has another {name} than in {store.url}"
            )


def _conflicts(store: Store, bundle: Bundle, runs: pd.DataFrame) -> tuple[str, ...]:
    """The runs of which another outcome is stored, in words."""
    stored_runs = store.runs()
    stored_runs = stored_runs[stored_runs["spec_hash"].isin(set(runs["spec_hash"]))]
    bundle_runs = runs.set_index("spec_hash", drop=False).loc[stored_runs["spec_hash"]]
    conflicts = []
    for (row, stored_outcome), (run, outcome) in zip(
        outcomes(store, stored_runs), outcomes(bundle, bundle_runs), strict=True
    ):
        if not stored_outcome.same(outcome):
            numbers = "another one" if stored_outcome.state == outcome.state else f"{outcome.state}"
            origin = f"that of bundle {row['bundle']}" if row["bundle"] else "our own"
            conflicts.append(
                f"{name_of(run)}: stored is {stored_outcome.state}, {origin}; the bundle has {numbers}"
            )
    return tuple(conflicts)


def _write(session: Session, bundle: Bundle, runs: pd.DataFrame, stored_runs: Mapping[str, Stored]) -> None:
    """Write runs and what belongs to them, in the place of those that are stored."""
    if runs.empty:
        return
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
    for values in runs.to_dict("records"):
        stored_run = stored_runs.get(values["spec_hash"])
        if stored_run is not None:
            session.execute(delete(Run).where(Run.id == stored_run.id))
        run = Run(
            **{str(name): value for name, value in values.items() if name not in NOT_COPIED}
            | {"started": values["started"].to_pydatetime()},
            id=None if stored_run is None else stored_run.id,
            environment_id=environments[values["environment_id"]],
            bundle_id=bundle_id,
        )
        session.add(run)
        session.flush()
        ids[values["id"]] = run.id
    for start in range(0, len(runs), RUNS_AT_A_TIME):
        numbers = runs["id"].iloc[start : start + RUNS_AT_A_TIME].tolist()
        results = bundle.client_results(numbers)
        curves = bundle.curves(numbers, CURVE_SPLIT).items()
        confusions = bundle.confusions(numbers).items()
        write_numbers(
            session,
            results.assign(run_id=results["run_id"].map(ids)).to_dict("records"),
            {(ids[run], stage, CURVE_SPLIT): counts for (run, stage), counts in curves},
            {(ids[run], stage, rule): counts for (run, stage, rule), counts in confusions},
            {
                (ids[run], name): bundle.artefact(run, name)
                for run in numbers
                for name in bundle.artefact_names(run)
            },
        )


# Trust --------------------------------------------------------------------------------------------

Finding = Literal["equal", "close", "differs"]
"""Of a run made again: every count is equal; accuracies agree within the tolerance; or neither."""


def mark(store: Store, digest: str, findings: Mapping[str, tuple[Finding, float]]) -> str | None:
    """Store what came of runs (spec hash -> finding, and by how many points the stated accuracy is above) of
    the bundle with this hash.

    Findings are kept for every run that was ever made again, the latest of each: one that differs
    is not outweighed by drawing others. Returned is the bundle's state: ``contradicted`` if one of
    them differs, else ``verified``; None where no such bundle was imported. When that was is stored, too.
    Raises as ``Store.transaction``.
    """
    with store.transaction() as session:
        row = session.scalar(select(ImportedBundle).where(ImportedBundle.hash == digest))
        if row is None:
            return None
        sample: dict[str, str] = json.loads(row.sample)
        for spec_hash, (finding, points) in findings.items():
            sample[spec_hash] = f"{CLOSE}, {points:+.2f} points" if finding == CLOSE else finding
        row.sample = json.dumps(sample, sort_keys=True)
        row.checked = now()
        row.state = "contradicted" if "differs" in sample.values() else "verified"
        return row.state
