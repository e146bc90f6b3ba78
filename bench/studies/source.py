"""The user's own database and the results that come with the suite, as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress, count
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.store.tables import Tables, filter_runs

OWN = ""
"""``origin`` of the runs of the user's own database."""


class SeveralTables(Tables):
    """Runs of several places as one: of each its ``origin`` (a column of ``runs``), its tables, and those of
    its runs that are taken.

    The runs of one's own database keep their ids. Environments and partitions are there once.
    """

    def __init__(self, parts: Sequence[tuple[str, Tables, pd.DataFrame]]) -> None:
        self._sources = [source for _, source, _ in parts]
        environments, numbers = _environments(self._sources)
        frames = [
            runs.assign(environment_id=runs["environment_id"].map(numbers[place]), origin=origin, place=place)
            for place, (origin, _, runs) in enumerate(parts)
        ]
        all_runs = pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)
        source_ids: list[int] = all_runs["id"].tolist()
        places: list[int] = all_runs.pop("place").tolist()
        is_own = (all_runs["origin"] == OWN).tolist()
        new_ids = count(max(compress(source_ids, is_own), default=0) + 1)
        ids = [run if own_run else next(new_ids) for run, own_run in zip(source_ids, is_own, strict=True)]
        self._home = dict(zip(ids, zip(places, source_ids, strict=True), strict=True))
        # Reports take many small parts of this frame: of plain objects in one block that takes a third of
        # the time.
        texts: list[str] = all_runs.select_dtypes("string").columns.tolist()
        runs = all_runs.assign(id=pd.array(ids, dtype="int64")).astype(dict.fromkeys(texts, object)).copy()
        partitions = pd.concat([source.table("partitions") for source in self._sources])
        self._tables: dict[str, pd.DataFrame] = {
            "runs": runs,
            "environments": environments,
            "partitions": partitions.drop_duplicates("hash", ignore_index=True),
        }

    def table(self, name: str, /, **filters: Any) -> pd.DataFrame:
        """As ``Tables.table``; ``runs`` have ``origin``, too."""
        if name in self._tables:
            return filter_runs(self._tables[name], filters)
        wanted = filters.pop("run_id", self._home)
        parts: list[pd.DataFrame] = []
        for place, numbers in self._source_ids([wanted] if isinstance(wanted, int) else wanted).items():
            if numbers or not parts:
                rows = self._sources[place].table(name, run_id=list(numbers), **filters)
                parts.append(rows.assign(run_id=rows["run_id"].map(numbers)))
        full_parts = [part for part in parts if len(part)] or parts[:1]
        return pd.concat(full_parts, ignore_index=True)

    def _source_ids(self, run_ids: Iterable[int]) -> dict[int, dict[int, int]]:
        """For each source, its ids of these runs -> those here."""
        source_ids: dict[int, dict[int, int]] = {place: {} for place in range(len(self._sources))}
        for number in run_ids:
            if int(number) in self._home:
                place, run = self._home[int(number)]
                source_ids[place][run] = int(number)
        return source_ids


def merged(own_source: Tables | None, bundles: Sequence[tuple[str, Tables]]) -> SeveralTables:
    """The user's own database and, under their names, results that come with the suite.

    A spec, which has one seed, is taken from one place: a run of the own database that has come to a result
    here, else the first bundle that holds it, else whatever else the database has of it. So a few seeds of
    one's own stand in the place of those shipped, and leave the others.

    Two things are never mixed in one cell (a spec apart from its seed). Where own results are on other
    clients than the shipped ones of the cell or were made by code of other numbers, these are left out; and
    imported runs stand back behind shipped ones of their cell. ``origin`` is ``""`` for the own database,
    else the bundle's name.
    """
    bundle_runs = [source.runs() for _, source in bundles]
    if own_source is None:
        own_parts, chosen_runs = [], _first_of_each(bundle_runs)
    else:
        own_runs, *chosen_runs = _choose(own_source.runs(), bundle_runs)
        own_parts = [(OWN, own_source, own_runs)]
    shipped_parts = [(*bundle, runs) for bundle, runs in zip(bundles, chosen_runs, strict=True)]
    return SeveralTables([*own_parts, *shipped_parts])


