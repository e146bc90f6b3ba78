"""``bench import``: results of somebody else, checked and written into the database."""

from __future__ import annotations

import json
from pathlib import Path

from bench import paths
from bench.cli.options import AsJson, Database

SHOWN = 10
"""Conflicts named one by one; --json names all."""


def import_bundle(bundle: Path, /, *, db: Database = None, as_json: AsJson = False) -> None:
    """Check a bundle and write its runs into the database, in one step or not at all.

    A run that is stored with the same outcome is skipped. A stored run with an outcome is never
    replaced: where the bundle has another one, that is a conflict, which is reported, and the
    stored run stays. A stored run that failed, had no data or ran out of memory gives way to a
    finished one of the bundle. Imported runs count as done in a sweep, keep the bundle's name and
    are unverified until 'bench verify' has made a sample of them again.

    Parameters
    ----------
    bundle
        The bundle's folder (docs/results-format.md).
    """
    from bench.store import bundle_import
    from bench.store.bundle import Bundle

    theirs = Bundle(bundle)
    report = bundle_import.import_bundle(db or paths.default_database(), theirs)
    if as_json:
        counts = {"added": report.added, "replaced": report.replaced, "equal": report.equal}
        print(json.dumps({"bundle": theirs.name, **counts, "conflicts": report.conflicts}))
        return
    for line in report.conflicts[:SHOWN]:
        print(f"conflict: {line}")
    if len(report.conflicts) > SHOWN:
        print(f"and {len(report.conflicts) - SHOWN:,} conflicts more: --json names all")
    print(
        f"{theirs.name}: {report.added:,} runs added, {report.replaced:,} in place of failed ones, "
        f"{report.equal:,} equal to stored ones, {len(report.conflicts):,} in conflict with stored ones, "
        "which stay"
    )
