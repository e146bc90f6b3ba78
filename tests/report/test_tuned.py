"""Default against tuned: what the search is worth to every method, and with which budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stored_runs import MemoryStore
from toy_study import PlannedToy
from tuned_studies import CELL, on_partition, study, tuned_run

from bench.frames.graded_cells import collect
from bench.frames.stored_runs import Usual, UsualRuns
from bench.report.document import Document
from bench.report.terminal import show, text_of
from bench.report.tuned import tuned_document
from bench.resolve import resolve
from bench.spec import RunSpec
from bench.studies.settings import settings_of
from bench.tune.apply import configurations
from bench.tune.record import write

PROX = resolve("cora", "non-overlapping", 10, "fedprox", 0)
LOCAL = resolve("cora", "non-overlapping", 10, "local", 0)

UNDROPPED = CELL.client.model_copy(update={"dropout": 0.0})


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Where the user's own searches lie."""
    return tmp_path / "home" / "tuned"


def document(database: MemoryStore, folder: Path, usual: UsualRuns | None = None) -> Document | None:
    """The document of the user's searches in ``home`` and those of the suite in ``shipped``."""
    winners = configurations(folder / "home", folder / "shipped")
    toy = PlannedToy()
    results = collect(database, [toy], winners=winners, usual_runs=usual)
    return tuned_document(toy, results, results.cells)


def records(found: Document | None) -> dict[str, dict[Any, Any]]:
    """The pairs by method."""
    assert found is not None
    return {row["method"]: row for row in found.records["pairs"].to_dict("records")}


def test_gains_and_the_searches_behind_them(own: Path, tmp_path: Path) -> None:
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
        write(own, study(granted=3, each=700.0, cell=cell))
    write(own, study(granted=3, each=700.0, cell=LOCAL, best=0))
    made = document(database, tmp_path)
    assert made is not None
    found = records(made)
    assert list(found) == ["local", "fedavg", "fedprox"]
    assert found["fedavg"]["default"] == 70.0
    assert found["fedavg"]["difference"] == pytest.approx(20 / 3)
    assert found["fedavg"]["winner"] == "client.learning_rate=0.003"
    assert (found["fedavg"]["trials"], found["fedavg"]["trials_granted"]) == (2, 3)
    assert found["fedavg"]["client_epochs"] == 1400
    assert found["local"]["tuned"] == found["local"]["default"]
    lines = {line.split("│")[1].strip(): line for line in text_of(show, made).splitlines() if "│" in line}
    assert lines["Local"].count("75.00") == 2
    assert "default won" in lines["Local"]
    assert all(text in lines["FedAvg"] for text in ("70.00", "76.67", "+6.67"))
    assert all(text in lines["FedProx"] for text in ("56.67", "87.00", "+30.33"))


def test_the_own_search_comes_before_that_of_the_suite(own: Path, tmp_path: Path) -> None:
    write(tmp_path / "shipped", study(best=0))
    write(own, study())
    database = MemoryStore()
    database.add_run(CELL, [60, 80])
    database.add_run(tuned_run(CELL), [70, 90])
    row = records(document(database, tmp_path))["fedavg"]
    assert (row["default"], row["tuned"]) == (70.0, 80.0)
    assert row["winner"] == "client.learning_rate=0.003"


def test_runs_on_other_partitions_than_the_search_had_are_no_pair(own: Path, tmp_path: Path) -> None:
    write(own, study())
    database, drawn = MemoryStore(), on_own(CELL, 5)
    usual = Usual(drawn.cell_on_any_partition, settings_of(drawn, per_seed=True), (), True)
    for seed in (5, 6):
        clients = f"{seed:016d}"
        database.add_run(on_own(CELL, seed), [60, 80], partition_hash=clients)
        database.add_run(tuned_run(CELL, seed, seed), [70, 90], partition_hash=clients)
    assert document(database, tmp_path, {("cora", "non-overlapping", 10, "fedavg"): usual}) is None


def on_own(cell: RunSpec, seed: int) -> RunSpec:
    return cell.model_copy(update={"seed": seed, "protocol": on_partition(cell.protocol, seed)})


def test_a_search_under_another_protocol_is_compared_with_nothing(own: Path, tmp_path: Path) -> None:
    """Nor does it hide the search of the suite, whose protocol is the usual one."""
    short = CELL.model_copy(update={"protocol": CELL.protocol.model_copy(update={"rounds": 9})})
    database = MemoryStore()
    database.add_run(CELL, [60, 80])
    database.add_run(tuned_run(short), [20, 30])
    assert document(database, tmp_path) is None  # there is no search
    write(own, study(each=54.0, cell=short))
    assert document(database, tmp_path) is None
    write(tmp_path / "shipped", study(granted=3, used=3, best=2))
    database.add_run(CELL.model_copy(update={"client": UNDROPPED}), [70, 90])
    assert records(document(database, tmp_path))["fedavg"]["tuned"] == 80.0
