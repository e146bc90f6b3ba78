"""Making a sample of a bundle's runs again: what is drawn, and what comes out."""

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
"""Points by which the pooled test accuracy may differ: of rule ``best_val``, and of the others, which
scatter more. Other machines sum in another order, and a hundred rounds carry the last digit far."""

PREDICTIONS = 2
"""So many test predictions may always differ: on a small test split each is worth a point or more."""

ROUNDING = 1e-9


def name_of(run: Mapping[Any, Any]) -> str:
    """The name of a run, from a row of ``runs()``; the start of its hash tells variants apart."""
    names = (run[name] for name in ("dataset", "scenario", "clients", "method", "seed"))
    return f"{run_name(*names)} ({run['spec_hash'][:8]})"


def drawable(bundle: Bundle, filters: Mapping[str, Any]) -> pd.DataFrame:
    """The settled runs of a bundle that the filters leave, by spec hash; none is a ``RequestError``."""
    runs = bundle.runs(**filters, state=SETTLED).sort_values("spec_hash", ignore_index=True)
    if runs.empty:
        problem = "no run that is asked for is done, diverged or not_applicable: nothing to verify"
        raise RequestError(f"bundle {bundle.folder}: {problem}")
    return runs


def draw(runs: pd.DataFrame, bundle: Bundle, count: int, seed: int) -> pd.DataFrame:
    """A sample without replacement of the runs of ``drawable``: one of every method, as far as it reaches,
    then any. Methods are as likely as each other, and so are the runs of one.
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
    """Run a sample as a sweep does, into a database that is thrown away, and compare.

    Returned is a row a run: the ``finding`` of ``compare`` with its ``detail``, and whether the run was made
    on ``other_hardware``: another processor or accelerator, or other threads, which round sums otherwise.

    Raises:
        RequestError: as ``Sweep``; a run is by code of other numerics than is here.
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
    """What is known of a run that decides how its sums are rounded."""
    (description,) = tables.table("environments", id=run["environment_id"])["description"]
    sort = sort_of(run["device"])
    names = ("accelerator",) if sort == "cuda" else ("processor", "threads")
    known = {name: value for name, value in json.loads(description).items() if name in names and value}
    return known | {"device": sort}


def compare(
    tables: Tables, stated: Mapping[Any, Any], here: Tables, new: Mapping[Any, Any]
) -> tuple[str, str]:
    """How a run that was made again here compares with what is stated of it, given the rows of both.

    ``equal``: every count is the same, those by class and areas, too, where both have them, and so is the
    traffic. ``close``: for every stage and rule the pooled test accuracy is within ``TOLERANCE`` (``LOOSE``
    but for ``best_val``) or within ``PREDICTIONS`` of each other. Else, and where the clients are others or
    the run ended otherwise, it ``differs``. A run that this machine cannot make is ``not checked``.
    """
    ending = f"it ended here as {new['state']}: {new['reason']}"
    if new["state"] not in SETTLED:
        return "not checked", ending
    if (new["state"], new["partition_hash"]) != (stated["state"], stated["partition_hash"]):
        return "differs", f"{ending}, or on other clients; the bundle says {stated['state']}"
    if new["state"] != "done":
        return "equal", ending
    first, second = _numbers(tables, stated), _numbers(here, new)
    shared = first.keys() & second.keys()  # older runs have accuracies alone, and no counts by class
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
    """The numbers of a run that there are: client results by metric, test curves, and counts by class."""
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
    """``contradicted`` if a run differs that was made on the same hardware, ``agreed`` if every one was made
    and none differs, else ``incomplete``.
    """
    findings = checks["finding"]
    if (findings.eq("differs") & ~checks["other_hardware"]).any():
        return "contradicted"
    return "agreed" if findings.isin(["equal", "close"]).all() else "incomplete"
