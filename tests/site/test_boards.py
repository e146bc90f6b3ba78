"""The rows of a board: numbers, grades, pictures and what stands behind them; what filters offer."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pandas as pd
import pytest
from pages import BOARD, Page, board
from scipy import stats
from site_database import (
    BUNDLE,
    EVIL,
    REASON,
    TEN,
    build_site,
    fill,
    means,
)

from bench.report.grades import GRADES
from bench.site.boards import Scale, usual_ends
from bench.site.folder import board_page, method_page


def options(page: Path, name: str) -> list[str]:
    """What a filter of a board offers, but for everything."""
    found = re.findall(rf'type="radio" name="{name}" value="([^"]+)"', page.read_text())
    assert len(found) > 1
    return found


def test_a_row_shows_the_numbers_of_the_database(site: Path) -> None:
    row = board(site)[10, "FedAvg"]
    values = means(TEN, "fedavg")
    assert values == [74.5, 75.5, 79.5]
    assert row["Measured"] == f"{mean(values):.2f} ± {stdev(values):.2f}"
    low, high = stats.t.interval(0.95, 2, mean(values), stdev(values) / 3**0.5)
    assert row["95 % interval"] == f"{low:.2f} to {high:.2f}; 3 seeds"
    assert row["n"] == "3"
    assert row["Published"] == "72.38 ± 2.45"
    assert row["Difference"] == f"{mean(values) - 72.38:+.2f}"
    assert row["Worst client"] == f"{mean([70, 71, 75]):.2f}"
    assert row["Bottom 10 %"] == row["Worst client"]  # one client of ten
    assert row["Clients below Local"] == "0.00"
    assert row["Std over clients"] == f"{stdev(range(10)):.2f}"
    assert row["received, best_val"].startswith(f"{mean(values) - 1:.2f} ")
    assert row["Cost of a run"] == "2.5 seconds, 2.0 MB in both directions, 3 MiB peak memory"
    assert row["Trust"] == "own"
    assert row["Protocol"] == "3 rounds, 3 local epochs, split 40/30/30, partition seed 123"


def test_another_metric_stands_beside_accuracy_where_every_run_is_known_by_it(site: Path) -> None:
    """Of two classes the second is only ever predicted: its F1 is 0, the first one's 2 right / (100 + right).
    Two of FedAvg's three runs keep no counts: the mean of the third would be that of other seeds.
    """
    rows = board(site)
    values = [mean(100 * right / (100 + right) for right in range(base, base + 10)) for base in (60, 62)]
    assert rows[10, "Local"]["Macro-F1"].split()[0] == f"{mean(values):.2f}"
    balanced = mean(means(TEN, "local"))  # a class without test items is left out
    assert rows[10, "Local"]["Balanced accuracy"].split()[0] == f"{balanced:.2f}"
    assert rows[10, "FedAvg"]["Macro-F1"] == "–"
    assert "Balanced accuracy" not in rows[10, "FedAvg"]


def test_clients_below_the_baseline_are_counted_with_the_same_seed(site: Path) -> None:
    # 40 + c against 50 + c, 47 + c against 51 + c: all twenty clients of both seeds
    assert board(site)[20, "FedAvg"]["Clients below Local"] == "20.00"


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
    assert (failed["Measured"], failed["n"], failed["Grade"]) == ("–", "–", "– failed")
    assert failed["Why"] == f"seed 0: {REASON.splitlines()[0]}"
    assert rows[10, "FedSheafHN"]["Grade"] == "– not run"
    assert rows[10, "FedSheafHN"]["Published"] == "83.49 ± 0.22"
    assert rows[10, "FedSheafHN"]["Trust"] == "published"
    lost = rows[10, "FedPer"]
    assert lost["Grade"] == "≠ not comparable"
    assert "1 of 2 runs without numbers (diverged, seed 1: loss is nan in round 2)" in lost["Why"]
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
    table = pd.read_csv(tmp_path / "site" / "data" / f"{Path(BOARD).stem}.csv")
    assert set(table.loc[table["method"] == EVIL, "trust"]) == {"verified"}
    assert set(table.loc[table["method"] == "local", "trust"]) == {"own"}
    assert rows[10, EVIL]["Trust"] == f"bundle {BUNDLE}: verified"
    groups = rows[10, EVIL]["Tie group"], rows[10, "FedAvg"]["Tie group"]
    assert groups == (("1", "2") if findings else ("–", "1"))
    waiting = Page(tmp_path / "site" / "index.html").text.partition("Not ranked until")[2]
    assert (EVIL in waiting) == (not findings)


def test_filters_offer_clients_by_number_grades_best_first_and_experiments_by_title(renamed: Path) -> None:
    page = renamed / board_page("tiny", "cora")
    heads = [row[0] for row in Page(page).tables[0] if "axis" in row[0]]
    assert any(head.startswith("What others do") for head in heads)
    assert not any(head.startswith("A paper") for head in heads)
    clients = options(page, "clients")
    assert clients == sorted(clients, key=int)
    assert clients != sorted(clients)
    verdicts = options(page, "verdict")
    grades = [verdict for verdict in GRADES if verdict in verdicts]
    assert verdicts == [*grades, *sorted(set(verdicts) - set(grades))]
    assert len(grades) > 1


def test_a_methods_page_leads_to_the_paired_tests(site: Path) -> None:
    assert "../data/tiny-pairs.csv" in Page(site / method_page("fedavg")).links
    # seeds that both have: 40 - 50 and 47 - 51
    table = pd.read_csv(site / "data" / "tiny-pairs.csv").set_index(["clients", "first", "second"])
    assert table.loc[(20, "local", "fedavg"), "difference"] == pytest.approx((50 - 40 + 51 - 47) / 2)


def test_a_picture_holds_every_number_in_its_place() -> None:
    axis = Scale(60.0, 80.0)
    first, middle, last = axis.at(60), axis.at(70), axis.at(80)
    assert middle == pytest.approx((first + last) / 2)
    assert axis.at(65) == pytest.approx((first + middle) / 2)
    assert (axis.at(-5), axis.at(500)) == (first, last)
    assert 0 < first < last < 100


def test_an_axis_leaves_room_to_most_values() -> None:
    means = [39.0, 80.0, 81.0, 82.0, 83.0, 84.0]
    low, high = np.quantile(means, (0.25, 0.75))
    rows = pd.DataFrame({"mean": means, "high": [np.nan, np.nan, np.nan, np.nan, 86.0, 99.0]})
    ends = usual_ends(rows, ["mean"], ["high"])
    assert set(ends) == {end for end in (*means, 86.0, 99.0) if 2 * low - high <= end <= 2 * high - low}
    assert (ends.min(), 99.0 in set(ends)) == (80.0, False)


def test_a_difference_is_a_bar_as_long_as_it_is_large(site: Path) -> None:
    text = (site / BOARD).read_text(encoding="utf-8")
    lengths = {}
    for row in re.findall(r'<tr id="[^"]+" class="row".*?</tr>', text, re.DOTALL):
        number = re.search(r">([+-][\d.]+)<svg", row)
        bar = re.search(r'class="bar" x1="([\d.]+)%" x2="([\d.]+)%"', row)
        assert bool(number) == bool(bar)
        if number and bar:
            lengths[float(number[1])] = float(bar[2]) - float(bar[1])
    assert len(lengths) > 1
    by_task = {round(length / difference, 1) for difference, length in lengths.items()}
    assert len(by_task) < len(lengths)  # one factor a task
    assert min(by_task) > 0
