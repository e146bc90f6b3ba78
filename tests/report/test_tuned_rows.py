"""Rows of tuned cells: named so where a finished study stands behind every run, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_database import FakeDatabase

from bench.report.report import Request, build
from bench.reports.fedsheafhn import FedSheafHN
from bench.resolve import resolve
from bench.tune.record import Budget, Record, Trial, Winner, write
from bench.tune.space import search_space
from bench.tune.tuning import Tuning, cell_of

CELL = resolve("cora", "non-overlapping", 10, "fedavg", 0)
RATE = 0.003


def study(trials: int = 2) -> Record:
    """A study of two trials, the second better: a smaller learning rate."""
    tuning = Tuning(CELL, search_space(CELL), (1000, 1001), trials)
    better = {**tuning.default, "client.learning_rate": RATE}
    each = tuning.budget / trials
    shared = {"state": "complete", "client_epochs": each, "seconds": 1.0}
    made = (
        Trial(number=0, parameters=tuning.default, validation=0.7, **shared),
        Trial(number=1, parameters=better, validation=0.8, **shared),
    )
    return Record(
        study=tuning.name,
        cell=cell_of(CELL),
        stage="received",
        space=tuning.space,
        seeds=tuning.seeds,
        budget=Budget(trials=trials, client_epochs=tuning.budget),
        used=Budget(trials=len(made), client_epochs=each * len(made)),
        numerics=tuning.numerics,
        packages={},
        winner=Winner(number=1, overrides=better, validation=0.8),
        default_validation=0.7,
        trials=made,
    )


def reported(tmp_path: Path, seeds: tuple[int, ...] = (0, 1)) -> str:
    """The first table of a database with FedAvg by default and at the smaller rate."""
    database = FakeDatabase()
    for seed in seeds:
        database.add("fedavg", seed, [60, 80], spec=CELL.model_copy(update={"seed": seed}))
        client = CELL.client.model_copy(update={"learning_rate": RATE})
        database.add("fedavg", seed, [70, 90], spec=CELL.model_copy(update={"seed": seed, "client": client}))
    out = tmp_path / "out"
    build(database, Request(datasets=("cora",)), {"fedsheafhn": FedSheafHN}, out)
    return (out / "fedsheafhn_table1.md").read_text()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_row_with_a_study_behind_it_says_so_and_with_what_budget(home: Path, tmp_path: Path) -> None:
    write(home / "tuned", study())
    text = reported(tmp_path)
    assert r"FedAvg \[tuned, 2 trials\]" in text
    assert "2 trials and 1,200 client epochs" in text  # 2 trials of 100 rounds, 3 epochs and 2 seeds
    assert "seeds 1000, 1001" in text
    assert "learning" not in text.split("Measured")[1].split("##")[0]


def test_without_a_study_it_is_another_setting(home: Path, tmp_path: Path) -> None:
    text = reported(tmp_path)
    assert r"FedAvg \[client.learning\_rate=0.003\]" in text
    assert "tuned, " not in text


def test_seeds_of_the_search_are_no_tuned_cell(home: Path, tmp_path: Path) -> None:
    write(home / "tuned", study())
    assert "tuned, 2" not in reported(tmp_path, seeds=(0, 1000))
