"""Repeat a sample of a bundle's runs: draw the sample, make its runs again, compare the results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from bench import streams
from bench.engine.states import SETTLED
from bench.errors import RequestError
from bench.federation.build import build as build_federation
from bench.grids import Planned
from bench.metric_names import ACCURACY
from bench.runner import fingerprint
from bench.runner.display import Display
from bench.runner.execution import Build, execute
from bench.runner.plan import make_plan, sort_of
from bench.runner.run import Sweep
from bench.runner.workers import Execute, Pool
from bench.spec import RunSpec, run_name
from bench.store import open_store
from bench.store.bundle import Bundle
from bench.store.bundle_check import CURVE_SPLIT
from bench.store.tables import Tables

TOLERANCE, LOOSE = 0.5, 1.0
"""Largest difference of the pooled test accuracy in points: for rule ``best_val``, and for other rules, which
scatter more. Other machines sum in another order; a hundred rounds enlarge differences in the last digit."""

PREDICTIONS = 2
"""So many test predictions may always differ: on a small test split one prediction is a point or more."""

ROUNDING = 1e-9


def name_of(run: Mapping[Any, Any]) -> str:
    """Return the name of a run from a row of ``runs()``. The start of its spec hash tells variants apart."""
    names = (run[name] for name in ("dataset", "scenario", "clients", "method", "seed"))
    return f"{run_name(*names)} ({run['spec_hash'][:8]})"


def drawable(bundle: Bundle, filters: Mapping[str, Any]) -> pd.DataFrame:
    """Return a bundle's settled runs that pass the filters, by spec hash; ``RequestError`` if none does."""
    runs = bundle.runs(**filters, state=SETTLED).sort_values("spec_hash", ignore_index=True)
    if runs.empty:
        problem = "no run that is asked for is done, diverged or not_applicable: nothing to verify"
        raise RequestError(f"bundle {bundle.folder}: {problem}")
    return runs


def draw(runs: pd.DataFrame, bundle: Bundle, count: int, seed: int) -> pd.DataFrame:
    """Draw ``count`` runs of ``drawable`` without replacement: one run of each method, as far as ``count``
    allows, then any runs. All methods are equally likely, and so are all runs of a method.
    """
    generator = streams.generator(seed, "verify", bundle.hash)
    shuffled = runs.sample(frac=1, random_state=generator)
    firsts = shuffled.drop_duplicates("method").sample(frac=1, random_state=generator)
    sample = pd.concat([firsts, shuffled.drop(firsts.index)]).head(count)
    return sample.sort_values("spec_hash", ignore_index=True)


def make_again(
    bundle: Bundle,
    sample: pd.DataFrame,
    roots: tuple[Path, ...],
    pool: Pool,
    display: Display,
    execute: Execute = execute,
    build: Build = build_federation,
) -> pd.DataFrame:
    """Run a sample as a sweep does, into a temporary database, and compare.

    Returns one row per run: ``finding`` and ``detail`` of ``compare``, and ``other_hardware``: whether the
    processor, the accelerator or the number of threads differs, since they change how sums are rounded.

    Raises:
        RequestError: as ``Sweep``; the numerics versions of a run are not those of the code here.
    """
    runs = sample.to_dict("records")
    for run in runs:
        code = fingerprint.code(run["method"])
        if (run["method_numerics"], run["engine_numerics"]) != (code.method_numerics, code.engine_numerics):
            raise RequestError(f"{name_of(run)} is by code of other numerics than is here: nothing to verify")
    specs = map(RunSpec.model_validate_json, sample["spec"])
    plan = make_plan((Planned(spec, spec.method) for spec in specs), {}, lambda dataset: "")
    checks = []
    with TemporaryDirectory(prefix="bench-") as folder:
        url = f"sqlite:///{Path(folder, 'runs.db')}"
        Sweep(plan, url, roots, pool, display, execute, build).run()
        with open_store(url, create=False) as store:
            new_runs = {row["spec_hash"]: row for row in store.runs().to_dict("records")}
            for run in runs:
                finding, detail, is_other = "not checked", "its method is held back", False
                if new := new_runs.get(run["spec_hash"]):
                    finding, detail = compare(bundle, run, store, new)
                    its, mine = _hardware(bundle, run), _hardware(store, new)
                    is_other = any(its[name] != mine[name] for name in its.keys() & mine.keys())
                check = {"spec_hash": run["spec_hash"], "run": name_of(run), "finding": finding}
                checks.append({**check, "detail": detail, "other_hardware": is_other})
    return pd.DataFrame(checks)


