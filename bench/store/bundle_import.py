"""Writes a bundle's runs into a result database, and keeps what came of making them again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import pandas as pd
from sqlalchemy import select
from sqlalchemy.orm import Session

from bench.engine.states import SETTLED
from bench.spec import run_name
from bench.store.bundle import Bundle
from bench.store.models import Environment, ImportedBundle, Partition, Run
from bench.store.store import Store, Stored, id_of, now, open_store, replace_run, write_rows

RUNS_AT_A_TIME = 200

COPIED = {column.name for column in Run.__table__.columns} - {"id", "environment_id", "bundle_id", "started"}
"""Columns of a run that are stored as the bundle has them."""

NAMES = ("dataset", "scenario", "clients", "method", "seed")


class ImportInfo(NamedTuple):
    """Numbers of a bundle's runs: those added, those in place of a failed run, and those left out."""

    added: int
    replaced: int
    skipped: int


def name_of(run: Mapping[Any, Any]) -> str:
    """The name of a run, from a row of ``runs()``; the start of its hash tells variants apart."""
    return f"{run_name(*(run[name] for name in NAMES))} ({run['spec_hash'][:8]})"


# Writing ------------------------------------------------------------------------------------------


def import_bundle(url: str, bundle: Bundle) -> ImportInfo:
    """Write a bundle's runs in one transaction, by the rules of ``docs/results-format.md``.

    The database at ``url`` is made where it is missing. Times, versions and numerics stay as the
    bundle has them. A settled run that is stored stays. A bundle of which no run is written leaves nothing.

    Raises:
        RequestError: the database cannot be written; nothing is written then.
    """
    runs = bundle.runs()
    with open_store(url, create=True) as store, store.transaction() as session:
        old_runs = store.states()
        states = runs["spec_hash"].map({digest: row.state for digest, row in old_runs.items()})
        is_new = states.isna()
        gives_way = ~is_new & ~states.isin(SETTLED) & runs["state"].isin(SETTLED)
        is_written = is_new | gives_way
        if is_written.any():
            _write(session, bundle, runs[is_written], old_runs)
    return ImportInfo(int(is_new.sum()), int(gives_way.sum()), int((~is_written).sum()))


def _write(session: Session, bundle: Bundle, runs: pd.DataFrame, old_runs: Mapping[str, Stored]) -> None:
    """Write runs and what belongs to them, in the place of those that are stored."""
    bundle_id = id_of(
        session,
        ImportedBundle,
        bundle.hash,
        name=bundle.name,
        source=bundle.source,
        imported=now(),
        state="unverified",
        sample="{}",
    )
    environments = {
        number: id_of(session, Environment, digest, description=text)
        for number, digest, text in bundle.table("environments").itertuples(index=False)
        if number in set(runs["environment_id"])
    }
    for row in bundle.table("partitions").to_dict("records"):
        if row["hash"] in set(runs["partition_hash"]) and session.get(Partition, row["hash"]) is None:
            session.add(Partition(**{str(name): value for name, value in row.items()}))
    ids: dict[int, int] = {}
    for row in runs.to_dict("records"):
        values = {str(name): value for name, value in row.items() if name in COPIED}
        values |= {
            "started": row["started"].to_pydatetime(),
            "environment_id": environments[row["environment_id"]],
            "bundle_id": bundle_id,
        }
        ids[row["id"]] = replace_run(session, old_runs.get(row["spec_hash"]), values).id
    for start in range(0, len(runs), RUNS_AT_A_TIME):
        numbers = runs["id"].iloc[start : start + RUNS_AT_A_TIME].tolist()
        for name in ("client_results", "curves", "confusions", "artefacts"):
            rows = bundle.table(name, run_id=numbers)
            rows = rows.assign(run_id=rows["run_id"].map(ids))
            write_rows(session, name, rows.to_dict("records"))


# Trust --------------------------------------------------------------------------------------------

Finding = Literal["equal", "close", "differs"]
"""What came of a run made again: equal counts, accuracies within the tolerance, or neither."""


def mark(store: Store, digest: str, findings: Mapping[str, Finding]) -> str | None:
    """Store the findings (by spec hash) of the imported bundle with this hash; returns the bundle's state.

    The latest finding of every run is kept: one that differs is not outweighed by drawing others. The state
    is ``contradicted`` if one differs, else ``verified``; None where no such bundle was imported.
    Raises as ``Store.transaction``.
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
