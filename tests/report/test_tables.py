"""Who is hurt: clients below the baseline."""

from __future__ import annotations

from stored_runs import MemoryStore
from study_cells import shown
from toy_study import ToyStudy

from bench.report.tables import document_of


def test_clients_of_other_partitions_are_not_set_against_local() -> None:
    database = MemoryStore()
    database.add("local", 0, [70, 80], partition_hash="p")
    database.add("local", 1, [70, 80], partition_hash="q")
    database.add("fedavg", 0, [60, 90], partition_hash="p")
    database.add("fedavg", 1, [10, 10], partition_hash="p")
    database.add("fedper", 2, [10, 10], partition_hash="q")
    below = document_of(shown(ToyStudy, "table1", database)).views[-1]
    rows = {label: row[-1].text for label, row in below.rows}
    assert (rows["FedAvg"], rows["FedPer"]) == ("1.00", "-")
