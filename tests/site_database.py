"""A small result database whose every number can be worked out by hand, and the site made from it.

Client ``c`` of a done run has ``base + c`` of 100 test samples right at the middle one of three rounds,
where validation is best, and one less at the others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
from sqlalchemy import select
from stored_runs import MemoryStore, save

from bench.engine.method import Method
from bench.engine.methods import METHODS
from bench.engine.result import RunResult
from bench.hyper import HyperParameters, tunable
from bench.site.leaderboard import build
from bench.spec import Protocol, RunSpec
from bench.store import open_store
from bench.store.tables import ImportedBundle, Run
from bench.studies.experiment import Comparison, Experiment, Line, Target
from bench.studies.settings import Column, Reading
from bench.studies.shipped import merged
from bench.studies.study import Study

EVIL = '<img src=x onerror="window.hacked=1">'
"""A method's name."""

REASON = "out of luck\u2028</script><script>window.hacked=1</script> & 'so on'"
BUNDLE = "<b onclick='window.hacked=1'>bundle</b>"
PARTITION = "abcdef0123456789" * 4

TEN = Column("cora", "non-overlapping", 10)
TWENTY = Column("cora", "non-overlapping", 20)


class Tiny(Study):
    """One table on Cora."""

    name = "tiny"
    title = "Tiny <study>"
    grids = ()
    experiments = (
        Experiment(
            "table1",
            "Table 1",
            (Comparison("Table 1", (Target("fedsheafhn_final", "Table 1"),)),),
            main=True,
            columns=(TEN, TWENTY),
        ),
    )
    lines = (
        Line("local", "Local"),
        Line("fedavg", "FedAvg"),
        Line("fedprox", "FedProx"),
        Line("fedper", "FedPer"),
        Line("fedsheafhn", "FedSheafHN"),
    )
    primary = Reading("trained", "best_val")


class Renamed(Tiny):
    """A table that knows a method by a name of its own."""

    lines = (Line("local", "Local"), Line("fedavg", "Plain averaging"), Line("fedprox", "FedProx"))


class Evil(Method):
    """First paragraph <script>window.hacked=1</script> with ``code <b>`` in it.

    Second paragraph.
    """

    name = EVIL
    title = f"Evil {EVIL}"
    reference = "</dd><script>window.hacked=1</script>"

    class Hyper(HyperParameters):
        """One of them."""

        mu: float = tunable(0.1, [0.1, 1.0])


COMPETITORS = {**METHODS.all(), EVIL: Evil}

BASES: dict[tuple[Column, str], Sequence[int]] = {
    (TEN, "local"): (60, 62),
    (TEN, "fedavg"): (70, 71, 75),
    (TEN, "fedper"): (80,),
    (TEN, EVIL): (85, 86),
    (TWENTY, "local"): (50, 51),
    (TWENTY, "fedavg"): (40, 47),
}
"""Counts of client 0 of the done runs, by seed."""


def spec(column: Column, method: str, seed: int) -> RunSpec:
    """The spec of a run: three rounds."""
    return RunSpec(
        dataset=column.dataset,
        scenario=column.scenario,
        clients=column.clients,
        method=method,
        seed=seed,
        protocol=Protocol(rounds=3),
        hyper={"mu": 0.1} if method == EVIL else {},
    )


def done(base: int, clients: int) -> RunResult:
    """The received model is one worse everywhere; there are 50 validation samples."""
    test = base + np.arange(clients, dtype=np.int32)[None, :] + np.array([[-1], [0], [-1]], np.int32)
    val = np.repeat(np.array([[10], [40], [20]], np.int32), clients, axis=1)
    return RunResult(
        "done",
        correct={
            ("trained", "test"): test,
            ("received", "test"): test - 1,
            ("trained", "val"): val,
            ("received", "val"): val,
        },
        samples={"val": np.full(clients, 50, np.int32), "test": np.full(clients, 100, np.int32)},
        seconds={"total": 2.5, "client": 1.5},
        peak_memory=3 * 2**20,
        bytes_up=1_500_000,
        bytes_down=500_000,
        partition_hash=PARTITION,
    )


def fill(url: str, bundle_state: str = "unverified", findings: Sequence[str] = ("equal",)) -> None:
    """Write the runs of ``BASES``, a diverged FedPer, two failed FedProx; the evil ones are imported. Unless
    their bundle is unverified, ``findings`` are what came of the first ones when they were made again.
    """
    made_on = {"python": "3.11", "note": EVIL}
    with open_store(url, create=True) as store:
        for (column, method), bases in BASES.items():
            for seed, base in enumerate(bases):
                save(store, spec(column, method, seed), done(base, column.clients), environment=made_on)
        diverged = RunResult("diverged", reason="loss is nan in round 2")
        save(store, spec(TEN, "fedper", 1), diverged, environment=made_on)
        for seed in range(2):
            failed = RunResult("failed", reason=REASON)
            save(store, spec(TEN, "fedprox", seed), failed, environment=made_on)
        with store.transaction() as session:
            evil_runs = session.scalars(select(Run).where(Run.method == EVIL)).all()
            found = findings if bundle_state != "unverified" else ()
            bundle = ImportedBundle(
                name=BUNDLE,
                source="",
                hash="b",
                imported=datetime(2026, 2, 3),
                state=bundle_state,
                sample=json.dumps({run.spec_hash: text for run, text in zip(evil_runs, found, strict=False)}),
                checked=None if bundle_state == "unverified" else datetime(2026, 3, 4),
            )
            session.add(bundle)
            session.flush()
            for run in evil_runs:
                run.bundle_id = bundle.id


def build_site(url: str, out: Path, study: type[Study] = Tiny) -> None:
    """Write the site of a database alone."""
    with open_store(url, create=False) as store:
        build(merged(store, []), {"tiny": study}, COMPETITORS, out)


def means(column: Column, method: str) -> list[float]:
    """Test accuracy in percent of every seed: the mean of base, base + 1, ..."""
    return [base + (column.clients - 1) / 2 for base in BASES[column, method]]


def runs_of_two(name: str = "fedavg") -> MemoryStore:
    """Runs of Local and another method, and a failed one."""
    source = MemoryStore()
    for seed in (0, 1, 2):
        source.add("local", seed, [[50, 60], [72, 70]], seconds={"total": 2.0})
        source.add(name, seed, [60, 62 + seed], bytes_up=10**6, seconds={"total": 3.0})
    source.add("flow", 0, None, state="failed", reason=f"broken {name}")
    return source
