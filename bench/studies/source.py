"""What a report reads: a result database, results that come with the suite, or both as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress, count
from typing import Any, Protocol, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.store.tables import Readings, filter_runs


class Source(Protocol):
    """A result database; ``bench.store.Store`` and ``bench.store.bundle.Bundle`` are some."""

    def runs(self, **filters: Any) -> pd.DataFrame:
        """One row a run, every column of ``runs``."""

    def client_results(self, run_ids: Iterable[int], **only: Unpack[Readings]) -> pd.DataFrame:
        """Columns run_id, client, stage, split, rule, metric, value, samples."""

    def curves(self, run_ids: Iterable[int], split: str) -> dict[tuple[int, str], NDArray[np.int32]]:
        """Run and stage -> correct predictions ``[rows, clients]``, of those runs that have a curve."""

    def confusions(self, run_ids: Iterable[int]) -> dict[tuple[int, str, str], NDArray[np.int32]]:
        """As ``bench.store.tables.Tables.confusions``."""

    def artefacts(self, run_ids: Iterable[int], name: str) -> dict[int, NDArray[Any]]:
        """An array by run, of those runs that keep it."""

    def environments(self) -> pd.DataFrame:
        """One row an environment: id, hash, description (JSON)."""


OWN = ""
"""``origin`` of the runs of the user's own database."""


class MergedSource:
    """Several sources as one: the user's own database, and results that come with the suite.

    A spec, which has one seed, is taken from one place: a run of the own database that has come to a result
    here, else the first bundle that holds it, else whatever else the database has of it. So a few seeds of
    one's own stand in the place of those shipped, and leave the others.

    Two things are never mixed in one cell (a spec apart from its seed). Where own results are on other
    clients than the shipped ones of the cell or were made by code of other numbers, these are left out; and
    imported runs stand back behind shipped ones of their cell. ``runs`` has the column ``origin``: ``""`` for
    the own database, else the bundle's name. The own runs keep their ids.
    """

    def __init__(self, own_source: Source | None, bundles: Sequence[tuple[str, Source]]) -> None:
        self._sources: list[Source] = [] if own_source is None else [own_source]
        self._sources += [source for _, source in bundles]
        origins = ([] if own_source is None else [OWN]) + [name for name, _ in bundles]
        self._environments, numbers = _environments(self._sources)
        frames = [source.runs() for source in self._sources]
        chosen_runs = _first_of_each(frames) if own_source is None else _choose(frames[0], frames[1:])
        parts = [
            runs.assign(environment_id=runs["environment_id"].map(numbers[place]), origin=origin, place=place)
            for place, (origin, runs) in enumerate(zip(origins, chosen_runs, strict=True))
        ]
        full_parts = [part for part in parts if len(part)] or parts[:1]
        all_runs = pd.concat(full_parts, ignore_index=True)
        source_ids: list[int] = all_runs["id"].tolist()
        places: list[int] = all_runs.pop("place").tolist()
        is_own = (all_runs["origin"] == OWN).tolist()
        new_ids = count(max(compress(source_ids, is_own), default=0) + 1)
        ids = [run if own_run else next(new_ids) for run, own_run in zip(source_ids, is_own, strict=True)]
        self._home = dict(zip(ids, zip(places, source_ids, strict=True), strict=True))
        # Reports take many small parts of this frame: of plain objects in one block that takes a third of
        # the time.
        texts: list[str] = all_runs.select_dtypes("string").columns.tolist()
        self._runs: pd.DataFrame = (
            all_runs.assign(id=pd.array(ids, dtype="int64")).astype(dict.fromkeys(texts, object)).copy()
        )

    def runs(self, **filters: Any) -> pd.DataFrame:
        """One row a run, every column of ``runs`` and ``origin``, ordered by id; filtered alike."""
        return filter_runs(self._runs, filters)

    def client_results(self, run_ids: Iterable[int], **only: Unpack[Readings]) -> pd.DataFrame:
        """As ``Store.client_results``."""
        return self._from_sources(run_ids, lambda source, ids: source.client_results(ids, **only))

    def _from_sources(
        self, run_ids: Iterable[int], answer: Callable[[Source, Iterable[int]], pd.DataFrame]
    ) -> pd.DataFrame:
        """What every source answers for its runs among these, under the ids here."""
        parts: list[pd.DataFrame] = []
        for place, numbers in self._source_ids(run_ids).items():
            if numbers or not parts:
                rows = answer(self._sources[place], numbers)
                parts.append(rows.assign(run_id=rows["run_id"].map(numbers)))
        full_parts = [part for part in parts if len(part)] or parts[:1]
        return pd.concat(full_parts, ignore_index=True)

    def curves(self, run_ids: Iterable[int], split: str) -> dict[tuple[int, str], NDArray[np.int32]]:
        """As ``Store.curves``."""
        return {
            (numbers[run], stage): counts
            for place, numbers in self._source_ids(run_ids).items()
            for (run, stage), counts in self._sources[place].curves(numbers, split).items()
        }

    def confusions(self, run_ids: Iterable[int]) -> dict[tuple[int, str, str], NDArray[np.int32]]:
        """As ``Store.confusions``."""
        return {
            (numbers[run], stage, rule): counts
            for place, numbers in self._source_ids(run_ids).items()
            for (run, stage, rule), counts in self._sources[place].confusions(numbers).items()
        }

    def _source_ids(self, run_ids: Iterable[int]) -> dict[int, dict[int, int]]:
        """For each source, its ids of these runs -> those here."""
        source_ids: dict[int, dict[int, int]] = {place: {} for place in range(len(self._sources))}
        for number in run_ids:
            if int(number) in self._home:
                place, run = self._home[int(number)]
                source_ids[place][run] = int(number)
        return source_ids

    def artefacts(self, run_ids: Iterable[int], name: str) -> dict[int, NDArray[Any]]:
        """As ``Store.artefacts``."""
        return {
            numbers[run]: array
            for place, numbers in self._source_ids(run_ids).items()
            for run, array in self._sources[place].artefacts(numbers, name).items()
        }

    def environments(self) -> pd.DataFrame:
        """One row an environment: id, hash, description (JSON); each once."""
        return self._environments.copy()


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
    """The runs to show, of the own database and of each bundle; see ``MergedSource``."""
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


def _environments(sources: Sequence[Source]) -> tuple[pd.DataFrame, list[dict[int, int]]]:
    """Every environment once, and for each source its ids -> the new ones."""
    parts = [source.environments()[["id", "hash", "description"]] for source in sources]
    rows = pd.concat(parts).drop_duplicates("hash", ignore_index=True)
    rows["id"] = rows.index + 1
    new_ids = dict(zip(rows["hash"], rows["id"], strict=True))
    return rows, [dict(zip(part["id"], part["hash"].map(new_ids), strict=True)) for part in parts]
