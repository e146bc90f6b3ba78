"""What a database holds, before it is known whether it will be written."""

from __future__ import annotations

from bench.store import connect
from bench.store.queries import Stored, Timing
from bench.store.store import open_store


def stored_runs(url: str, write: bool) -> tuple[dict[str, Stored], list[Timing]]:
    """Stored runs by spec hash, and what they cost; nothing where there is no database yet.

    With ``write``, a database that could not be written is refused now, before anything is run.
    Nothing is created.

    Raises:
        RequestError: as ``open_store``.
    """
    place = connect.database(url)
    if write:
        place.check(write=True)
    if place.empty():
        return {}, []
    with open_store(url, create=False) as store:
        return store.states(), store.history()


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
