"""Making a sample of a bundle's runs again: what is drawn, what is in the way, and what comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from bench import streams
from bench.dataset import DATASETS
from bench.engine.states import SETTLED
from bench.errors import RequestError
from bench.federation.build import build as build_federation
from bench.spec import RunSpec
from bench.store.bundle import Bundle
from bench.store.bundle_import import check_consistent, name_of, outcomes
from bench.store.queries import filter_known_runs
from bench.sweep import fingerprint
from bench.sweep.agreement import Check, compare, contradict_lifted, lead, place_of
from bench.sweep.execution import execute
from bench.sweep.federations import Build
from bench.sweep.order import Execute
from bench.sweep.policy import Slots
from bench.sweep.reporters import Reporter
from bench.sweep.run import temporary_runs

NOT_MADE = "not made: others of its method failed alike"


def drawable(bundle: Bundle, filters: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """The bundle's runs that the filters leave and that running again has to end alike: rows of
    ``Bundle.runs`` by spec hash.

    Raises:
        RequestError: there is none, or a filter names what no run of the bundle has.
    """
    runs = filter_known_runs(bundle.runs(), filters or {})
    runs = runs[runs["state"].isin(SETTLED)].sort_values("spec_hash", ignore_index=True)
    if runs.empty:
        raise RequestError(
            f"bundle {bundle.folder}: no run that is asked for is done, diverged or not_applicable: "
            "nothing to verify"
        )
    return runs


def draw(bundle: Bundle, count: int, seed: int, filters: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """A sample without replacement of the runs of ``drawable``: one of every method, as far as it reaches,
    then any. Methods are as likely as each other, and so are the runs of one.

    It follows from the seed, the filters and the bundle's content, all of which whoever made the bundle can
    choose but for the seed. Raises as ``drawable``.
    """
    runs = drawable(bundle, filters)
    generator = streams.generator(seed, "verify", bundle.hash)
    shuffled = runs.iloc[generator.permutation(len(runs))]
    places = {
        method: place for place, method in enumerate(generator.permutation(sorted(set(runs["method"]))))
    }
    is_first = ~shuffled["method"].duplicated()
    ordered = pd.concat(
        [shuffled[is_first].sort_values("method", key=lambda names: names.map(places)), shuffled[~is_first]]
    )
    return ordered.head(count).sort_values("spec_hash", ignore_index=True)


def obstacles(sample: pd.DataFrame, data_gap: Callable[[str], str]) -> list[Check]:
    """The runs of a sample that cannot be made here, and why.

    ``data_gap`` says why a data set's raw files are not at hand; empty where they are.
    """
    checks = [
        Check(run["spec_hash"], name_of(run), None, _obstacle(run, data_gap))
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
        stated_environments, new_environments = bundle.environments(), store.environments()
        findings = {
            run["spec_hash"]: (
                *compare(
                    bundle_outcome,
                    new_outcome,
                    str(new_run["reason"]),
                    (place_of(run, stated_environments), place_of(new_run, new_environments)),
                ),
                lead(bundle_outcome, new_outcome),
            )
            for (run, bundle_outcome), (new_run, new_outcome) in pairs
        }
    return contradict_lifted(
        Check(run["spec_hash"], name_of(run), *findings.get(run["spec_hash"], (None, NOT_MADE, 0.0)))
        for run in sample.to_dict("records")
    )
