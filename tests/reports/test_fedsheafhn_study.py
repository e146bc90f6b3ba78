"""FedSheafHN's tables: what they set measured values beside, and which values are no targets."""

from __future__ import annotations

from itertools import product

from stored_runs import CORA, MemoryStore
from study_cells import cells_of, one

from bench.reports.fedsheafhn import FedSheafHN
from bench.reports.fedsheafhn.study import FOREIGN_VALUES
from bench.studies.published import published


def test_foreign_local_and_fedpub_cells_are_those_that_both_versions_share() -> None:
    numbers = {
        paper: {
            (value.table, value.method, value.dataset, value.clients): (value.mean, value.std)
            for value in published(paper)
            if value.table in ("Table 1", "Table 2") and value.metric == "accuracy"
        }
        for paper in ("fedsheafhn_final", "fedsheafhn_earlier")
    }
    for method in ("local", "fedpub"):
        unchanged = {
            place[2:]
            for place, value in numbers["fedsheafhn_final"].items()
            if place[1] == method and numbers["fedsheafhn_earlier"][place] == value
        }
        assert FOREIGN_VALUES["fedsheafhn_final", method] == unchanged


def test_runs_of_other_protocols_and_values_of_other_papers_are_not_compared() -> None:
    database = MemoryStore()
    for seed, (method, rounds) in product((0, 1), (("local", 100), ("local", 8), ("fedprox", 100))):
        database.add(method, seed, [70], protocol=CORA.model_copy(update={"rounds": rounds}))
    cells = cells_of(FedSheafHN, "table1", database)
    cells = cells[cells["primary"] & (cells["n"] > 0)]
    for table, method, setting, said in (
        ("Table 1", "local", "", ""),
        ("Table 1", "local", "protocol.rounds=8", "the paper has protocol.rounds=100"),
        ("Table 1", "fedprox", "method.mu=absent;method.weights=absent", "taken over from the FED-PUB paper"),
        ("earlier Table 1", "local", "", "taken over from the FED-PUB paper"),
    ):
        cell = one(cells, method=method, table=table, setting=setting, scenario="non-overlapping", clients=10)
        assert (cell.verdict == "not comparable", said in cell.reason) == (bool(said), True)
