"""Notes below a table: whose runs it shows."""

from __future__ import annotations

import pytest
from stored_runs import MemoryStore
from study_cells import shown
from toy_study import ToyStudy

from bench.report.captions import OWN_RUNS, notes
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
        (("fedprox",), ("local", "fedavg"), {"FedProx"}),
        (("fedprox", "fedper"), ("local",), {"FedProx", "FedPer"}),
        (("fedprox", "local"), (), set()),
        ((), ("fedprox", "local"), set()),
    ],
)
def test_runs_of_ones_own_are_named_beside_shipped_ones(
    own: tuple[str, ...], shipped: tuple[str, ...], expected: set[str]
) -> None:
    source = merged(filled(*own), [("bundle", filled(*shipped))])
    own_notes = [note for note in notes(shown(ToyStudy, "table1", source)) if note.startswith(OWN_RUNS)]
    assert len(own_notes) == (1 if expected else 0)
    titles = {line.title or line.method for line in ToyStudy.lines}
    named = {title for note in own_notes for title in titles if f" {title}" in note.replace(",", " ")}
    assert named == expected


def test_a_cell_of_own_and_shipped_seeds_says_which_are_whose() -> None:
    own = MemoryStore()
    own.add("local", 1, [70] * 10)
    source = merged(own, [("bundle", filled("local", "fedavg"))])
    (note,) = [note for note in notes(shown(ToyStudy, "table1", source)) if note.startswith(OWN_RUNS)]
    assert "seeds 1)" in note
    assert "Local" in note
    assert "FedAvg" not in note
