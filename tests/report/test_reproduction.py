"""How much of a paper comes out."""

import csv
from pathlib import Path

import pytest
from fake_database import FakeDatabase
from study_cells import main_tables, tables

from bench.report import report as building
from bench.report.cells import Selection
from bench.report.published import published
from bench.report.report import Request, build
from bench.report.reproduction import agreements, judged, reproduction
from bench.report.results import Results
from bench.report.settings import Column
from bench.report.statistic import Statistic
from bench.reports.fedsheafhn import FedSheafHN

CORA_10 = Column("cora", "non-overlapping", 10)
CORA = Selection(datasets=frozenset({"cora"}))

PRINTED = {"local": 71.26, "fedavg": 72.38, "fedper": 65.24, "pfedhn": 65.24, "fggp": 66.57, "flow": 81.81}
"""Table 1 of the final version, Cora, 10 clients."""


@pytest.fixture(autouse=True)
def no_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "usual", lambda grids: {})
    monkeypatch.setattr(FedSheafHN, "experiments", tables(FedSheafHN))


def filled() -> FakeDatabase:
    """Cora, 10 clients: local and flow as printed, fedavg above, fggp below, fedper with one seed, oom."""
    database = FakeDatabase()
    for seed in (0, 1):
        database.add("local", seed, [71, 71 + seed])  # 71.25
        database.add("fedavg", seed, [90, 92])
        database.add("fggp", seed, [10, 12])
        database.add("flow", seed, [82, 81 + seed])
        database.add("fedprox", seed, [60, 60])  # printed value taken over from another paper
    database.add("fedper", 0, [65])
    database.add("pfedhn", 0, None, state="oom", reason="too large")
    return database


def score(database: FakeDatabase, selection: Selection = CORA) -> Statistic:
    study, results = FedSheafHN(), Results(database, {})
    found = reproduction(study, main_tables(study, results, selection), results, selection)
    assert found is not None
    return found


def column(found: Statistic, paper: str) -> dict[str, str]:
    table = found.document.views[0]
    place = table.columns.index(paper)
    return {label: entries[place].text for label, entries in table.rows}


def test_shares_of_all_published_cells_of_a_paper() -> None:
    found = column(score(filled()), "fedsheafhn_final")
    # 11 methods times 4 settings of Cora; fedper has one seed, fedprox a value that is no target.
    assert found["published cells"] == "44"
    assert found["reproduced"] == "2 (4.5 %)"
    assert found["above"] == "1 (2.3 %)"
    assert found["below"] == "1 (2.3 %)"
    assert found["not comparable"] == "2 (4.5 %)"
    assert found["oom"] == "1 (2.3 %)"
    assert found["not run"] == "37 (84.1 %)"
    assert "no table here" not in found


def test_both_versions_have_their_own_score() -> None:
    found = column(score(filled()), "fedsheafhn_earlier")
    # The earlier version prints 8 methods; its local and fedper were taken over, 10 clients.
    assert found["published cells"] == "32"
    assert found["Kendall's tau, mean"] == "-"


def test_tau_of_measured_and_published_order() -> None:
    found = column(score(filled()), "fedsheafhn_final")
    # Published: flow > fedavg > local > fggp; measured: fedavg > flow > local > fggp: one pair of six.
    assert found["Kendall's tau, mean"] == f"{(5 - 1) / 6:+.2f}"
    assert found["columns with tau"] == "1"


def test_only_comparable_methods_have_an_order() -> None:
    study, results = FedSheafHN(), Results(filled(), {})
    (here,) = [
        each
        for each in agreements(main_tables(study, results, CORA))
        if each.column == CORA_10 and each.comparison.label == "Table 1"
    ]
    assert here.methods == 4  # without fedprox, fedper and pfedhn


def test_every_published_value_is_judged_once_by_the_usual_setting() -> None:
    database = filled()
    for seed in (0, 1):  # a second setting of one cell, with fewer runs: not the usual one
        database.add("local", seed, [20], hyper={"rate": 0.5})
    database.add("local", 2, [71, 71])
    study, results = FedSheafHN(), Results(database, {})
    found = judged(main_tables(study, results, Selection()))
    (local,) = [
        cell
        for value, cell in found.items()
        if (value.paper, value.table, cell.column, cell.method)
        == ("fedsheafhn_final", "Table 1", CORA_10, "local")
    ]
    assert local.verdict == "reproduced"
    assert {cell.rule for cell in found.values()} == {"best_val"}
    wanted = {
        value
        for paper in ("fedsheafhn_final", "fedsheafhn_earlier")
        for value in published(paper)
        if value.table in ("Table 1", "Table 2") and value.metric == "accuracy"
    }
    assert set(found) == wanted


def test_a_whole_report_counts_what_no_table_shows() -> None:
    whole = column(score(filled(), Selection()), "fedsheafhn_final")
    accuracies = sum(value.metric == "accuracy" for value in published("fedsheafhn_final"))
    assert whole["published cells"] == str(accuracies)
    # Without experiments nothing but Tables 1 and 2 is shown.
    assert whole["no table here"].startswith(f"{accuracies - 2 * 132} ")


def test_experiments_are_counted_and_never_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    build(filled(), Request(datasets=("cora",)), {"fedsheafhn": FedSheafHN}, tmp_path)
    with (tmp_path / "fedsheafhn_reproduction_score.csv").open(encoding="utf-8") as file:
        rows = {(row["paper"], row["verdict"]): int(row["cells"]) for row in csv.DictReader(file)}
    # 'robust' shows Tables 1 and 2 again; the other experiments print numbers of ogbn-arxiv alone.
    assert sum(count for (paper, _), count in rows.items() if paper == "fedsheafhn_final") == 44
    # Local; the runs of Flow lack its hyper-parameters, so they are not in the usual setting.
    assert rows["fedsheafhn_final", "reproduced"] == 1


def test_values_that_only_experiments_have_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    build(filled(), Request(), {"fedsheafhn": FedSheafHN}, tmp_path)
    lines = (tmp_path / "fedsheafhn_reproduction.md").read_text(encoding="utf-8").splitlines()
    starts = ("| Table | cells |", r"| fedsheafhn\_final, Table 4 |")
    head, row = (next(line for line in lines if line.startswith(start)) for start in starts)
    counts = dict(zip(head.strip("| ").split(" | "), row.strip("| ").split(" | "), strict=True))
    assert (counts["cells"], counts["not run"], counts["reproduced"]) == ("12", "12", "0")


def test_one_published_cell_has_no_score() -> None:
    database = FakeDatabase()
    database.add("local", 0, [70])
    one = Selection(datasets=frozenset({"citeseer"}), clients=frozenset({10}), methods=frozenset({"fedprox"}))
    study, results = FedSheafHN(), Results(database, {})
    assert reproduction(study, main_tables(study, results, one), results, one) is None


def test_the_caption_says_what_was_counted() -> None:
    caption = " ".join(score(filled()).document.caption)
    for part in (
        "stage trained, rule best_val",
        "usual setting",
        "filters leave",
        "Kendall's tau-b",
        "at least 3",
    ):
        assert part in caption
    assert "filters leave" not in " ".join(score(filled(), Selection()).document.caption)