RESULTS = ("done", "diverged")
"""States of runs that say something of the method, not of the machine."""

NUMBERS_OF = ["partition_hash", "method_numerics", "engine_numerics"]
"""What the runs of one cell have in common where their numbers may be averaged: clients and code."""


def _first_of_each(
    bundle_runs: Iterable[pd.DataFrame], taken_specs: Iterable[str] = (), apart_cells: Iterable[str] = ()
) -> list[pd.DataFrame]:
    """The runs of each bundle whose spec is not taken, by one before it or already, nor their cell apart."""
    all_taken, all_apart, chosen_runs = set(taken_specs), set(apart_cells), []
    for runs in bundle_runs:
        specs, cells = runs["spec"].tolist(), runs["cell"].tolist()
        # Not ``isin``, which would read all that is taken anew for each bundle.
        is_free = [
            spec not in all_taken and cell not in all_apart for spec, cell in zip(specs, cells, strict=True)
        ]
        chosen_runs.append(runs[np.array(is_free, bool)])
        all_taken.update(compress(specs, is_free))
    return chosen_runs


def _choose(own_runs: pd.DataFrame, bundle_runs: Sequence[pd.DataFrame]) -> list[pd.DataFrame]:
    """The runs to show, of the own database and of each bundle; see ``merged``."""
    is_made_here = _is_made_here(own_runs)
    is_result = is_made_here & _has_result(own_runs)
    own_results = own_runs[is_result]
    shipped_runs = _first_of_each(bundle_runs, own_results["spec"], _cells_apart(own_results, bundle_runs))
    shipped_specs, shipped_cells = (
        {value for runs in shipped_runs for value in runs[name]} for name in ("spec", "cell")
    )
    stands_back = own_runs["spec"].isin(shipped_specs) | (
        ~is_made_here & own_runs["cell"].isin(shipped_cells)
    )
    return [own_runs[is_result | ~stands_back], *shipped_runs]


def _is_made_here(runs: pd.DataFrame) -> NDArray[np.bool_]:
    """Which runs of the own database were made here; a failed one was, one without data was not."""
    is_made_here: NDArray[np.bool_] = ((runs["bundle"] == "") & (runs["state"] != "no_data")).to_numpy(bool)
    return is_made_here


def _has_result(runs: pd.DataFrame) -> NDArray[np.bool_]:
    return runs["state"].isin(RESULTS).to_numpy(bool)


def _cells_apart(own_results: pd.DataFrame, bundle_runs: Iterable[pd.DataFrame]) -> set[str]:
    """The cells of which some own results are on other clients or of other numbers than the shipped ones."""
    own_kinds = own_results[["cell", *NUMBERS_OF]].drop_duplicates()
    parts = [runs.loc[_has_result(runs), ["cell", *NUMBERS_OF]] for runs in bundle_runs]
    shipped_kinds = pd.concat([own_kinds[:0], *parts]).drop_duplicates()
    shipped_kinds = shipped_kinds[shipped_kinds["cell"].isin(own_kinds["cell"])]
    pairs = own_kinds.merge(shipped_kinds, how="left", indicator=True)
    return set(pairs.loc[pairs["_merge"] == "left_only", "cell"])


def _environments(sources: Sequence[Tables]) -> tuple[pd.DataFrame, list[dict[int, int]]]:
    """Every environment once, and for each source its ids -> the new ones."""
    parts = [source.table("environments")[["id", "hash", "description"]] for source in sources]
    rows = pd.concat(parts).drop_duplicates("hash", ignore_index=True)
    rows["id"] = rows.index + 1
    new_ids = dict(zip(rows["hash"], rows["id"], strict=True))
    return rows, [dict(zip(part["id"], part["hash"].map(new_ids), strict=True)) for part in parts]
