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
    by_hash: dict[str, str] = {}
    by_protocol: dict[tuple[str, Protocol], str] = {}
    by_dataset: dict[str, str] = {}
    for name, study in studies.items():
        grids = {*study.grids, *study.split_grids, *(table.grid for table in study.experiments)}
        for spec in (run.spec for grid in grids for run in expand(load_grid(grid))):
            by_hash.setdefault(spec.hash, name)
            by_protocol.setdefault(_protocol(spec), name)
            by_dataset.setdefault(spec.dataset, name)
    names = []
    for spec in map(RunSpec.model_validate_json, runs["spec"]):
        found = by_hash.get(spec.hash) or by_protocol.get(_protocol(spec)) or by_dataset.get(spec.dataset)
        if found is None:
            raise RequestError(f"no study has the data set {spec.dataset}: its runs belong to no bundle")
        names.append(f"{found}/{spec.dataset}")
    return pd.Series(names, runs.index)


def _protocol(spec: RunSpec) -> tuple[str, Protocol]:
    """The data set and the protocol of a run, apart from the seed of its partition."""
    return spec.dataset, spec.protocol.model_copy(update={"partition_seed": 0})
