"""Default against tuned: what the search is worth to every method, and with which budget."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console
from stored_runs import MemoryStore
from study_cells import report_of
from toy_study import PlannedToy
from tuned_studies import CELL, on_partition, study, tuned_run

from bench.report.document import Document, Report
from bench.report.request import Request
from bench.report.terminal import show
from bench.resolve import resolve
from bench.site.documents import build
from bench.spec import RunSpec
from bench.studies.settings import settings_of
from bench.tune.apply import configurations
from bench.tune.record import write

PROX = resolve("cora", "non-overlapping", 10, "fedprox", 0)
LOCAL = resolve("cora", "non-overlapping", 10, "local", 0)

USUAL = ["grid", "dataset", "scenario", "clients", "method", "cell", "seeds", "per_seed"]

UNDROPPED = CELL.client.model_copy(update={"dropout": 0.0})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home whose winners the reports know."""
    return tmp_path / "home"


def filled(home: Path) -> MemoryStore:
    """Two seeds, three clients. FedAvg gains 6, 2 and 12 points, FedProx 30 or 31, and of Local the default
    won; Flow was not tuned.
    """
    database = MemoryStore()
    for seed in (0, 1):
        for cell, default, tuned in (
            (CELL, [60, 70, 80], [66, 72, 92]),
            (PROX, [50, 60, 60], [80, 90, 91]),
            (LOCAL, [75, 75, 75], None),
            (resolve("cora", "non-overlapping", 10, "flow", 0), [40, 40, 40], None),
        ):
            database.add_run(cell.model_copy(update={"seed": seed}), default)
            if tuned:
                database.add_run(tuned_run(cell, seed), tuned)
    for cell in (CELL, PROX):
        write(home / "tuned", study(granted=3, each=700.0, cell=cell))
    write(home / "tuned", study(granted=3, each=700.0, cell=LOCAL, best=0))
    return database


def built(database: MemoryStore, out: Path) -> Report:
    winners = configurations(out.parent / "home", out.parent / "shipped")
    return report_of(database, out, Request(datasets=("cora",)), PlannedToy, winners)


def records(out: Path) -> dict[str, dict[str, str]]:
    with (out / "toy/tuned/pairs.csv").open() as file:
        return {row["method"]: row for row in csv.DictReader(file)}


def test_gains_their_tests_and_the_searches_behind_them(home: Path, tmp_path: Path) -> None:
    built(filled(home), tmp_path / "out")
    found = records(tmp_path / "out")
    assert list(found) == ["local", "fedavg", "fedprox"]
    assert float(found["fedavg"]["default"]) == 70.0
    assert float(found["fedavg"]["difference"]) == pytest.approx(20 / 3, abs=1e-4)
    # Student's distribution of two degrees of freedom: p = 1 - t / sqrt(t^2 + 2).
    t = (20 / 3) / math.sqrt(((6 - 20 / 3) ** 2 + (2 - 20 / 3) ** 2 + (12 - 20 / 3) ** 2) / 2 / 3)
    p = 1 - t / math.sqrt(t * t + 2)
    assert float(found["fedavg"]["p"]) == pytest.approx(p, abs=1e-6)
    assert float(found["fedavg"]["p_holm"]) == pytest.approx(p, abs=1e-6), "the larger of two"
    t = (91 / 3) / math.sqrt(2 * (1 / 3) ** 2 + (2 / 3) ** 2) * math.sqrt(2 * 3)
    p = 1 - t / math.sqrt(t * t + 2)
    assert float(found["fedprox"]["p_holm"]) == pytest.approx(2 * p, abs=1e-6), "the smaller of two"
    assert [row["verdict"] for row in found.values()] == ["default won", "undecided", "better"]
    assert found["fedavg"]["winner"] == "client.learning_rate=0.003"
    assert (found["fedavg"]["trials"], found["fedavg"]["trials_granted"]) == ("2", "3")
    assert float(found["fedavg"]["client_epochs"]) == 1400
    assert (found["local"]["tuned"], found["local"]["difference"]) == (found["local"]["default"], "")


def document(report: Report) -> Document:
    (found,) = [document for document in report.documents if document.key == "toy_tuned"]
    return found


def test_the_tuned_cells_are_ranked(home: Path, tmp_path: Path) -> None:
    report = built(filled(home), tmp_path / "out")
    (ranking,) = [table for table in document(report).views if table.name == "ranking"]
    assert [label for label, _ in ranking.rows] == ["FedProx", "FedAvg", "Local"]


def test_the_terminal_has_default_and_tuned(home: Path, tmp_path: Path) -> None:
    report = built(filled(home), tmp_path / "out")
    console = Console(width=80, record=True, file=(tmp_path / "screen").open("w"))
    show(document(report), console)
    lines = {line.split("│")[1].strip(): line for line in console.export_text().splitlines() if "│" in line}
    assert lines["Local"].count("75.00") == 2
    assert "default won" in lines["Local"]
    assert all(text in lines["FedAvg"] for text in ("70.00", "76.67", "+6.67 ?"))
    assert all(text in lines["FedProx"] for text in ("56.67", "87.00", "+30.33 >"))
    assert document(report).notes == ("without tuned runs in Cora 10: Flow",)


