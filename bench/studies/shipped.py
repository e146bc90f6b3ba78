"""The user's own database and the results that come with the suite, as one source of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from bench import paths
from bench.errors import RequestError
from bench.store.bundle import SHIPPED, trusted_bundles
from bench.store.tables import Tables, filter_runs, plain_texts

OWN = ""
"""``origin`` of the runs of the user's own database."""

RESULTS = ("done", "diverged")
"""States of runs that the method explains, not the machine."""

NUMBERS_OF = ["cell", "partition_hash", "method_numerics", "engine_numerics"]
"""Columns for cell, clients and code. Numbers of runs may be averaged if the runs agree in these columns."""


class SeveralTables(Tables):
    """Runs of several sources as one source. Runs of the user's own database keep their ids."""

    def __init__(self, sources: Sequence[Tables], runs: pd.DataFrame) -> None:
        """``runs`` are the runs to show, with columns ``origin`` and ``place`` (number of the source)."""
        self._sources = sources
        is_own = runs["origin"] == OWN
        last_own = int(runs["id"].where(is_own, 0).max()) if len(runs) else 0
        ids = runs["id"].where(is_own, last_own + (~is_own).cumsum()).tolist()
        self._home = dict(zip(ids, zip(runs["place"], runs["id"], strict=True), strict=True))
        rows = pd.concat([one.table("environments").assign(place=n) for n, one in enumerate(sources)])
        hash_of = rows.set_index(["place", "id"])["hash"]
        environments = rows.drop_duplicates("hash", ignore_index=True)[["id", "hash", "description"]]
        environments["id"] = environments.index + 1
        hashes = hash_of.loc[pd.MultiIndex.from_frame(runs[["place", "environment_id"]])]
        environment_ids = hashes.map(environments.set_index("hash")["id"]).to_numpy()
        runs = runs.drop(columns="place").assign(id=ids, environment_id=environment_ids)
        partitions = pd.concat([source.table("partitions") for source in sources])
        self._tables: dict[str, pd.DataFrame] = {
            "runs": runs.reset_index(drop=True),
            "environments": environments,
            "partitions": partitions.drop_duplicates("hash", ignore_index=True),
        }

    def table(self, name: str, /, **filters: Any) -> pd.DataFrame:
        """See ``Tables.table``. The table ``runs`` also has the column ``origin``."""
        if name in self._tables:
            return filter_runs(self._tables[name], filters)
        new_ids: list[dict[int, int]] = [{} for _ in self._sources]
        for number in filters.pop("run_id", self._home):
            if number in self._home:
                place, run = self._home[number]
                new_ids[place][run] = int(number)
        parts: list[pd.DataFrame] = []
        for source, numbers in zip(self._sources, new_ids, strict=True):
            if numbers or not parts:
                rows = source.table(name, run_id=list(numbers), **filters)
                parts.append(rows.assign(run_id=rows["run_id"].map(numbers)))
        return pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)


def merged(own_source: Tables | None, bundles: Sequence[tuple[str, Tables]]) -> SeveralTables:
    """Merge the user's own database with bundles of results that come with the suite, given by name.

    A spec is taken from one place: a run of the own database with a result made here; else the first bundle
    that holds the spec; else any other run of the database. Shipped runs of a cell are left out if own
    results of the cell have other clients or were made by code with other numerics. Imported runs are left
    out if shipped runs of their cell are shown.
    """
    parts = [*bundles] if own_source is None else [(OWN, own_source), *bundles]
    frames = [source.runs().assign(origin=name, place=place) for place, (name, source) in enumerate(parts)]
    runs = plain_texts(pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True))
    return SeveralTables([source for _, source in parts], runs[_is_shown(runs)])


def _is_shown(runs: pd.DataFrame) -> pd.Series[bool]:
    """Return True for the runs that are shown; ``merged`` describes the rule."""
    is_own = runs["origin"] == OWN
    has_result = runs["state"].isin(RESULTS)
    # A failed run counts as made here; a run without data does not.
    is_made_here = is_own & (runs["bundle"] == "") & (runs["state"] != "no_data")
    own_kinds = runs.loc[is_made_here & has_result, NUMBERS_OF].drop_duplicates()
    kinds = own_kinds.merge(
        runs.loc[~is_own & has_result, NUMBERS_OF].drop_duplicates(), indicator=True, how="left"
    )
    cells_apart = kinds.loc[kinds["_merge"] == "left_only", "cell"]
    own_specs = runs.loc[is_made_here & has_result, "spec"]
    is_free = ~is_own & ~runs["spec"].isin(own_specs) & ~runs["cell"].isin(cells_apart)
    is_shipped = is_free & ~runs["spec"].where(is_free).duplicated()
    stands_back = runs["spec"].isin(runs.loc[is_shipped, "spec"]) | (
        ~is_made_here & runs["cell"].isin(runs.loc[is_shipped, "cell"])
    )
    is_shown: pd.Series[bool] = is_shipped | (is_own & ((is_made_here & has_result) | ~stands_back))
    return is_shown


@contextmanager
def opened_results(
    url: str | None, own: bool, folder: Path = SHIPPED, shipped: bool = False
) -> Iterator[Tables]:
    """Open the database at ``url`` (None: the default one, which may be missing) and the bundles in
    ``folder``. ``own`` opens the database alone, ``shipped`` the bundles alone.

    Raises:
        RequestError: a named database cannot be read, a database contains searches, a bundle is damaged, or
            there is nothing to read.
    """
    if shipped and (own or url):
        raise RequestError("--shipped shows what comes with the suite alone: leave --own and --db away")
    named = [] if own else [(bundle.name, bundle) for bundle in trusted_bundles(folder)]
    address = url or paths.default_database()
    if named and (shipped or (url is None and _is_missing(address))):
        yield merged(None, named)
        return
    from bench.store import open_store

    with open_store(address, create=False) as store:
        if not store.runs(state="searched").empty:
            raise RequestError(f"{store.name} is a database of searches, which read no test item")
        yield merged(store, named)


def _is_missing(url: str) -> bool:
    """Return True if there is no database yet or it is empty. Without a file, do not import SQLAlchemy."""
    if not Path(url.removeprefix("sqlite:///")).exists():
        return True
    from bench.store.connect import Database

    return Database(url).empty()
