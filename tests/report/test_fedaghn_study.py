"""The FedAGHN study: every published value stands beside the runs that are to measure it."""

from collections import Counter

import pytest
from fake_database import FakeDatabase
from study_cells import cells_in

from bench.report.published import published
from bench.report.results import Results
from bench.reports.fedaghn import FedAGHN


@pytest.mark.parametrize(
    ("name", "table", "cells"),
    [
        ("fedaghn_main", "Table 1", 8 * 16),
        ("heterogeneity", "Table 2", 3 * 16),
        ("case_study", "Table 3", 4 * 4),
    ],
)
def test_every_accuracy_of_a_table_has_one_cell(name: str, table: str, cells: int) -> None:
    found = cells_in(FedAGHN, name, Results(FakeDatabase(), {}))
    beside = Counter(cell.target for cell in found.primary if cell.target)
    wanted = {value for value in published("fedaghn") if (value.table, value.metric) == (table, "accuracy")}
    assert len(wanted) == cells
    assert set(beside) == wanted
    assert set(beside.values()) == {1}


def test_resnet_has_its_own_columns_and_fedavg_two_readings() -> None:
    found = cells_in(FedAGHN, "fedaghn_main", Results(FakeDatabase(), {}))
    points = {(cell.column.dataset, cell.point.label) for cell in found}
    assert points == {
        ("cifar10", "CNN"),
        ("cifar100", "CNN"),
        ("cifar100", "ResNet-18"),
        ("tiny-imagenet", "ResNet-18"),
    }
    stages = {cell.title: cell.stage for cell in found.primary}
    assert (stages["FedAvg"], stages["FedAvg + tuning"]) == ("received", "trained")
