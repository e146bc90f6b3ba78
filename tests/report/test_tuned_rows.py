"""Rows of tuned cells: named so where a finished study stands behind every run, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_database import FakeDatabase
from tuned_studies import CELL, study, tuned_run

from bench.report.report import Request, build
from bench.reports.fedsheafhn import FedSheafHN
from bench.resolve import resolve
from bench.tune.record import write


def written(database: FakeDatabase, tmp_path: Path, *datasets: str) -> str:
    """The first table."""
    out = tmp_path / "out"
    build(database, Request(datasets=datasets), {"fedsheafhn": FedSheafHN}, out)
    return (out / "fedsheafhn_table1.md").read_text()


def reported(tmp_path: Path, seeds: tuple[int, ...] = (0, 1)) -> str:
    """The first table of a database with FedAvg by default and at the smaller rate."""
    database = FakeDatabase()
    for seed in seeds:
        database.add("fedavg", seed, [60, 80], spec=CELL.model_copy(update={"seed": seed}))
        database.add("fedavg", seed, [70, 90], spec=tuned_run(CELL, seed))
    return written(database, tmp_path, "cora")


def rows(text: str) -> dict[str, str]:
    """What stands behind FedAvg's name in the rows that are tuned, by what is said of the tuning."""
    found = [line.split("|") for line in text.splitlines() if line.startswith(r"| FedAvg \[")]
    return {name.partition("[")[2].strip("] \\"): " ".join(cells) for _, name, *cells in found}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_row_with_a_study_behind_it_says_so_and_with_what_budget(home: Path, tmp_path: Path) -> None:
    write(home / "tuned", study())
    text = reported(tmp_path)
    assert r"FedAvg \[tuned, 2 trials\]" in text
    # 2 trials of 100 rounds, 3 epochs and 2 seeds
    assert "2 trials and 1,200 client epochs at most, by validation accuracy of seeds 1000, 1001" in text
    assert "partition 123, reported" not in text
    assert "learning" not in text.split("Measured")[1].split("##")[0]


def test_without_a_study_it_is_another_setting(home: Path, tmp_path: Path) -> None:
    text = reported(tmp_path)
    assert r"FedAvg \[client.learning\_rate=0.003\]" in text
    assert "tuned, " not in text


def test_seeds_of_the_search_are_no_tuned_cell(home: Path, tmp_path: Path) -> None:
    write(home / "tuned", study())
    assert "tuned, 2" not in reported(tmp_path, seeds=(0, 1000))


def test_a_study_that_ended_by_client_epochs_says_how_many_trials_it_had(home: Path, tmp_path: Path) -> None:
    write(
        home / "tuned", study(granted=3, each=700.0)
    )  # 1,400 of 1,800: less is left than the 600 of a trial
    text = reported(tmp_path)
    assert list(rows(text)) == ["tuned, 2 of 3 trials"]
    assert "('tuned, 2 of 3 trials'): 3 trials and 1,800 client epochs at most" in text


def test_one_row_over_all_columns_also_where_one_study_had_fewer_trials(home: Path, tmp_path: Path) -> None:
    other = resolve("citeseer", "non-overlapping", 10, "fedavg", 0)
    write(home / "tuned", study(granted=3, each=700.0))
    write(home / "tuned", study(granted=3, used=3, cell=other))
    database = FakeDatabase()
    database.add("fedavg", 0, [71, 91], spec=tuned_run(CELL))
    database.add("fedavg", 0, [31, 51], spec=tuned_run(other))
    text = written(database, tmp_path, "cora", "citeseer")
    (row,) = rows(text).items()
    assert row[0] == "tuned, 2 to 3 of 3 trials"
    assert "81.0" in row[1]
    assert "41.0" in row[1]
    assert text.count("client epochs at most") == 1, "one budget"


def test_a_search_on_another_partition_is_said(home: Path, tmp_path: Path) -> None:
    write(home / "tuned", study())
    database = FakeDatabase()
    for partition, correct in ((5, [71, 91]), (6, [31, 51])):
        database.add("fedavg", partition, correct, spec=tuned_run(CELL, partition, partition))
    text = written(database, tmp_path, "cora")
    found = rows(text)
    assert [name.replace("\\", "") for name in found] == [
        f"tuned, 2 trials;protocol.partition_seed={partition}" for partition in (5, 6)
    ]
    for cells, mean in zip(found.values(), ("81.0", "41.0"), strict=True):
        assert mean in cells
    assert (
        "searched on partition 123, reported on others, whose test items the search may have trained or "
        "validated on" in text
    )
