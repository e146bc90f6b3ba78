"""Making a sample of a bundle's runs again, and comparing what comes out with what it states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from bench import streams
from bench.dataset import DATASETS
from bench.errors import RequestError
from bench.federation.build import build as build_federation
from bench.spec import RunSpec
from bench.store.bundle import Bundle
from bench.store.bundle_import import Finding, Outcome, Reading, check_consistent, outcomes, run_name
from bench.store.queries import filter_known_runs
from bench.sweep import fingerprint
from bench.sweep.execution import execute
from bench.sweep.federations import Build
from bench.sweep.order import Execute
from bench.sweep.policy import SETTLED, Slots, sort_of
from bench.sweep.reporters import Reporter
from bench.sweep.run import temporary_runs

TOLERANCE, LOOSE = 0.5, 1.0
"""Points by which the pooled test accuracy may differ: of rule ``best_val``, and of the others, which
scatter more. Other machines sum in another order, and a hundred rounds carry the last digit far."""

PREDICTIONS = 2
"""So many test predictions may always differ: on a small test split each is worth a point or more."""

ROUNDING = 1e-9

NOT_MADE = "not made: others of its method failed alike"


@dataclass(frozen=True)
class Check:
    """What came of one run. ``finding`` is None where it could not be made here."""

    spec_hash: str
    run: str
    finding: Finding | None
    detail: str


def draw(bundle: Bundle, count: int, seed: int, filters: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """A sample without replacement of the bundle's ``done`` runs that the filters leave, each as likely.

    Rows of ``Bundle.runs``. It follows from the seed, the filters and the bundle's content.

    Raises:
        RequestError: the bundle has no ``done`` run, or none that the filters leave.
    """
    runs = bundle.runs(state="done").sort_values("spec_hash", ignore_index=True)
    if runs.empty:
        raise RequestError(f"bundle {bundle.folder}: no run in state done, nothing to verify")
    runs = filter_known_runs(runs, filters or {})
    positions = streams.generator(seed, "verify", bundle.hash).permutation(len(runs))[:count]
    return runs.iloc[sorted(positions)].reset_index(drop=True)


def obstacles(sample: pd.DataFrame, data_gap: Callable[[str], str]) -> list[Check]:
    """The runs of a sample that cannot be made here, and why.

    ``data_gap`` says why a data set's raw files are not at hand; empty where they are.
    """
    checks = [
        Check(run["spec_hash"], run_name(run), None, _obstacle(run, data_gap))
        for run in sample.to_dict("records")
    ]
    return [check for check in checks if check.detail]


def _obstacle(run: Mapping[Any, Any], data_gap: Callable[[str], str]) -> str:
    dataset, method = str(run["dataset"]), str(run["method"])
    try:
        DATASETS.named(dataset)
        code = fingerprint.code(method)
    except RequestError as error:
        return str(error)
    numerics = {"method": code.method_numerics, "engine": code.engine_numerics}
    for part, number in numerics.items():
        if run[f"{part}_numerics"] != number:
            return f"made with {part} numerics {run[f'{part}_numerics']}, here is {number}"
    return data_gap(dataset)


def make_again(
    bundle: Bundle,
    sample: pd.DataFrame,
    roots: tuple[Path, ...],
    slots: Slots,
    reporter: Reporter,
    execute: Execute = execute,
    build: Build = build_federation,
) -> list[Check]:
    """Run a sample as a sweep does, into a database that is thrown away, and compare.

    Raises:
        RequestError: the bundle's numbers do not agree among themselves, or a federation cannot be
            what the bundle says.
    """
    check_consistent(bundle)
    specs = map(RunSpec.model_validate_json, sample["spec"])
    with temporary_runs(specs, roots, slots, reporter, execute, build) as store:
        rows = store.runs().set_index("spec_hash", drop=False)
        part = sample[sample["spec_hash"].isin(rows.index)]
        pairs = zip(outcomes(bundle, part), outcomes(store, rows.loc[part["spec_hash"]]), strict=True)
        findings = {
            run["spec_hash"]: compare(
                bundle_outcome, new_outcome, str(new_run["reason"]), (run["device"], new_run["device"])
            )
            for (run, bundle_outcome), (new_run, new_outcome) in pairs
        }
    return [
        Check(run["spec_hash"], run_name(run), *findings.get(run["spec_hash"], (None, NOT_MADE)))
        for run in sample.to_dict("records")
    ]


def compare(
    bundle_outcome: Outcome, new_outcome: Outcome, reason: str = "", devices: tuple[str, str] = ("", "")
) -> tuple[Finding | None, str]:
    """How a run that was made again (and why it ended, if it did) compares with what a bundle states.

    ``equal``: every count is the same. ``close``: for every stage and rule the pooled test accuracy is
    within ``TOLERANCE`` (``LOOSE`` but for ``best_val``) or within ``PREDICTIONS`` of each other. What is
    further apart, or ended otherwise, ``differs``, unless one of the two ``devices`` was a GPU and the other
    a CPU: then nothing can be told, since roundings alone go as far. Other clients always differ.
    """
    if new_outcome.state not in SETTLED:  # that says something about this machine
        return None, f"it ended here as {new_outcome.state}: {reason}"
    if new_outcome.partition_hash != bundle_outcome.partition_hash:
        hashes = f"partition {bundle_outcome.partition_hash[:12]}, here {new_outcome.partition_hash[:12]}"
        return "differs", f"other clients: {hashes}"
    difference, suffix = _difference(*map(sort_of, devices))
    if new_outcome.state != bundle_outcome.state:
        return difference, f"it ended here as {new_outcome.state}: {reason}{suffix}"
    if new_outcome.same(bundle_outcome):
        return "equal", "every count is the same"
    sums, recount = bundle_outcome.tested(), new_outcome.tested()
    if {key: total for key, (_, total) in sums.items()} != {
        key: total for key, (_, total) in recount.items()
    }:
        return "differs", "other stages, rules or numbers of test samples"
    gaps = [_gap(reading, sums[reading][0], *recount[reading]) for reading in sums]
    _, detail = max(gaps)
    if all(excess <= ROUNDING for excess, _ in gaps):
        return "close", detail
    return difference, f"{detail}{suffix}"


def _difference(stated_sort: str, new_sort: str) -> tuple[Finding | None, str]:
    """What numbers that do not agree mean, given the sorts of device, and how that is said."""
    if {stated_sort, new_sort} != {"cpu", "cuda"}:
        return "differs", ""
    return None, f"; made on {stated_sort} and here on {new_sort}, which can do that"


def _gap(reading: Reading, correct: float, recount: float, samples: int) -> tuple[float, str]:
    """Points beyond what is allowed (negative: within), and the reading in words."""
    stage, rule = reading
    limit = max(TOLERANCE if rule == "best_val" else LOOSE, 100 * PREDICTIONS / samples)
    share, new_share = 100 * correct / samples, 100 * recount / samples
    words = f"test accuracy {share:.2f} %, here {new_share:.2f} % ({stage} model, rule {rule})"
    return abs(share - new_share) - limit, f"{words}; {limit:.2f} points are allowed"


def outcome(checks: Sequence[Check]) -> str:
    """``contradicted`` if a run differs, ``agreed`` if every one was made and none does, else
    ``incomplete``.
    """
    findings = [check.finding for check in checks]
    if "differs" in findings:
        return "contradicted"
    return "agreed" if all(findings) else "incomplete"
