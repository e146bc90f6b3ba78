"""Rows of tuned cells: named so where a finished study stands behind every run, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_runs import MemoryStore
from study_cells import report_of
from toy_study import PlannedToy
from tuned_studies import CELL, study, tuned_run

from bench.report.request import Request
from bench.resolve import resolve
from bench.tune.apply import configurations
from bench.tune.record import write


def written(database: MemoryStore, tmp_path: Path, *datasets: str) -> str:
    """The first table."""
    out = tmp_path / "out"
    winners = configurations(tmp_path / "home", tmp_path / "shipped")
    report_of(database, out, Request(datasets=datasets), PlannedToy, winners)
    return (out / "toy/table1/table.md").read_text()


def reported(tmp_path: Path, seeds: tuple[int, ...] = (0, 1)) -> str:
    """The first table of a database with FedAvg by default and at the smaller rate."""
    database = MemoryStore()
    for seed in seeds:
        database.add_run(CELL.model_copy(update={"seed": seed}), [60, 80])
        database.add_run(tuned_run(CELL, seed), [70, 90])
    return written(database, tmp_path, "cora")


def rows(text: str) -> dict[str, str]:
    """What stands behind FedAvg's name in the rows that are tuned, by what is said of the tuning."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith(r"| FedAvg \["):
            _, name, *cells = line.split("|")
            tuning = name.partition("[")[2].strip("] \\")
            found[tuning] = " ".join([found.get(tuning, ""), *cells])
    return found


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    """A folder in the place of what comes with the suite."""
    return tmp_path / "shipped"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home whose winners the reports know."""
    return tmp_path / "home"


def test_a_row_with_a_study_behind_it_says_so_and_with_what_budget(home: Path, tmp_path: Path) -> None:
    write(home / "tuned", study())
    text = reported(tmp_path)
    assert r"FedAvg \[tuned here, 2 trials\]" in text
    # 2 trials of 100 rounds, 3 epochs and 2 seeds
    assert "2 trials and 1,200 client epochs at most, by validation accuracy of seeds 1000, 1001" in text
    assert "reported on others" not in text
    assert "learning" not in text.split("Measured")[1].split("##")[0]


def test_without_a_study_it_is_another_setting(home: Path, tmp_path: Path) -> None:
    text = reported(tmp_path)
    assert r"FedAvg \[client.learning\_rate=0.003\]" in text
    assert "tuned here" not in text


def test_seeds_of_the_search_are_no_tuned_cell(home: Path, tmp_path: Path) -> None:
    write(home / "tuned", study())
    assert "tuned here" not in reported(tmp_path, seeds=(0, 1000))


def test_a_study_by_code_of_other_numerics_is_none(home: Path, tmp_path: Path) -> None:
    made = study()
    older = {name: number - 1 for name, number in made.numerics.items()}
    write(home / "tuned", made.model_copy(update={"numerics": older}))
    assert "tuned here" not in reported(tmp_path)


def test_runs_of_the_own_search_do_not_hide_those_of_the_suite_s(
    home: Path, shipped: Path, tmp_path: Path
) -> None:
    """Both had as many trials, and each found another configuration."""
    write(home / "tuned", study(granted=3, used=3))
    write(shipped, study(granted=3, used=3, best=2))
    undropped = CELL.model_copy(update={"client": CELL.client.model_copy(update={"dropout": 0.0})})
    database = MemoryStore()
    database.add_run(CELL, [60, 80])
    database.add_run(tuned_run(CELL), [70, 90])
    database.add_run(undropped, [31, 51])
    found = rows(written(database, tmp_path, "cora"))
    assert found.keys() == {"tuned here, 3 trials", "tuned, 3 trials"}
    assert "80.0" in found["tuned here, 3 trials"]
    assert "41.0" in found["tuned, 3 trials"]


def test_a_study_that_ended_by_client_epochs_says_how_many_trials_it_had(home: Path, tmp_path: Path) -> None:
    write(
        home / "tuned", study(granted=3, each=700.0)
    )  # 1,400 of 1,800: less is left than the 600 of a trial
    text = reported(tmp_path)
    assert list(rows(text)) == ["tuned here, 2 of 3 trials"]
    assert "('tuned here, 2 of 3 trials'): 3 trials and 1,800 client epochs at most" in text


def test_one_row_over_all_columns_also_where_one_study_had_fewer_trials(home: Path, tmp_path: Path) -> None:
    other = resolve("citeseer", "non-overlapping", 10, "fedavg", 0)
    write(home / "tuned", study(granted=3, each=700.0))
    write(home / "tuned", study(granted=3, used=3, cell=other))
    database = MemoryStore()
    database.add_run(tuned_run(CELL), [71, 91])
    database.add_run(tuned_run(other), [31, 51])
    text = written(database, tmp_path, "cora", "citeseer")
    (row,) = rows(text).items()
    assert row[0] == "tuned here, 2 to 3 of 3 trials"
    assert "81.0" in row[1]
    assert "41.0" in row[1]
    assert text.count("client epochs at most") == 1, "one budget"


def test_a_search_on_another_partition_is_said(home: Path, tmp_path: Path) -> None:
    write(home / "tuned", study())
    database = MemoryStore()
    for partition, correct in ((5, [71, 91]), (6, [31, 51])):
        spec = tuned_run(CELL, partition, partition)
        database.add_run(spec, correct, partition_hash=f"{partition:016d}")
    text = written(database, tmp_path, "cora")
    found = rows(text)
    assert [name.replace("\\", "") for name in found] == [
        f"tuned here, 2 trials;protocol.partition_seed={partition}" for partition in (5, 6)
    ]
    for cells, mean in zip(found.values(), ("81.0", "41.0"), strict=True):
        assert mean in cells
    assert (
        "searched on the clients abcdef01 (partition 123), reported on others, whose test items the search "
        "may have trained or validated on" in text
    )
