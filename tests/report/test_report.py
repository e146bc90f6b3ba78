"""A report as a whole: which studies it has and in which order."""

from __future__ import annotations

from pathlib import Path

from stored_runs import MemoryStore
from study_cells import csv_rows, part_of, spec
from toy_study import ToyStudy

from bench.report.report import compose
from bench.report.request import Request
from bench.reports.fedhgn import FedHGN
from bench.reports.fedsheafhn import FedSheafHN
from bench.site.documents import build


def test_the_study_of_which_most_was_measured_comes_first() -> None:
    database = MemoryStore()
    for method in ("local", "fedavg"):
        database.add(method, 0, [70, 80])
    studies = {"fedhgn": part_of(FedHGN, "table2"), "toy": ToyStudy}
    report = compose(database, Request(studies=("fedhgn", "toy")), studies)
    assert [part.study for part in report] == ["toy", "fedhgn"]
    assert report[1].counts.index.tolist() == ["FedHGN"]  # one of its methods is fedhgn


def filled() -> MemoryStore:
    database = MemoryStore()
    for seed in (0, 1):
        database.add_run(spec("convergence", "local", seed), [[10, 20], [80, 81]])
        run_spec = spec("convergence", "fedsheafhn", seed)
        database.add_run(run_spec, [[50, 50 + 4 * seed], [82, 81]])
    return database


def test_curves_over_epochs_are_written(tmp_path: Path) -> None:
    studies = {"fedsheafhn": part_of(FedSheafHN, "convergence")}
    (built,) = build(filled(), Request(datasets=("cora",)), studies, tmp_path)
    assert "fedsheafhn_convergence" in [document.key for document in built.documents]
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
