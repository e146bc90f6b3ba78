"""``bench import``: results of somebody else, checked and written into the database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bench import paths

SHOWN = 10
"""Conflicts named one by one; --json names all."""


def import_(
    bundle: Path,
    /,
    *,
    db: str | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Check a bundle and write its runs into the database, in one step or not at all.

    A run that is stored with the same outcome is skipped. A stored run with an outcome is never
    replaced: where the bundle has another one, that is a conflict, which is reported, and the
    stored run stays. A stored run that failed, had no data or ran out of memory gives way to a
    finished one of the bundle. Imported runs count as done in a sweep, keep the bundle's name and
    are unverified until 'bench verify' has made a sample of them again.

    Parameters
    ----------
    bundle
        The bundle's folder. All of it is written or nothing; a stored run with an outcome always
        stays (an equal one is skipped, another one is a conflict), one that failed, had no data
        or ran out of memory gives way to a finished one (docs/results-format.md).
    db
        Database URL; default: sqlite:///BENCH_HOME/bench.db.
    as_json
        Print a JSON object.
    """
    from bench.store.bundle import Bundle
    from bench.store.bundle_import import import_bundle

    found = Bundle(bundle)
    done = import_bundle(db or paths.default_database(), found)
    if as_json:
        counts = {"added": done.added, "replaced": done.replaced, "equal": done.equal}
        print(json.dumps({"bundle": found.name, **counts, "conflicts": done.conflicts}))
        return
    for line in done.conflicts[:SHOWN]:
        print(f"conflict: {line}")
    if len(done.conflicts) > SHOWN:
        print(f"and {len(done.conflicts) - SHOWN:,} conflicts more: --json names all")
    print(
        f"{found.name}: {done.added:,} runs added, {done.replaced:,} in place of failed ones, "
        f"{done.equal:,} equal to stored ones, {len(done.conflicts):,} in conflict with stored ones, "
        "which stay"
    )
