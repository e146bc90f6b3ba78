"""Measured statistics of data sets beside those of the papers' tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from toy_data import random_graph

from bench.data import Data
from bench.dataset import Dataset
from bench.federation.prepared import Prepared
from bench.sources import Sources
from bench.studies.dataset_tables import PRINTED, DataTable, Measured, dataset_tables, published_statistics
from bench.studies.published import COLUMNS, FOLDER


def test_published_values_are_those_of_the_papers_tables() -> None:
    values = published_statistics("fedsheafhn_final", FOLDER).drop_duplicates(PRINTED)
    values = values.set_index(PRINTED)["published"]
    assert values["cora", "non-overlapping", 10, "heterogeneity"] == 0.606
    assert values["ogbn-arxiv", "global", 1, "edges"] == 2315598
    values = published_statistics("fedhgn", FOLDER).set_index(PRINTED)["published"]
    assert values["coauthorship_cora", "label-dirichlet", 9, "border_hyperedges"] == 921


class Once(DataTable):
    """One made-up number of every data set."""

    def applies(self, data: Data) -> bool:
        return True

    def statistics(self, prepared: Prepared, sources: Sources) -> Iterator[Measured]:
        yield "global", 1, "nodes", 7.0, None


def test_every_study_that_describes_such_data_has_a_table(use_toy: Callable[..., type[Dataset]]) -> None:
    use_toy(random_graph(30))
    elsewhere = Once("fedsheafhn_final", names={"toy": "cora"})
    both = dataset_tables("toy", {Once("fedhgn"): FOLDER, elsewhere: FOLDER})
    assert [table.records[0]["published"] for table in both] == [None, 2485]
    assert all(table.records[0]["measured"] == 7 and not table.missing_reason for table in both)
    (none,) = dataset_tables("toy", {})
    assert none.statistics.empty
    assert none.missing_reason


def test_a_study_of_ones_own_has_its_published_statistics_in_its_own_folder(
    use_toy: Callable[..., type[Dataset]], tmp_path: Path
) -> None:
    use_toy(random_graph(30))
    row = {"paper": "mine", "table": "Table 1", "study": "dataset_stats", "dataset": "toy"}
    row |= {"scenario": "global", "metric": "nodes", "mean": "31"}
    texts = (",".join(COLUMNS), ",".join(row.get(name, "") for name in COLUMNS))
    (tmp_path / "mine.csv").write_text("\n".join(texts), encoding="utf-8")
    (table,) = dataset_tables("toy", {Once("mine"): tmp_path})
    assert [(row["measured"], row["published"]) for row in table.records] == [(7, 31)]
