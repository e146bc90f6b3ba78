"""What the site offers to programs, and what has changed since an earlier one."""

from __future__ import annotations

import csv
import json
from datetime import date
from pathlib import Path
from statistics import mean
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from bench.errors import RequestError
from bench.leaderboard import exports

from .pages import BOARD, board
from .site_database import TEN, build_site, means


def test_the_csv_of_a_board_has_the_same_rows(site: Path) -> None:
    with (site / "data" / f"{Path(BOARD).stem}.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(board(site))
    row = next(line for line in lines if (line["method"], line["clients"]) == ("fedavg", "10"))
    assert float(row["mean"]) == pytest.approx(mean(means(TEN, "fedavg")), abs=1e-4)


def test_the_data_for_programs_agree_and_follow_their_schema(site: Path) -> None:
    document = json.loads((site / "data" / "leaderboard.json").read_text())
    schema = json.loads((site / "data" / "leaderboard.schema.json").read_text())
    assert set(schema["required"]) <= set(document) <= set(schema["properties"])
    assert set(document["cells"][0]) == set(schema["$defs"]["Cell"]["properties"])
    table = pd.read_csv(site / "data" / "cells.csv")
    assert len(table) == len(document["cells"])
    row = table[(table["method"] == "fedavg") & (table["clients"] == 10)].iloc[0]
    assert row["mean"] == pytest.approx(mean(means(TEN, "fedavg")), abs=1e-4)
    assert {rank["method"] for rank in document["studies"][0]["ranking"]} == {"local", "fedavg", "fedper"}


def test_changes_are_appended_and_never_dropped(database: str, own_site: Path) -> None:
    out = own_site
    first = json.loads((out / exports.LOG).read_text())["changes"]
    assert [(one["date"], one["kind"]) for one in first] == [("2026-01-01", "first")]
    table = pd.read_csv(out / exports.CELLS)
    fedavg = (table["method"] == "fedavg") & (table["clients"] == 10)
    table.loc[fedavg, "verdict"] = "below"
    table.loc[(table["method"] == "local") & (table["clients"] == 10), "mean"] += 1.0
    table.loc[(table["method"] == "local") & (table["clients"] == 20), "mean"] = np.nan
    gone = table[fedavg].assign(method="gone", line="Gone")
    pd.concat([table, gone]).to_csv(out / exports.CELLS, index=False)
    build_site(database, out, today=date(2026, 1, 3))
    after = json.loads((out / exports.LOG).read_text())["changes"]
    assert after[-1:] == first
    kinds = {one["kind"]: one for one in after[:-1]}
    assert sorted(kinds) == ["measured", "number", "removed", "verdict"]
    assert {one["date"] for one in kinds.values()} == {"2026-01-03"}
    assert kinds["removed"]["rows"] == ["Gone, non-overlapping, 10 clients"]
    assert "Local, non-overlapping, 20 clients" in kinds["measured"]["rows"][0]
    feed = ElementTree.fromstring((out / "feed.xml").read_text())
    assert len(feed.findall("{http://www.w3.org/2005/Atom}entry")) == len(after)
    (out / exports.LOG).write_text("{")
    with pytest.raises(RequestError, match="never dropped"):
        exports.log(out, table, date(2026, 1, 4))
    assert (out / exports.LOG).read_text() == "{"
