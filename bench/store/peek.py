"""What a database holds, before it is known whether it will be written."""

from __future__ import annotations

from bench.errors import RequestError
from bench.store import connect
from bench.store.queries import Stored, Timing
from bench.store.store import open_store


def stored_runs(url: str, write: bool, searches: bool = False) -> tuple[dict[str, Stored], list[Timing]]:
    """Stored runs by spec hash, and what they cost; nothing where there is no database yet.

    With ``write``, a database that could not be written is refused now, before anything is run.
    Nothing is created. ``searches``: the database is one of searches; those and runs that are reported
    never share one.

    Raises:
        RequestError: as ``open_store``, and for a database of the other sort.
    """
    place = connect.database(url)
    if write:
        place.check(write=True)
    if place.empty():
        return {}, []
    with open_store(url, create=False) as store:
        stored = store.states()
        other = "done" if searches else "searched"
        if any(run.state == other for run in stored.values()):
            sort = (
                "tuning database: it holds runs that are reported"
                if searches
                else ("database of runs that are reported: it holds those of searches")
            )
            raise RequestError(f"--db: {place.name} cannot be a {sort}; name another one")
        return stored, store.history()


def knows_bundle(url: str, digest: str, must_exist: bool) -> bool:
    """Whether the bundle with this hash was imported; then the database can be written, too.

    Nothing is created. Without ``must_exist`` there may be no database yet.

    Raises:
        RequestError: as ``open_store``, and for an imported bundle as for writing.
    """
    place = connect.database(url)
    if not must_exist and place.empty():
        return False
    with open_store(url, create=False) as store:
        known = digest in set(store.bundles()["hash"])
    if known:
        place.check(write=True)
    return known
