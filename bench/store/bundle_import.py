"""Writing a bundle's runs into a result database: all that may be written, or nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pandas as pd
from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from bench.errors import RequestError
from bench.store.arrays import pack_array, pack_counts
from bench.store.bundle import Bundle
from bench.store.bundle_consistent import check_consistent
from bench.store.bundle_format import CURVE_SPLIT
from bench.store.bundle_marks import UNVERIFIED
from bench.store.models import Artefact, Base, ClientResult, Curve, ImportedBundle, Partition, Run
from bench.store.outcome import Outcome, outcomes
from bench.store.queries import Stored
from bench.store.store import Store, environment_id, open_store

GIVES_WAY = ("failed", "no_data", "oom")
"""States of a stored run that a finished imported one takes the place of."""

NOT_COPIED = ("id", "environment_id", "bundle", "bundle_state")
RESULT_COLUMNS = ("client", "stage", "split", "rule", "metric", "value", "samples")


@dataclass(frozen=True)
class Imported:
    """What became of a bundle's runs.

    ``added`` were not stored, ``replaced`` took the place of runs without an outcome, ``equal``
    were stored already; ``conflicts`` names those of which another outcome is stored, which stays.
    """

    added: int
    replaced: int
    equal: int
    conflicts: tuple[str, ...]


def run_name(run: Mapping[Any, Any]) -> str:
    """A run in words, from a row of ``runs()``; the start of its hash tells variants apart."""
    words = "{method} on {dataset}, {scenario}, {clients} clients, seed {seed} ({spec_hash:.8})"
    return words.format_map(run)


def import_bundle(url: str, bundle: Bundle) -> Imported:
    """Write a bundle's runs in one transaction, by the rules of ``docs/results-format.md``.

    The database at ``url`` is made where it is missing. Times, versions and numerics stay as the
    bundle has them. A bundle of which no run is written leaves nothing.

    Raises:
        RequestError: its numbers do not agree among themselves, a partition is known as that of
            other clients, or the database cannot be written; nothing is written then.
    """
    if not bundle.name.isprintable():
        raise RequestError(f"bundle {bundle.name!r}: a control character in its name: rename the folder")
    check_consistent(bundle)
    runs = bundle.runs()
    with open_store(url, create=True) as store, store.transaction() as session:
        _check_partitions(store, bundle)
        stored = store.states()
        places = {digest: stored.get(digest) for digest in runs["spec_hash"]}
        gives_way = {
            digest: old.id
            for digest, state in zip(runs["spec_hash"], runs["state"], strict=True)
            if state == "done" and (old := places[digest]) is not None and old.state in GIVES_WAY
        }
        new = {digest for digest, old in places.items() if old is None}
        wanted = runs["spec_hash"].isin(new | gives_way.keys())
        equal, conflicts = _compare(store, bundle, runs[~wanted], places)
        if wanted.any():
            _write(session, bundle, runs[wanted], gives_way)
    return Imported(len(new), len(gives_way), equal, conflicts)


def _check_partitions(store: Store, bundle: Bundle) -> None:
    """A hash names the same clients everywhere."""
    names = ["hash", "dataset", "scenario", "clients"]
    both = bundle.partitions()[names].merge(store.partitions()[names], on="hash", suffixes=("", "_stored"))
    for name in names[1:]:
        for digest in both.loc[both[name] != both[f"{name}_stored"], "hash"]:
            raise RequestError(
                f"bundle {bundle.folder}: partition {digest[:12]} has another {name} than in {store.url}"
            )


def _compare(
    store: Store, bundle: Bundle, runs: pd.DataFrame, places: Mapping[str, Stored | None]
) -> tuple[int, tuple[str, ...]]:
    """Number of runs that are stored as they are, and the names of the others."""
    ours = store.runs()
    ours = ours[ours["spec_hash"].isin(set(runs["spec_hash"]))]
    theirs = runs.set_index("spec_hash", drop=False).loc[ours["spec_hash"]]
    conflicts = []
    for (mine, kept), (run, offered) in zip(outcomes(store, ours), outcomes(bundle, theirs), strict=True):
        if not kept.same(offered):
            numbers = "another one" if kept.state == offered.state else f"{offered.state}"
            origin = f"that of bundle {mine['bundle']}" if mine["bundle"] else "our own"
            conflicts.append(f"{run_name(run)}: stored is {kept.state}, {origin}; the bundle has {numbers}")
    return len(runs) - len(conflicts), tuple(conflicts)


def _write(session: Session, bundle: Bundle, runs: pd.DataFrame, ids: Mapping[str, int]) -> None:
    """Write runs and what belongs to them; ``ids`` are those that some of them take over."""
    bundle_id = _bundle_id(session, bundle)
    texts = bundle.environments().set_index("id")["description"]
    used = runs["environment_id"].unique()
    environments = {number: environment_id(session, json.loads(texts.loc[number])) for number in used}
    for row in bundle.partitions().to_dict("records"):
        if row["hash"] in set(runs["partition_hash"]) and session.get(Partition, row["hash"]) is None:
            session.add(Partition(**{str(name): value for name, value in row.items()}))
    for values, outcome in outcomes(bundle, runs):
        columns = {name: value for name, value in values.items() if name not in NOT_COPIED}
        old = ids.get(values["spec_hash"])
        if old is not None:
            session.execute(delete(Run).where(Run.id == old))
        run = Run(
            **columns | {"started": values["started"].to_pydatetime()},
            id=old,
            environment_id=environments[values["environment_id"]],
            bundle_id=bundle_id,
        )
        session.add(run)
        session.flush()
        _write_numbers(session, run.id, outcome)
        arrays = [
            {"run_id": run.id, "name": name, "data": pack_array(bundle.artefact(values["id"], name))}
            for name in bundle.artefact_names(values["id"])
        ]
        _insert(session, Artefact, arrays)


def _write_numbers(session: Session, run_id: int, outcome: Outcome) -> None:
    rows = [dict(zip(RESULT_COLUMNS, row, strict=True), run_id=run_id) for row in outcome.rows]
    _insert(session, ClientResult, rows)
    curves = [
        {
            "run_id": run_id,
            "stage": stage,
            "split": CURVE_SPLIT,
            "rows": counts.shape[0],
            "clients": counts.shape[1],
            "data": pack_counts(counts),
        }
        for stage, counts in outcome.curves.items()
    ]
    _insert(session, Curve, curves)


def _insert(session: Session, model: type[Base], rows: list[dict[str, Any]]) -> None:
    if rows:
        session.execute(insert(model), rows)


def _bundle_id(session: Session, bundle: Bundle) -> int:
    known = session.scalar(select(ImportedBundle.id).where(ImportedBundle.hash == bundle.hash))
    if known is not None:
        return known
    row = ImportedBundle(
        name=bundle.name,
        source=bundle.source,
        hash=bundle.hash,
        imported=datetime.now(UTC).replace(tzinfo=None),
        state=UNVERIFIED,
        sample="{}",
    )
    session.add(row)
    session.flush()
    return row.id
