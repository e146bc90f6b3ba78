"""The user's own database together with the results that come with the suite."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import paths
from bench.errors import RequestError
from bench.store import open_store
from bench.store.bundle import SHIPPED, read_bundles
from bench.store.connect import Database
from bench.store.tables import Tables
from bench.studies.source import merged


@contextmanager
def opened_results(
    url: str | None, own: bool, folder: Path = SHIPPED, shipped: bool = False
) -> Iterator[Tables]:
    """The database at ``url`` (None: the default one, which may be missing) and the shipped bundles, those of
    ``folder``; with ``own`` the database alone, with ``shipped`` the bundles alone.

    A database that is named or alone must exist. A shipped bundle that is damaged is left out with a warning
    on standard error.

    Raises:
        RequestError: a named database that cannot be read, one of searches, nothing to read, or ``shipped``
            with a database.
    """
    if shipped and (own or url):
        raise RequestError("--shipped shows what comes with the suite alone: leave --own and --db away")
    # Of a shipped bundle no more is checked than that its files are those that were shipped.
    read, damage_errors = ([], []) if own else read_bundles(folder, trusted=True)
    bundles = [(bundle.name, bundle) for bundle in read]
    database = Database(url or paths.default_database())
    without_database = shipped or (url is None and database.empty())
    if without_database and damage_errors and not bundles:
        raise damage_errors[0]
    for error in damage_errors:
        print(f"bench: warning: left out: {error}", file=sys.stderr)
    if without_database and bundles:
        yield merged(None, bundles)
        return
    with open_store(url or paths.default_database(), create=False) as store:
        if not store.runs(state="searched").empty:
            raise RequestError(
                f"{database.name} is a database of searches, whose runs have no number of a test item: name "
                "another one"
            )
        yield merged(store, bundles)
