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
from bench.resolve import resolve
from bench.site.documents import build
from bench.spec import Attack
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
        for kind in ("same", "gaussian"):
            for ratio in (0.2, 0.4):
                attack = Attack(kind=kind, ratio=ratio, tau=5.0)
                database.add_run(
                    spec("malicious", "fedpub", seed, attack=attack),
                    [60, 62],
                    artefacts={"malicious": [0, 1]},
                )
    return database


@pytest.mark.parametrize(("grid", "reason"), [("quickstart", ""), (None, "2 of 5 planned seeds")])
def test_the_grid_asked_for_says_how_many_seeds_there_are_to_be(
    tmp_path: Path, grid: str | None, reason: str
) -> None:
    database = MemoryStore()
    for seed in (0, 1):
        run_spec = resolve("cora", NON, 10, "local", seed)
        database.add_run(run_spec, [71 + seed])
    request = Request(grid=grid, datasets=("cora",), clients=(10,), methods=("local",))
    build(database, request, {"fedsheafhn": FedSheafHN}, tmp_path)
    (local,) = [row for row in csv_rows(tmp_path / "cells.csv") if row["table"] == "Table 1"]
    assert local["verdict"] == "compatible"
    assert ("planned seeds" in local["reason"]) == bool(reason)
    assert local["reason"].endswith(reason)


def test_a_grids_report_is_its_experiment_alone(tmp_path: Path) -> None:
    built = build(filled(), Request(grid="convergence"), {"fedsheafhn": FedSheafHN}, tmp_path)
    assert [document.key for document in built.documents] == ["fedsheafhn_convergence"]
    points = {
        (row["method"], row["local epochs"]): (row["mean"], row["std"], row["n"])
        for row in csv_rows(tmp_path / "fedsheafhn/convergence/epochs.csv")
    }
    # Three local epochs a round; 50 epochs of warm-up before FedSheafHN's first round.
    assert points == {
        ("local", "3"): ("15.0000", "0.0000", "2"),
        ("local", "6"): ("80.5000", "0.0000", "2"),
        ("fedsheafhn", "53"): ("51.0000", "1.4142", "2"),
        ("fedsheafhn", "56"): ("81.5000", "0.0000", "2"),
    }
    assert {row["table"] for row in csv_rows(tmp_path / "cells.csv")} == {"Fig. 4"}


@pytest.mark.slow
def test_the_whole_report_holds_the_experiments_that_have_runs(tmp_path: Path) -> None:
    built = build(filled(), Request(datasets=("cora",)), {"fedsheafhn": FedSheafHN}, tmp_path)
    names = {document.name for document in built.documents}
    assert {"table1", "convergence", "malicious"} <= names
    assert "fedsheafhn server_cost" in built.unrun
    assert {row["dataset"] for row in csv_rows(tmp_path / "cells.csv")} == {"cora"}
    lines = {
        (row["method"], float(row["share of malicious clients"]), float(row["mean"]))
        for row in csv_rows(tmp_path / "fedsheafhn/malicious/accuracy.csv")
    }
    assert ("FED-PUB (gaussian, tau 5)", 0.2, 61.0) in lines
    text = (tmp_path / "fedsheafhn/malicious/table.md").read_text(encoding="utf-8")
    assert "| FED-PUB (same, tau 5), 0.2 |" in text
    assert "not run: " in text


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


def test_a_grid_of_a_study_that_there_is_not_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        'title = "Own"\nstudy = "fedsheafhm"\nmethods = ["local"]\nseeds = [0]\n'
        '[[settings]]\ndatasets = ["cora"]\nscenario = "non-overlapping"\nclients = [10]\n'
    )
    with pytest.raises(RequestError, match="did you mean 'fedsheafhn'"):
        build(filled(), Request(grid=str(file)), {"fedsheafhn": FedSheafHN}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_main_grid_asked_for_keeps_the_usual_settings_of_its_study_and_shows_no_others(
    tmp_path: Path,
) -> None:
    database = MemoryStore()
    ten = Column("cora", NON, 10)
    for seed in (0, 1):
        usual_run = spec("quickstart", "fedprox", seed, ten)
        database.add_run(usual_run, [60])
        database.add_run(usual_run.with_settings({"protocol.rounds": 8}), [50])
    request = Request(grid="quickstart", datasets=("cora",), clients=(10,), methods=("fedprox",))
    assert list(measured_of(database, request, tmp_path)) == [("FedProx", "")]


OWN_GRID = """
title = "Own"
study = "fedsheafhn"
seeds = [0, 1]
methods = ["local", "fedprox"]
[[settings]]
datasets = "cora"
scenario = "non-overlapping"
clients = 10
[[settings]]
datasets = "cora"
scenario = "non-overlapping"
clients = 10
methods = "fedprox"
variants = [
  { "protocol.local_epochs" = 20 },
  { "protocol.rounds" = 7 },
  { "attack.kind" = "same", "attack.ratio" = 0.2 },
]
"""


ATTACK_SETTING = "attack.kind=same;attack.ratio=0.2"


def measured_of(
    database: MemoryStore, request: Request, folder: Path
) -> dict[tuple[str, str], tuple[int, float]]:
    """The lines of a report's main table, by method and setting: number and mean of their accuracies."""
    (document,) = build(database, request, {"fedsheafhn": FedSheafHN}, folder).documents[:1]
    cells = document.cells[document.cells["primary"]]
    lines = zip(cells["line"].str.partition(" [")[0], cells["setting"], strict=True)
    return dict(zip(lines, zip(cells["n"], cells["mean"].fillna(0.0), strict=True), strict=True))


def test_the_report_of_a_grid_has_a_line_for_each_of_its_settings_and_for_no_others(tmp_path: Path) -> None:
    """Twenty local epochs are also those of an experiment, which shows them elsewhere in a whole report."""
    file = tmp_path / "own.toml"
    file.write_text(OWN_GRID)
    database = MemoryStore()
    for seed in (0, 1, 2):
        for method in ("local", "fedprox", "fedper"):
            plain = resolve("cora", NON, 10, method, seed)
            database.add_run(plain, [60 + seed])
            database.add_run(plain.with_settings({"protocol.local_epochs": 20}), [70 + seed])
            database.add_run(plain.with_settings({"protocol.local_epochs": 9}), [40])
    attack = Attack(kind="same", ratio=0.2)
    database.add_run(resolve("cora", NON, 10, "fedprox", 0).model_copy(update={"attack": attack}), [30])
    lines = measured_of(database, Request(grid=str(file)), tmp_path / "out")
    assert lines == {
        ("Local", ""): (2, 60.5),
        ("FedProx", ""): (2, 60.5),
        ("FedProx", "protocol.local_epochs=20"): (2, 70.5),
        ("FedProx", "protocol.rounds=7"): (0, 0.0),
        ("FedProx", ATTACK_SETTING): (1, 30.0),
    }