def _hardware(tables: Tables, run: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the known properties of a run's machine that decide how sums are rounded."""
    (description,) = tables.table("environments", id=run["environment_id"])["description"]
    sort = sort_of(run["device"])
    names = ("accelerator",) if sort == "cuda" else ("processor", "threads")
    known = {name: value for name, value in json.loads(description).items() if name in names and value}
    return known | {"device": sort}


def compare(
    tables: Tables, stated: Mapping[Any, Any], here: Tables, new: Mapping[Any, Any]
) -> tuple[str, str]:
    """Compare a run that was made again here with the stated run, given the rows of both.

    ``equal``: every count is the same, and so is the traffic; counts by class and areas, if both runs have
    them. ``close``: for every stage and rule the pooled test accuracies differ by at most ``TOLERANCE``
    (``LOOSE`` for rules other than ``best_val``) or by at most ``PREDICTIONS``. ``differs``: all else, also
    other clients or another end. ``not checked``: this machine cannot make the run.
    """
    ending = f"it ended here as {new['state']}: {new['reason']}"
    if new["state"] not in SETTLED:
        return "not checked", ending
    if (new["state"], new["partition_hash"]) != (stated["state"], stated["partition_hash"]):
        return "differs", f"{ending}, or on other clients; the bundle says {stated['state']}"
    if new["state"] != "done":
        return "equal", ending
    first, second = _numbers(tables, stated), _numbers(here, new)
    shared = first.keys() & second.keys()  # older runs have only accuracies, no counts by class
    is_equal = all(first[key].equals(second[key]) for key in shared)
    if is_equal and all(stated[name] == new[name] for name in ("bytes_up", "bytes_down")):
        return "equal", "every count is the same"
    its, mine = _pooled(first[ACCURACY]), _pooled(second[ACCURACY])
    if not its["samples"].equals(mine["samples"]):
        return "differs", "other stages, rules or numbers of test samples"
    points = [TOLERANCE if rule == "best_val" else LOOSE for _, rule in its.index]
    limits = np.maximum(points, 100 * PREDICTIONS / its["samples"])
    shares: pd.Series = (its["percent"] - mine["percent"]).abs() / limits
    widest: Any = shares.idxmax()
    numbers = f"test accuracy {its['percent'][widest]:.2f} %, here {mine['percent'][widest]:.2f} %"
    detail = f"{numbers} ({' '.join(widest)}); {limits[widest]:.2f} points are allowed"
    return ("close" if shares[widest] <= 1 + ROUNDING else "differs"), detail


def _numbers(tables: Tables, run: Mapping[Any, Any]) -> dict[str, pd.DataFrame]:
    """Return a run's numbers: client results by metric; test curves and counts by class if it has them."""
    numbers = {str(metric): rows for metric, rows in tables.client_results([run["id"]]).groupby("metric")}
    for name, filters in (("curves", {"split": CURVE_SPLIT}), ("confusions", {})):
        rows = tables.table(name, run_id=run["id"], **filters)
        if len(rows):
            numbers[name] = rows.assign(counts=[counts.tolist() for counts in rows["counts"]])
    unlike = ["run_id", "rows", "clients", "classes"]
    return {
        name: rows.drop(columns=unlike, errors="ignore").reset_index(drop=True)
        for name, rows in numbers.items()
    }


def _pooled(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Test samples and accuracy in percent over all clients, by stage and rule."""
    tests = accuracies[accuracies["split"] == CURVE_SPLIT]
    sums = tests.assign(correct=tests["value"] * tests["samples"]).groupby(["stage", "rule"])
    pooled = sums[["correct", "samples"]].sum()
    return pooled.assign(percent=100 * pooled["correct"] / pooled["samples"])


def outcome(checks: pd.DataFrame) -> str:
    """Return ``contradicted`` if a run made on the same hardware differs, ``agreed`` if all runs were made
    and none differs, else ``incomplete``.
    """
    findings = checks["finding"]
    if (findings.eq("differs") & ~checks["other_hardware"]).any():
        return "contradicted"
    return "agreed" if findings.isin(["equal", "close"]).all() else "incomplete"
