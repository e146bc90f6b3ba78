"""Pages of two methods."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from bench.leaderboard.folder import method_page, pair_page

from .pages import Page, records
from .site_database import (
    TEN,
)


def test_a_pair_shows_differences_by_task_client_and_seed(site: Path) -> None:
    page = Page(site / pair_page("tiny", "local", "fedavg"))
    first = page.links.index("../" + method_page("fedavg")) < page.links.index("../" + method_page("local"))
    assert first  # in the order of their names
    rows = {row["Task"]: row for row in records(page.tables[0])}
    # seeds that both have: 70 - 60 and 71 - 62 at every client; 40 - 50 and 47 - 51
    ten, twenty = (70 - 60 + 71 - 62) / 2, (40 - 50 + 47 - 51) / 2
    assert rows[f"Cora, {TEN.scenario}, 10 clients"]["Difference"] == f"{ten:+.2f}"
    assert rows[f"Cora, {TEN.scenario}, 20 clients"]["Difference"] == f"{twenty:+.2f}"
    assert rows[f"Cora, {TEN.scenario}, 10 clients"]["Better for"] == "10 of 10 clients, 2 of 2 runs"
    assert rows[f"Cora, {TEN.scenario}, 20 clients"]["Better for"] == "0 of 20 clients, 0 of 2 runs"
    assert "By seed: +10.00, +9.00." in page.text
    table = pd.read_csv(site / "data" / "tiny-pairs.csv").set_index(["clients", "first", "second"])
    assert table.loc[(20, "local", "fedavg"), "difference"] == pytest.approx(-twenty)
