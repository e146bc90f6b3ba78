"""Measured statistics of data sets beside those of the papers' tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from toy_data import random_graph
from toy_study import ToyStudy

from bench.dataset import Dataset
from bench.reports.fedhgn import FedHGN
from bench.reports.fedsheafhn import FedSheafHN
from bench.studies.dataset_tables import PRINTED, measured_statistics, printed_statistics, texts
from bench.studies.study import DataTable

HEAD = "paper,table,study,dataset,scenario,clients,method,setting,metric,mean,std,unit,status"


def test_published_values_are_those_of_the_papers_tables() -> None:
    key = [*PRINTED, "paper"]
    values = printed_statistics(FedSheafHN()).drop_duplicates(key).set_index(key)["published"]
    assert values["cora", "non-overlapping", 10, "heterogeneity", "fedsheafhn_final"] == 0.606
    assert values["ogbn-arxiv", "global", 1, "edges", "fedsheafhn_final"] == 2315598
    values = printed_statistics(FedHGN()).set_index(PRINTED)["published"]
    assert values["coauthorship_cora", "label-dirichlet", 9, "border_hyperedges"] == 921


def test_a_study_of_ones_own_has_its_published_statistics_in_its_own_folder(
    use_toy: Callable[..., type[Dataset]], tmp_path: Path
) -> None:
    class Mine(ToyStudy):
        papers = ("mine",)
        data_table = DataTable("mine", {"graph": (("non-overlapping", 2),)})
        published = tmp_path

    toy = use_toy(random_graph(30))
    row = "mine,Table 1,dataset_stats,toy,global,,,,nodes,31,,,"
    (tmp_path / "mine.csv").write_text(f"{HEAD}\n{row}", encoding="utf-8")
    rows = measured_statistics(toy, Mine(), ())
    nodes = texts(rows).query("quantity == 'nodes'").values.tolist()
    assert nodes == [["whole", "nodes", "30", "31"], ["non-overlapping 2", "nodes", "15", "-"]]
    Mine.data_table = replace(Mine.data_table, partitions=2)  # of hyperedges, which it has none of
    assert measured_statistics(toy, Mine(), ()).empty
