"""A folder of results with one bundle a study and data set."""

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
    """Put runs into the bundles of a folder, one a study and data set (``FOLDER/STUDY/DATASET``).

    They stand in the place of runs of the same specs there, unless a run that is settled there would give
    way to one that is not. The same runs give the same bytes. Returned is the number of runs put into each.

    Raises:
        RequestError: a bundle there is damaged or cannot be written, or no study has a run's data set.
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
    """``STUDY/DATASET`` of each run: of the first study whose grids plan it, else of the first that runs its
    protocol on the data set, else of the first that has the data set.

    Raises:
        RequestError: no study has the data set.
    """
    planned = {name: _planned(study) for name, study in studies.items()}
    datasets = {name: {dataset for dataset, _ in protocols} for name, (_, protocols) in planned.items()}
    names = []
    for spec in map(RunSpec.model_validate_json, runs["spec"]):
        fitting = [name for name, (hashes, _) in planned.items() if spec.hash in hashes]
        fitting += [name for name, (_, protocols) in planned.items() if _protocol(spec) in protocols]
        fitting += [name for name in studies if spec.dataset in datasets[name]]
        if not fitting:
            raise RequestError(f"no study has the data set {spec.dataset}: its runs belong to no bundle")
        names.append(f"{fitting[0]}/{spec.dataset}")
    return pd.Series(names, runs.index)


def _planned(study: type[Study]) -> tuple[set[str], set[tuple[str, Protocol]]]:
    """Spec hashes of the runs that a study's grids plan, and the protocols of each data set."""
    names = {*study.grids, *study.split_grids, *(table.grid for table in study.experiments)}
    specs = [run.spec for name in sorted(names) for run in expand(load_grid(name))]
    return {spec.hash for spec in specs}, {_protocol(spec) for spec in specs}


def _protocol(spec: RunSpec) -> tuple[str, Protocol]:
    """The data set and the protocol of a run, apart from the seed of its partition."""
    return spec.dataset, spec.protocol.model_copy(update={"partition_seed": 0})
