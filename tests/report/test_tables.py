"""Spread over clients and seeds, beside numbers worked out by hand."""

from __future__ import annotations

import pytest
from stored_runs import MemoryStore
from study_cells import shown
from toy_study import ToyStudy

from bench.report.document import Document
from bench.report.tables import spread_document


def spread_of(database: MemoryStore) -> Document | None:
    return spread_document(shown(ToyStudy, "table1", database))


def test_spread_over_clients_and_seeds() -> None:
    database = MemoryStore()
    for seed, (alone, together) in enumerate(
        (([70, 80, 90], [71, 60, 85]), ([60, 80, 70], [62, 76, 72]), ([65, 75, 85], [65, 75, 85]))
    ):
        database.add("local", seed, alone)
        database.add("fedavg", seed, together)
    made = spread_of(database)
    assert made is not None
    rows = made.records["numbers"].set_index("method").iloc[:, 3:]
    # Seeds' means 72, 70, 75: mean 72.33, std 2.5166, half 4.3027 * 2.5166 / sqrt(3) = 6.2516.
    assert rows.loc["fedavg"][:5].tolist() == pytest.approx([3, 72.3333, 2.5166, 66.0817, 78.5849], abs=1e-4)
    # sqrt(157), sqrt(52) and 10 over clients; worst 60, 62, 65; below Local 2, 1 and 0.
    of_clients = [(157**0.5 + 52**0.5 + 10) / 3, 187 / 3, 187 / 3, 1]
    assert rows.loc["fedavg"][5:].tolist() == pytest.approx(of_clients)
    assert rows.loc["local"].iloc[-1] == 0


def test_clients_of_other_partitions_are_not_set_against_local() -> None:
    database = MemoryStore()
    database.add("local", 0, [70, 80], partition_hash="p")
    database.add("local", 1, [70, 80], partition_hash="q")
    database.add("fedavg", 0, [60, 90], partition_hash="p")
    database.add("fedavg", 1, [10, 10], partition_hash="p")
    database.add("fedper", 2, [10, 10], partition_hash="q")
    made = spread_of(database)
    assert made is not None
    rows = {label: row[-1].text for label, row in made.views[0].rows}
    assert (rows["FedAvg"], rows["FedPer"]) == ("1.00", "-")


def test_one_method_has_nothing_beside_it() -> None:
    database = MemoryStore()
    database.add("local", 0, [70])
    assert spread_of(database) is None
