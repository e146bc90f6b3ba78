"""Data that no study has: their runs stand in a table of their own."""

from __future__ import annotations

from stored_runs import MemoryStore
from toy_study import ToyStudy

from bench.report.report import compose
from bench.report.request import Request
from bench.studies.data_study import with_data_studies

STUDIES = {ToyStudy.name: ToyStudy}


def test_its_runs_are_averaged_and_ranked_without_a_published_value() -> None:
    database = MemoryStore()
    for seed in range(3):
        for method, base in (("fedavg", 60), ("local", 70), ("majority", 20)):
            for clients in (2, 4):
                counts = [base + seed + clients] * clients
                database.add(method, seed, counts, dataset="mine", clients=clients)
    studies = with_data_studies(STUDIES, ["mine"], database.runs())
    (part,) = compose(database, Request(datasets=("mine",)), studies).parts
    assert (part.study, part.runs, part.counts.empty) == ("mine", 18, True)
    cells = part.documents[0].cells
    cells = cells[cells["primary"]].set_index(["line", "clients"])
    for line, clients, mean in (("Local", 2, 73), ("Local", 4, 75), ("FedAvg", 2, 63), ("FedAvg", 4, 65)):
        assert abs(cells.loc[(line, clients), "mean"] - mean) < 1e-9
    assert cells["published_mean"].isna().all()
    assert part.ranking is not None
    assert part.ranking.ranks.set_index("method")["rank"].to_dict() == {"local": 1, "fedavg": 2}


def test_a_data_set_that_a_study_has_and_one_that_was_not_run_get_none() -> None:
    database = MemoryStore()
    database.add("local", 0, [70, 80])
    assert with_data_studies(STUDIES, ["cora", "unheard"], database.runs()) == STUDIES
