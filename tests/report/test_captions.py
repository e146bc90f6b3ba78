"""Notes below a table: whose runs it shows."""

from __future__ import annotations

import pytest
from stored_runs import MemoryStore
from study_cells import shown
from toy_study import ToyStudy

from bench.report.captions import OWN_RUNS
from bench.report.tables import document_of
from bench.studies.shipped import merged


def filled(*methods: str) -> MemoryStore:
    """Two runs of each method on Cora with ten clients."""
    database = MemoryStore()
    for method in methods:
        for seed in range(2):
            database.add(method, seed, [80] * 10)
    return database


@pytest.mark.parametrize(
    ("own", "shipped", "expected"),
    [
        (("fedprox", "fedper"), ("local",), [f"{OWN_RUNS}: FedPer, FedProx."]),
        (("fedprox", "local"), (), []),
        ((), ("fedprox", "local"), []),
    ],
)
def test_runs_of_ones_own_are_named_beside_shipped_ones(
    own: tuple[str, ...], shipped: tuple[str, ...], expected: list[str]
) -> None:
    source = merged(filled(*own), [("bundle", filled(*shipped))])
    lines = document_of(shown(ToyStudy, "table1", source)).fine_print
    assert [line for line in lines if line.startswith(OWN_RUNS)] == expected
