"""Lines of tuned cells: named so where a finished search stands behind every run, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from stored_runs import MemoryStore
from study_cells import shown
from toy_study import PlannedToy
from tuned_studies import CELL, study, tuned_run

from bench.frames.graded_cells import DocumentCells
from bench.tune.record import Record, configurations, write

RATE = "client.learning_rate=0.003"
SHORT = study(granted=3, each=700.0)
"""Of 1,800 client epochs 1,400 are used: less is left than the 600 of a trial, so that two were had."""


def older() -> Record:
    """A search by code of other numerics."""
    made = study()
    return made.model_copy(update={"numerics": {name: number - 1 for name, number in made.numerics.items()}})


def table(
    folder: Path, database: MemoryStore, own: Sequence[Record], suite: Sequence[Record]
) -> DocumentCells:
    """The first table where these searches are the user's own, and those come with the suite."""
    for place, records in (("home/tuned", own), ("shipped", suite)):
        for record in records:
            write(folder / place, record)
    winners = configurations(folder / "home", folder / "shipped")
    return shown(PlannedToy, "table1", database, winners=winners)


def lines(
    folder: Path, database: MemoryStore, own: Sequence[Record] = (), suite: Sequence[Record] = ()
) -> dict[str, tuple[str, list[float]]]:
    """Setting -> tuning and means of FedAvg's lines that are not usual."""
    cells = table(folder, database, own, suite).cells
    cells = cells[(cells["method"] == "fedavg") & (cells["setting"] != "") & (cells["n"] > 0)]
    found = cells[(cells["position"] == 0) & (cells["comparison_number"] == 0)].groupby("setting")
    return {str(setting): (part["tuning"].iloc[0], part["mean"].tolist()) for setting, part in found}


@pytest.mark.parametrize(
    ("searches", "seeds", "expected"),
    [
        ([study()], (0, 1), {"tuned here, 2 trials": ("tuned", [80])}),
        ([SHORT], (0, 1), {"tuned here, 2 of 3 trials": ("tuned", [80])}),
        ([], (0, 1), {RATE: ("other settings", [80])}),
        ([study()], (0, 1000), {RATE: ("other settings", [80])}),  # a seed of the search
        ([older()], (0, 1), {RATE: ("other settings", [80])}),
    ],
)
def test_a_line_is_tuned_where_a_search_stands_behind_all_of_its_runs(
    searches: list[Record],
    seeds: tuple[int, ...],
    expected: dict[str, tuple[str, list[float]]],
    tmp_path: Path,
) -> None:
    database = MemoryStore()
    for seed in seeds:
        database.add_run(CELL.model_copy(update={"seed": seed}), [60, 80])
        database.add_run(tuned_run(CELL, seed), [70, 90])
    assert lines(tmp_path, database, searches) == expected


def test_runs_of_the_own_search_do_not_hide_those_of_the_suite_s(tmp_path: Path) -> None:
    """Both had as many trials, and each found another configuration."""
    undropped = CELL.model_copy(update={"client": CELL.client.model_copy(update={"dropout": 0.0})})
    database = MemoryStore()
    database.add_run(CELL, [60, 80])
    database.add_run(tuned_run(CELL), [70, 90])
    database.add_run(undropped, [31, 51])
    searches = [study(granted=3, used=3)], [study(granted=3, used=3, best=2)]
    assert lines(tmp_path, database, *searches) == {
        "tuned here, 3 trials": ("tuned", [80]),
        "tuned, 3 trials": ("tuned", [41]),
    }


def test_a_search_under_another_protocol_leaves_a_line_of_other_settings(tmp_path: Path) -> None:
    short = CELL.model_copy(update={"protocol": CELL.protocol.model_copy(update={"rounds": 9})})
    database = MemoryStore()
    database.add_run(CELL, [60, 80])
    database.add_run(tuned_run(short), [20, 30])
    setting = f"{RATE};protocol.rounds=9"
    assert lines(tmp_path, database, [study(each=54.0, cell=short)]) == {setting: ("other settings", [25])}