def test_the_own_search_comes_before_that_of_the_suite(home: Path, tmp_path: Path) -> None:
    write(tmp_path / "shipped", study(best=0))
    write(home / "tuned", study())
    database = MemoryStore()
    database.add_run(CELL, [60, 80])
    database.add_run(tuned_run(CELL), [70, 90])
    built(database, tmp_path / "out")
    row = records(tmp_path / "out")["fedavg"]
    assert (float(row["default"]), float(row["tuned"])) == (70.0, 80.0)
    assert row["winner"] == "client.learning_rate=0.003"


def caption(out: Path) -> str:
    """The caption, and what is said of the searches below the tables."""
    return (out / "toy/tuned/table.md").read_text()


def test_budgets_are_called_equal_where_they_are(home: Path, tmp_path: Path) -> None:
    database = filled(home)
    built(database, tmp_path / "out")
    assert "the same budget for every method" in caption(tmp_path / "out")
    write(home / "tuned", study(granted=2, cell=PROX))
    (document,) = [each for each in built(database, tmp_path / "more").documents if each.key == "toy_tuned"]
    assert "the same budget for every method" not in caption(tmp_path / "more")
    # Of 100 rounds, 3 epochs and 2 seeds each.
    said = "unequal budgets in Cora 10, in client epochs: Local 1,800, FedAvg 1,800, FedProx 1,200"
    assert said in document.notes


def test_what_has_no_default_runs_is_named_and_no_task_done(home: Path, tmp_path: Path) -> None:
    database = filled(home)
    cells = {each.method: each.model_copy(update={"dataset": "citeseer"}) for each in (CELL, PROX, LOCAL)}
    for method, cell in cells.items():
        write(home / "tuned", study(granted=3, each=700.0, cell=cell, best=int(method != "local")))
        if method != "fedprox":
            database.add_run(cell, [60, 80])
        if method != "local":
            database.add_run(tuned_run(cell), [70, 90])
    out = tmp_path / "out"
    winners = configurations(home, tmp_path / "shipped")
    report = report_of(database, out, Request(datasets=("cora", "citeseer")), PlannedToy, winners)
    (document,) = [each for each in report.documents if each.key == "toy_tuned"]
    assert "without default runs in CiteSeer 10: FedProx" in document.notes
    ranking = (out / "toy/tuned/table.md").read_text().split("## Ranking over tasks")[1].split("##")[0]
    done = {line.split("|")[1].strip(): line for line in ranking.splitlines() if "/2" in line}
    assert ["1/2" in done["FedProx"], "2/2" in done["FedAvg"], "2/2" in done["Local"]] == [True] * 3


def test_runs_on_other_partitions_than_the_search_had_are_no_pair(home: Path, tmp_path: Path) -> None:
    write(home / "tuned", study())
    database, own = MemoryStore(), on_own(CELL, 5)
    cell = own.cell_on_any_partition
    usual = pd.DataFrame([("", "cora", "non-overlapping", 10, "fedavg", cell, (), True)], columns=USUAL)
    for seed in (5, 6):
        clients = f"{seed:016d}"
        database.add_run(on_own(CELL, seed), [60, 80], partition_hash=clients)
        database.add_run(tuned_run(CELL, seed, seed), [70, 90], partition_hash=clients)
    out, winners = tmp_path / "out", configurations(home, tmp_path / "shipped")
    usual_runs = usual, {cell: settings_of(own, per_seed=True)}
    report = build(database, Request(), {"toy": PlannedToy}, out, winners, usual_runs)
    assert not [each for each in report.documents if each.key == "toy_tuned"]


def test_a_search_under_another_protocol_is_named_by_it_and_compared_with_nothing(
    home: Path, tmp_path: Path
) -> None:
    """Nor does it hide the search of the suite, whose protocol is the usual one."""
    short = CELL.model_copy(update={"protocol": CELL.protocol.model_copy(update={"rounds": 9})})
    write(home / "tuned", study(each=54.0, cell=short))
    database = MemoryStore()
    database.add_run(CELL, [60, 80])
    database.add_run(tuned_run(short), [20, 30])
    report = built(database, tmp_path / "out")
    table = (tmp_path / "out/toy/table1/table.md").read_text()
    assert r"| FedAvg \[tuned here, 2 trials;protocol.rounds=9\] |" in table
    assert not [each for each in report.documents if each.key == "toy_tuned"]
    write(tmp_path / "shipped", study(granted=3, used=3, best=2))
    database.add_run(CELL.model_copy(update={"client": UNDROPPED}), [70, 90])
    built(database, tmp_path / "out")
    assert float(records(tmp_path / "out")["fedavg"]["tuned"]) == 80.0


def on_own(cell: RunSpec, seed: int) -> RunSpec:
    return cell.model_copy(update={"seed": seed, "protocol": on_partition(cell.protocol, seed)})


def test_without_a_search_there_is_no_such_document(tmp_path: Path) -> None:
    database = MemoryStore()
    database.add_run(CELL, [60, 80])
    database.add_run(tuned_run(CELL), [70, 90])
    report = built(database, tmp_path / "out")
    assert not [each for each in report.documents if each.key == "toy_tuned"]
