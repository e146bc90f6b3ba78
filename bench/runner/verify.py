"""Making a sample of a bundle's runs again: what is drawn, what is in the way, and what comes out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench import streams
from bench.dataset import DATASETS
from bench.engine.states import SETTLED
from bench.errors import RequestError
from bench.federation.build import build as build_federation
from bench.grids import Planned
from bench.metric_names import ACCURACY
from bench.runner import fingerprint
from bench.runner.display import Display
from bench.runner.execution import Build, execute
from bench.runner.order import Execute
from bench.runner.plan import make_plan, sort_of
from bench.runner.run import Sweep
from bench.runner.workers import Pool
from bench.spec import RunSpec, run_name
from bench.store import Store, open_store
from bench.store.bundle import Bundle
from bench.store.bundle_check import CURVE_SPLIT
from bench.store.bundle_import import Finding
from bench.store.tables import Tables

TOLERANCE, LOOSE = 0.5, 1.0
"""Points by which the pooled test accuracy may differ: of rule ``best_val``, and of the others, which
scatter more. Other machines sum in another order, and a hundred rounds carry the last digit far."""

PREDICTIONS = 2
"""So many test predictions may always differ: on a small test split each is worth a point or more."""

ROUNDING = 1e-9


class Check(NamedTuple):
    """What came of one run; ``finding`` is None if it could not be made here. ``other_hardware``: it was made
    on another processor or accelerator, or with other threads, which rounds sums otherwise.
    """

    spec_hash: str
    run: str
    finding: Finding | None
    detail: str
    other_hardware: bool = False

    @property
    def contradicts(self) -> bool:
        """Whether the run differs, and not only by what other hardware can do."""
        return self.finding == "differs" and not self.other_hardware


def name_of(run: Mapping[Any, Any]) -> str:
    """The name of a run, from a row of ``runs()``; the start of its hash tells variants apart."""
    names = (run[name] for name in ("dataset", "scenario", "clients", "method", "seed"))
    return f"{run_name(*names)} ({run['spec_hash'][:8]})"


def drawable(bundle: Bundle, filters: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """The bundle's runs, by spec hash, that the filters leave and that running again has to end alike.

    Raises:
        RequestError: there is none.
    """
    runs = bundle.runs(**(filters or {}), state=SETTLED).sort_values("spec_hash", ignore_index=True)
    if runs.empty:
        problem = "no run that is asked for is done, diverged or not_applicable: nothing to verify"
        raise RequestError(f"bundle {bundle.folder}: {problem}")
    return runs


def draw(bundle: Bundle, count: int, seed: int, filters: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """A sample without replacement of the runs of ``drawable``: one of every method, as far as it reaches,
    then any. Methods are as likely as each other, and so are the runs of one. Raises as ``drawable``.
    """
    runs = drawable(bundle, filters)
    generator = streams.generator(seed, "verify", bundle.hash)
    shuffled = runs.iloc[generator.permutation(len(runs))]
    methods = generator.permutation(sorted(set(runs["method"]))).tolist()
    is_first = ~shuffled["method"].duplicated()
    first_runs = shuffled[is_first].sort_values("method", key=lambda names: names.map(methods.index))
    sample = pd.concat([first_runs, shuffled[~is_first]]).head(count)
    return sample.sort_values("spec_hash", ignore_index=True)


def obstacles(sample: pd.DataFrame, data_gap: Callable[[str], str]) -> list[Check]:
    """The runs of a sample that cannot be made here, and why. ``data_gap`` is that of ``make_plan``."""
    checks = []
    for run in sample.to_dict("records"):
        try:
            DATASETS.named(run["dataset"])
            code = fingerprint.code(run["method"])
            reason = data_gap(run["dataset"])
            for part, number in (("engine", code.engine_numerics), ("method", code.method_numerics)):
                if run[f"{part}_numerics"] != number:
                    reason = f"made with {part} numerics {run[f'{part}_numerics']}, here is {number}"
        except RequestError as error:
            reason = str(error)
        if reason:
            checks.append(Check(run["spec_hash"], name_of(run), None, reason))
    return checks


def make_again(
    bundle: Bundle,
    sample: pd.DataFrame,
    roots: tuple[Path, ...],
    pool: Pool,
    display: Display,
    execute: Execute = execute,
    build: Build = build_federation,
) -> list[Check]:
    """Run a sample as a sweep does, into a database that is thrown away, and compare. Raises as ``Sweep``."""
    specs = map(RunSpec.model_validate_json, sample["spec"])
    plan = make_plan((Planned(spec, spec.method) for spec in specs), {}, lambda dataset: "")
    with TemporaryDirectory(prefix="bench-") as folder:
        url = f"sqlite:///{Path(folder, 'runs.db')}"
        Sweep(plan, url, roots, pool, display, execute, build).run()
        with open_store(url, create=False) as store:
            new_runs = {row["spec_hash"]: row for row in store.runs().to_dict("records")}
            return [
                _check(bundle, run, store, new_runs.get(run["spec_hash"]))
                for run in sample.to_dict("records")
            ]


def _check(bundle: Bundle, stated: Mapping[Any, Any], store: Store, new: Mapping[Any, Any] | None) -> Check:
    if new is None:
        return Check(stated["spec_hash"], name_of(stated), None, "not made: its method is held back")
    finding, detail = compare(bundle, stated, store, new)
    its, mine = _hardware(bundle, stated), _hardware(store, new)
    is_other = any(its[name] != mine[name] for name in its.keys() & mine.keys())
    return Check(stated["spec_hash"], name_of(stated), finding, detail, is_other)


def _hardware(tables: Tables, run: Mapping[Any, Any]) -> dict[str, Any]:
    """What is known of a run that decides how its sums are rounded."""
    (description,) = tables.table("environments", id=run["environment_id"])["description"]
    sort = sort_of(run["device"])
    names = ("accelerator",) if sort == "cuda" else ("processor", "threads")
    known = {name: value for name, value in json.loads(description).items() if name in names and value}
    return known | {"device": sort}


def compare(
    tables: Tables, stated: Mapping[Any, Any], here: Tables, new: Mapping[Any, Any]
) -> tuple[Finding | None, str]:
    """How a run that was made again here compares with what is stated of it, given the rows of both.

    ``equal``: every count is the same, those by class and areas, too, where both have them, and so is the
    traffic. ``close``: for every stage and rule the pooled test accuracy is within ``TOLERANCE`` (``LOOSE``
    but for ``best_val``) or within ``PREDICTIONS`` of each other. Else, and where the clients are others or
    the run ended otherwise, it ``differs``.
    """
    ending = f"it ended here as {new['state']}: {new['reason']}"
    if new["state"] not in SETTLED:  # that says something about this machine
        return None, ending
    if new["partition_hash"] != stated["partition_hash"]:
        hashes = f"{stated['partition_hash'][:12]}, here {new['partition_hash'][:12]}"
        return "differs", f"other clients: partition {hashes}"
    if new["state"] != stated["state"]:
        return "differs", f"{ending}; the bundle says {stated['state']}"
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
    detail = f"{numbers} ({widest[0]} model, rule {widest[1]}); {limits[widest]:.2f} points are allowed"
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


def counted(checks: Sequence[Check]) -> str:
    """How many runs came out as what, and how many of them were made on other hardware."""
    counts = Counter(check.finding or "not checked" for check in checks)
    text = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
    count = sum(check.other_hardware for check in checks)
    return f"{text}; {count} made on other hardware" if count else text


def outcome(checks: Sequence[Check]) -> str:
    """``contradicted`` if a run differs that was made on the same hardware, ``agreed`` if every one was made
    and none differs, else ``incomplete``.
    """
    if any(check.contradicts for check in checks):
        return "contradicted"
    return "agreed" if all(check.finding in ("equal", "close") for check in checks) else "incomplete"
