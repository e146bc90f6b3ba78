"""A database of 100,000 made-up runs, to see what a site of that size takes.

``python tests/leaderboard/large_database.py DATABASE SITE`` fills the database if it is missing, builds the
site from it and prints seconds, memory and sizes.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import insert

from bench.engine.methods import METHODS
from bench.leaderboard.build import build
from bench.resolve import resolve
from bench.spec import RunSpec
from bench.store import open_store
from bench.store.models import ClientResult, Curve, Environment, Partition, Run, pack_counts
from bench.studies.source import MergedSource
from bench.studies.study import STUDIES

DATASETS = ("cora", "citeseer", "pubmed", "computers", "photo", "ogbn-arxiv")
COLUMNS = [
    *product(DATASETS, ("non-overlapping",), (10, 20)),
    *product(DATASETS, ("overlapping",), (30, 50)),
    ("cora", "non-overlapping", 5),
]
OWN = (
    "local",
    "fedavg",
    "fedprox",
    "fedper",
    "fedsage_plus",
    "pfedhn",
    "fggp",
    "pfedgraph",
    "fedpub",
    "flow",
)
COMPETITORS = (*OWN, "fedsheafhn", "majority", *(f"guest_{number:02d}" for number in range(28)))
SEEDS = 100
CLIENTS = 10
"""Clients with results; fewer than the columns say, to keep the database small."""
SAMPLES = 50
ROWS = 30
STAGES, SPLITS = ("received", "trained"), ("val", "test")
RULES = ("best_val", "last", "best_test", "client_best_val")


def specs() -> Iterator[tuple[int, int, RunSpec]]:
    """Column, method and spec of every run."""
    for (place, column), (number, method) in product(enumerate(COLUMNS), enumerate(COMPETITORS)):
        usual = resolve(*column, method if method in METHODS.all() else "local", 0)
        for seed in range(SEEDS):
            yield place, number, usual.model_copy(update={"method": method, "seed": seed})


def fill(url: str) -> None:
    """Write the runs, a column and method in one transaction."""
    draw = np.random.default_rng(0)
    pool = [pack_counts(draw.integers(20, 45, (ROWS, CLIENTS)).astype(np.int32)) for _ in range(64)]
    readings = list(product(STAGES, SPLITS, RULES))
    with open_store(url, create=True) as store:
        with store.transaction() as session:
            session.add(Environment(id=1, hash="e", description=json.dumps({"python": "3.11", "threads": 1})))
            session.add_all(
                Partition(hash=f"{place:064x}", dataset=d, scenario=s, clients=k, provenance="{}")
                for place, (d, s, k) in enumerate(COLUMNS)
            )
        runs: list[dict[str, Any]] = []
        for run, (place, number, spec) in enumerate(specs(), 1):
            runs.append(_run(run, place, spec))
            if len(runs) < SEEDS:
                continue
            level = 25 + number % 7 + draw.integers(0, 12, CLIENTS)
            counts = np.clip(level + draw.integers(-3, 4, (SEEDS, len(readings), CLIENTS)), 0, SAMPLES)
            with store.transaction() as session:
                session.execute(insert(Run), runs)
                raw = session.connection().connection.driver_connection
                assert raw is not None
                names = [column.name for column in ClientResult.__table__.columns]
                marks = ",".join("?" * len(names))
                raw.executemany(
                    f"INSERT INTO client_results ({','.join(names)}) VALUES ({marks})",
                    _results(runs, readings, counts.tolist()),
                )
                session.execute(insert(Curve), _curves(runs, pool))
            runs = []


def _run(run: int, place: int, spec: RunSpec) -> dict[str, Any]:
    return {
        "id": run,
        "spec_hash": spec.hash,
        "spec": spec.canonical(),
        "cell": spec.cell,
        "dataset": spec.dataset,
        "scenario": spec.scenario,
        "clients": spec.clients,
        "method": spec.method,
        "seed": spec.seed,
        "rounds": spec.protocol.rounds,
        "state": "done",
        "partition_hash": f"{place:064x}",
        "environment_id": 1,
        "started": datetime(2026, 1, 1),
        "seconds_total": 1.0 + run % 50,
        "peak_memory": 10**8 + run,
        "bytes_up": 10**6 * (1 + run % 9),
        "bytes_down": 10**6,
        "device": "cpu",
        "code_version": "0",
        "method_numerics": 1,
        "engine_numerics": 1,
    }


def _results(
    runs: list[dict[str, Any]], readings: list[tuple[str, str, str]], counts: list[list[list[int]]]
) -> Iterator[tuple[Any, ...]]:
    for run, by_reading in zip(runs, counts, strict=True):
        for client in range(CLIENTS):
            for (stage, split, rule), row in zip(readings, by_reading, strict=True):
                yield run["id"], client, stage, split, rule, "accuracy", row[client] / SAMPLES, SAMPLES


def _curves(runs: list[dict[str, Any]], pool: list[bytes]) -> list[dict[str, Any]]:
    return [
        {
            "run_id": run["id"],
            "stage": stage,
            "split": split,
            "rows": ROWS,
            "clients": CLIENTS,
            "data": pool[(run["id"] + place) % len(pool)],
        }
        for run in runs
        for place, (stage, split) in enumerate(product(STAGES, SPLITS))
    ]


def main(database: Path, site: Path) -> None:
    """Fill, build and print."""
    url = f"sqlite:///{database}"
    if not database.exists():
        start = time.perf_counter()
        fill(url)
        print(f"filled in {time.perf_counter() - start:.0f} s, {database.stat().st_size / 1e6:,.0f} MB")
    start = time.perf_counter()
    with open_store(url, create=False) as store:
        made = build(MergedSource(store, []), STUDIES.all(), METHODS.all(), site)
    seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    pages = sorted((path.stat().st_size, str(path.relative_to(site))) for path in site.rglob("*.html"))
    print(f"{made.runs:,} runs in {seconds:.0f} s, {memory:.1f} GiB")
    print(f"{made.files:,} files, {made.bytes / 1e6:.1f} MB")
    print(f"index.html {(site / 'index.html').stat().st_size:,} bytes; largest pages {pages[-3:]}")
    largest = max((path.stat().st_size, path.name) for path in (site / "data").iterdir())
    print(f"largest file of data {largest}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
