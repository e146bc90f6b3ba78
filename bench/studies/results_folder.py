"""A folder of results with one bundle per study and data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from bench.engine.states import SETTLED
from bench.errors import RequestError
from bench.grids import expand, load_grid
from bench.spec import Protocol, RunSpec
from bench.store.bundle import Bundle, write_bundle
from bench.store.tables import Tables
from bench.studies.shipped import SeveralTables
from bench.studies.study import Study


def add_runs(new: Tables, folder: Path, studies: Mapping[str, type[Study]]) -> dict[str, int]:
    """Put runs into the bundles ``FOLDER/STUDY/DATASET``. Return the number of runs put into each.

    A new run replaces the stored run of the same spec, unless the stored run is settled and the new one is
    not. The same runs give the same bytes.
    """
    runs = new.runs()
    added = {}
    for name, part in runs.groupby(bundle_names(runs, studies)):
        path = folder / str(name)
        part = part.assign(origin="new", place=0)
        sources, shown = [new], part
        if path.exists():
            old = Bundle(path)
            rest = old.runs().assign(origin="old", place=1)
            settled = rest.loc[rest["state"].isin(SETTLED), "spec_hash"]
            part = part[part["state"].isin(SETTLED) | ~part["spec_hash"].isin(settled)]
            rest = rest[~rest["spec_hash"].isin(part["spec_hash"])]
            sources, shown = [new, old], pd.concat([part, rest], ignore_index=True)
        tables = SeveralTables(sources, shown)
        write_bundle(tables, tables.runs(), path)
        added[str(name)] = len(part)
    return added


def bundle_names(runs: pd.DataFrame, studies: Mapping[str, type[Study]]) -> pd.Series[str]:
    """Return ``STUDY/DATASET`` of each run. The study is the first whose grids plan the run, else the first
    that uses the run's protocol on the data set, else the first that has the data set.
    """
    found: dict[str | tuple[str, Protocol], str] = {}
    for name, study in studies.items():
        grids = {*study.grids, *study.split_grids, *(table.grid for table in study.experiments)}
        for spec in (run.spec for grid in grids for run in expand(load_grid(grid))):
            for key in _keys(spec):
                found.setdefault(key, name)
    names = []
    for spec in map(RunSpec.model_validate_json, runs["spec"]):
        fitting = [found[key] for key in _keys(spec) if key in found]
        if not fitting:
            raise RequestError(f"no study has the data set {spec.dataset}: its runs belong to no bundle")
        names.append(f"{fitting[0]}/{spec.dataset}")
    return pd.Series(names, runs.index)


def _keys(spec: RunSpec) -> tuple[str, tuple[str, Protocol], str]:
    """Return three keys: the hash; data set and protocol without its partition seed; the data set."""
    protocol = spec.protocol.model_copy(update={"partition_seed": 0})
    return spec.hash, (spec.dataset, protocol), spec.dataset
