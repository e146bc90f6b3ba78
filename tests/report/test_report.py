"""A report as a whole: which studies it has and in which order, and what that of one grid has."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_runs import MemoryStore
from study_cells import NON, csv_rows, spec
from toy_study import ToyStudy

from bench.errors import RequestError
from bench.report.report import compose
from bench.report.request import Request
from bench.reports.fedhgn import FedHGN
from bench.reports.fedsheafhn import FedSheafHN
from bench.site.documents import build
from bench.studies.settings import Column


def test_the_study_of_which_most_was_measured_comes_first() -> None:
    database = MemoryStore()
    for method in ("local", "fedavg"):
        database.add(method, 0, [70, 80])
    studies = {"fedhgn": FedHGN, "toy": ToyStudy}
    for names in (("fedhgn", "toy"), ("toy", "fedhgn")):
        report = compose(database, Request(studies=names), {name: studies[name] for name in names})
        assert [part.study for part in report.parts] == ["toy", "fedhgn"]
        assert [score.title for score in report.parts[1].scores] == ["FedHGN"]  # one of its methods is fedhgn
        assert [any(score.measured for score in part.scores) for part in report.parts] == [True, False]


def filled() -> MemoryStore:
    database = MemoryStore()
    for seed in (0, 1):
        database.add_run(spec("convergence", "local", seed), [[10, 20], [80, 81]])
        run_spec = spec("convergence", "fedsheafhn", seed)
        database.add_run(run_spec, [[50, 50 + 4 * seed], [82, 81]])
    return database


def test_a_grids_report_is_its_experiment_alone(tmp_path: Path) -> None:
    built = build(filled(), Request(grid="convergence"), {"fedsheafhn": FedSheafHN}, tmp_path)
    assert [document.key for document in built.documents] == ["fedsheafhn_convergence"]
    points = {
        (row["method"], row["round"]): (row["mean"], row["std"], row["n"])
        for row in csv_rows(tmp_path / "fedsheafhn/convergence/convergence.csv")
    }
    assert points == {
        ("local", "1"): ("15.0000", "0.0000", "2"),
        ("local", "2"): ("80.5000", "0.0000", "2"),
        ("fedsheafhn", "1"): ("51.0000", "1.4142", "2"),
        ("fedsheafhn", "2"): ("81.5000", "0.0000", "2"),
    }
    assert {row["table"] for row in csv_rows(tmp_path / "cells.csv")} == {"Fig. 4"}


def test_a_grid_without_tables_shows_the_main_ones_in_its_columns_and_lines(tmp_path: Path) -> None:
    database = filled()
    for seed in (0, 1):
        for method in ("local", "fedavg"):
            database.add(method, seed, [70 + seed] * 10)
    built = build(database, Request(grid="quickstart"), {"fedsheafhn": FedSheafHN}, tmp_path)
    assert [document.key for document in built.documents if not document.is_statistic] == [
        "fedsheafhn_table1"
    ]
    rows = csv_rows(tmp_path / "cells.csv")
    assert {(row["dataset"], row["clients"]) for row in rows} == {("cora", "10")}
    assert {"local", "fedavg_ft"} <= {row["method"] for row in rows}
    assert "flow" not in {row["method"] for row in rows}


def test_filters_reach_the_columns_that_only_experiments_have(tmp_path: Path) -> None:
    database = MemoryStore()
    large = Column("cora", NON, 100)
    database.add_run(spec("server_cost", "fedsheafhn", 0, large), [50], seconds={"server": 1.0})
    built = build(database, Request(clients=(100,)), {"fedsheafhn": FedSheafHN}, tmp_path)
    assert [document.key for document in built.documents] == ["fedsheafhn_server_cost"]
    assert built.elsewhere == []


def test_an_unrun_experiment_that_is_asked_for_says_so(tmp_path: Path) -> None:
    built = build(
        filled(), Request(grid="ablation", datasets=("ogbn-arxiv",)), {"fedsheafhn": FedSheafHN}, tmp_path
    )
    (document,) = built.documents
    assert "Nothing of this table has been run yet." in document.caption
    assert set(document.cells["verdict"]) == {"not run"}
    assert document.notes == (
        "nothing run yet: ogbn-arxiv, non-overlapping, 20 clients; ogbn-arxiv, overlapping, 30 clients",
    )
    assert not document.views
    assert [table.name for table in document.details] == ["not_run"]


@pytest.mark.parametrize("grid", ["ablatoin", "docs/examples/own_grid.toml"])
def test_a_grid_of_no_table_is_refused(tmp_path: Path, grid: str) -> None:
    with pytest.raises(RequestError, match="unknown grid of the studies"):
        build(filled(), Request(grid=grid), {"fedsheafhn": FedSheafHN}, tmp_path / "out")
    assert not (tmp_path / "out").exists()
