"""Whether an imported bundle can be trusted: what came of making some of its runs again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from sqlalchemy import select

from bench.store.models import ImportedBundle
from bench.store.store import Store

UNVERIFIED, VERIFIED, CONTRADICTED = "unverified", "verified", "contradicted"

Finding = Literal["equal", "close", "differs"]
"""Every count is equal; accuracies agree within the tolerance; or neither."""


def mark(store: Store, digest: str, findings: Mapping[str, Finding]) -> str | None:
    """Store what came of runs (spec hash -> finding) of the bundle with this hash.

    Findings are kept for every run that was ever made again, the latest of each: one that differs
    is not outweighed by drawing others. Returned is the bundle's state: ``contradicted`` if one of
    them differs, else ``verified``; None where no such bundle was imported.

    Raises:
        RequestError: the database cannot be written.
    """
    with store.transaction() as session:
        row = session.scalar(select(ImportedBundle).where(ImportedBundle.hash == digest))
        if row is None:
            return None
        sample: dict[str, Finding] = {**json.loads(row.sample), **findings}
        row.sample = json.dumps(sample, sort_keys=True)
        row.state = CONTRADICTED if "differs" in sample.values() else VERIFIED
        return row.state
