"""What the site offers to programs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from statistics import mean

import pandas as pd
import pytest

from .pages import BOARD, board
from .site_database import TEN, means


def test_the_csv_of_a_board_has_the_same_rows(site: Path) -> None:
    with (site / "data" / f"{Path(BOARD).stem}.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(board(site))
    row = next(line for line in lines if (line["method"], line["clients"]) == ("fedavg", "10"))
    assert float(row["mean"]) == pytest.approx(mean(means(TEN, "fedavg")), abs=1e-4)


def test_the_data_for_programs_agree(site: Path) -> None:
    document = json.loads((site / "data" / "leaderboard.json").read_text())
    table = pd.read_csv(site / "data" / "cells.csv")
    assert len(table) == len(document["cells"])
    assert set(document["cells"][0]) == set(table)
    row = table[(table["method"] == "fedavg") & (table["clients"] == 10)].iloc[0]
    assert row["mean"] == pytest.approx(mean(means(TEN, "fedavg")), abs=1e-4)
    assert {rank["method"] for rank in document["studies"][0]["ranking"]} == {"local", "fedavg", "fedper"}
