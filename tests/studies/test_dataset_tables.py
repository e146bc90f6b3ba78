"""Measured statistics of data sets beside those of the papers' tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from toy_data import random_graph

from bench.dataset import Dataset
from bench.errors import NoDataError
from bench.studies.dataset_tables import PRINTED, DataTable, dataset_tables, published_statistics, texts
from bench.studies.published import COLUMNS, FOLDER

TABLE = DataTable("mine", {"graph": (("non-overlapping", 2),)})


def test_published_values_are_those_of_the_papers_tables() -> None:
    values = published_statistics("fedsheafhn_final", FOLDER).drop_duplicates(PRINTED)
    values = values.set_index(PRINTED)["published"]
    assert values["cora", "non-overlapping", 10, "heterogeneity"] == 0.606
    assert values["ogbn-arxiv", "global", 1, "edges"] == 2315598
    values = published_statistics("fedhgn", FOLDER).set_index(PRINTED)["published"]
    assert values["coauthorship_cora", "label-dirichlet", 9, "border_hyperedges"] == 921


def test_a_study_of_ones_own_has_its_published_statistics_in_its_own_folder(
    use_toy: Callable[..., type[Dataset]], tmp_path: Path
) -> None:
    toy = use_toy(random_graph(30))
    row = {"paper": "mine", "table": "Table 1", "study": "dataset_stats", "dataset": "toy"}
    row |= {"scenario": "global", "metric": "nodes", "mean": "31"}
    lines = (",".join(COLUMNS), ",".join(row.get(name, "") for name in COLUMNS))
    (tmp_path / "mine.csv").write_text("\n".join(lines), encoding="utf-8")
    hyperedges = DataTable("mine", TABLE.settings, partitions=2)
    ((_, rows),) = dataset_tables(toy, [(TABLE, tmp_path), (hyperedges, tmp_path)], ())
    nodes = texts(rows).query("quantity == 'nodes'").values.tolist()
    assert nodes == [["whole", "nodes", "30", "31"], ["non-overlapping 2", "nodes", "15", "-"]]
    with pytest.raises(NoDataError, match="toy"):
        dataset_tables(toy, [(hyperedges, tmp_path)], ())
