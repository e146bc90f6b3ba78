"""The rows of a board: numbers, grades, pictures and what stands behind them."""

from __future__ import annotations

from pathlib import Path
from statistics import mean, stdev

import pandas as pd
import pytest
from pages import BOARD, Page, board, parts
from site_database import BUNDLE, EVIL, REASON, TEN, build_site, done, fill, means, spec
from stored_runs import save

from bench.site.leaderboard import with_pictures
from bench.spec import Protocol
from bench.store import open_store


def test_a_row_shows_the_numbers_of_the_database(site: Path) -> None:
    row = board(site)[10, "FedAvg"]
    values = means(TEN, "fedavg")
    assert values == [74.5, 75.5, 79.5]
    assert row["Measured"] == f"{mean(values):.2f} ± {stdev(values):.2f}"
    assert row["Runs"] == "0 1 2"
    assert row["Published"] == "72.38 ± 2.45"
    assert row["Difference"] == f"{mean(values) - 72.38:+.2f}"
    assert row["Origin"] == "own"


def test_groups_of_ties_are_those_of_the_paired_tests(site: Path) -> None:
    rows = board(site)
    # constant differences have no spread: p is 0, every pair differs; a single run and the unverified guest
    # have no group
    assert rows[10, "FedPer"]["Tie group"] == "–"
    assert rows[10, "FedAvg"]["Tie group"] == "1"
    assert rows[10, "Local"]["Tie group"] == "2"
    assert rows[10, EVIL]["Tie group"] == "–"
    assert (rows[20, "Local"]["Tie group"], rows[20, "FedAvg"]["Tie group"]) == ("1", "2")


def test_cells_without_numbers_say_why(site: Path) -> None:
    rows = board(site)
    failed = rows[10, "FedProx"]
    assert (failed["Measured"], failed["Runs"]) == ("–", "0 (failed) 1 (failed)")
    assert failed["Grade"] == f"– failedseed 0: {REASON.splitlines()[0]}"
    missing = rows[10, "FedSheafHN"]
    assert (missing["Grade"], missing["Published"], missing["Origin"]) == ("– not run", "83.49 ± 0.22", "–")
    lost = rows[10, "FedPer"]["Grade"]
    assert lost.startswith("≠ not comparable")
    assert "1 of 2 runs without numbers (diverged, seed 1: loss is nan in round 2)" in lost
    order = [row["Measured"] == "–" for (clients, _), row in rows.items() if clients == 10]
    assert order == sorted(order)


@pytest.mark.parametrize("findings", [("equal",), ()])
def test_a_verified_guest_is_ranked_if_a_run_of_it_was_made_again(
    tmp_path: Path, findings: tuple[str, ...]
) -> None:
    """Else its bundle is verified by the runs of other methods."""
    url = f"sqlite:///{tmp_path / 'bench.db'}"
    fill(url, "verified", findings)
    build_site(url, tmp_path / "site")
    rows = board(tmp_path / "site")
    assert rows[10, EVIL]["Origin"] == f"bundle {BUNDLE}: verified"
    groups = rows[10, EVIL]["Tie group"], rows[10, "FedAvg"]["Tie group"]
    assert groups == (("1", "2") if findings else ("–", "1"))


def test_other_settings_stand_behind_the_usual_ones(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'bench.db'}"
    fill(url)
    with open_store(url, create=True) as store:
        other = spec(TEN, "fedavg", 0).model_copy(update={"protocol": Protocol(rounds=2)})
        save(store, other, done(90, 10))  # better than all in usual settings
    build_site(url, tmp_path / "site")
    bodies = [parts(body, "tr") for body in Page(tmp_path / "site" / BOARD).all("tbody")]
    heads = [body[0]["text"].partition(" clients · ")[2].partition(" axis")[0] for body in bodies]
    assert heads == ["default settings", "other settings", "default settings"]
    assert "94.50" in bodies[1][1]["text"]  # mean of 90 .. 99


def test_a_picture_holds_every_number_in_its_place() -> None:
    count = 7
    rows = pd.DataFrame(
        {
            "heading": "Table 1",
            "scenario": "s",
            "clients": 10,
            "point": "",
            "n": [3] * (count - 1) + [2],
            "mean": [39.0, 80.0, 81.0, 82.0, 83.0, 84.0, 82.0],
            "low": [30.0, 79.0, 80.0, 81.0, 82.0, 83.5, 0.0],
            "high": [48.0, 81.0, 82.0, 83.0, 84.0, 99.0, 100.0],
            "published_mean": [None, 81.5, *[None] * 5],
            "published_std": [None, 0.5, *[None] * 5],
        }
    ).astype({"published_mean": float, "published_std": float})
    drawn = with_pictures(rows)
    assert set(drawn["axis_low"]) == {79.0}  # 39 is far from the others and stands at the end
    assert set(drawn["axis_high"]) == {85.0}
    assert drawn["at_mean"].tolist() == [0.0, 16.7, 33.3, 50.0, 66.7, 83.3, 50.0]
    assert drawn["at_high"].tolist()[4:6] == [83.3, 100.0]
    assert pd.isna(drawn["at_low"].iloc[-1])  # two runs: an interval as wide as the page
    beside = drawn[["at_published_low", "at_published", "at_published_high"]].iloc[1]
    assert beside.tolist() == [33.3, 41.7, 50.0]
