"""Write a bundle's runs into a result database, and store the findings of making them again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from sqlalchemy import select

from bench.engine.states import SETTLED
from bench.store.bundle import Bundle
from bench.store.models import Environment, ImportedBundle, Partition, Run
from bench.store.store import Store, id_of, now, open_store, replace_run, write_rows

RUNS_AT_A_TIME = 200

COPIED = {column.name for column in Run.__table__.columns} - {"id", "environment_id", "bundle_id", "started"}
"""Columns of a run that are copied from the bundle unchanged."""


def import_bundle(url: str, bundle: Bundle) -> dict[str, int]:
    """Write a bundle's runs in one transaction, by the rules of ``docs/results-format.md``.

    Returns the numbers of runs ``added``, ``replaced`` (the stored runs had failed) and ``skipped``. The
    database at ``url`` is created if it is missing. If no run is written, nothing is stored of the bundle.
    """
    runs = bundle.runs()
    with open_store(url, create=True) as store, store.transaction() as session:
        stored = store.runs().set_index("spec_hash")
        old_ids, states = stored["id"].to_dict(), runs["spec_hash"].map(stored["state"])
        is_new = states.isna()
        gives_way = ~is_new & ~states.isin(SETTLED) & runs["state"].isin(SETTLED)
        counts = {"added": int(is_new.sum()), "replaced": int(gives_way.sum())}
        counts["skipped"] = len(runs) - sum(counts.values())
        runs = runs[is_new | gives_way]
        if runs.empty:
            return counts
        origin = {"hash": bundle.hash, "name": bundle.name, "source": bundle.source, "imported": now()}
        bundle_id = id_of(session, ImportedBundle(**origin, state="unverified", sample="{}"))
        environments = {
            number: id_of(session, Environment(hash=digest, description=text))
            for number, digest, text in bundle.table("environments").itertuples(index=False)
        }
        for partition in bundle.table("partitions").to_dict("records"):
            if session.get(Partition, partition["hash"]) is None:
                session.add(Partition(**{str(name): value for name, value in partition.items()}))
        ids: dict[int, int] = {}
        for run in runs.to_dict("records"):
            values = {str(name): value for name, value in run.items() if name in COPIED}
            values |= {"started": run["started"].to_pydatetime(), "bundle_id": bundle_id}
            values |= {"environment_id": environments[run["environment_id"]]}
            ids[run["id"]] = replace_run(session, old_ids.get(run["spec_hash"]), values).id
        for start in range(0, len(runs), RUNS_AT_A_TIME):
            numbers = runs["id"].iloc[start : start + RUNS_AT_A_TIME].tolist()
            for name in ("client_results", "curves", "confusions", "artefacts"):
                rows = bundle.table(name, run_id=numbers)
                rows = rows.assign(run_id=rows["run_id"].map(ids))
                write_rows(session, name, rows.to_dict("records"))
        return counts


Finding = Literal["equal", "close", "differs"]
"""Result of making a run again: equal counts, accuracies within the tolerance, or neither."""


def mark(store: Store, digest: str, findings: Mapping[str, Finding]) -> str | None:
    """Store findings (by spec hash) of the imported bundle with this hash. Return the bundle's state:
    ``contradicted`` if the latest finding of a run differs, else ``verified``; None if there is none.
    """
    with store.transaction() as session:
        row = session.scalar(select(ImportedBundle).where(ImportedBundle.hash == digest))
        if row is None:
            return None
        sample: dict[str, str] = json.loads(row.sample) | findings
        row.sample = json.dumps(sample, sort_keys=True)
        row.checked = now()
        row.state = "contradicted" if "differs" in sample.values() else "verified"
        return row.state
