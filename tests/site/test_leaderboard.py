"""The site as a whole, without a browser: what stands on its pages, and what they lead to."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import mean
from urllib.parse import unquote

import pandas as pd
import pytest
from pages import BOARD, Page, board, loaded, records
from site_database import BASES, BUNDLE, COMPETITORS, EVIL, TEN, Tiny, means

from bench.errors import RequestError
from bench.site.folder import method_page
from bench.site.leaderboard import build
from bench.store import open_store
from bench.studies.source import MergedSource


def test_every_link_leads_to_a_file_and_a_place_of_the_site(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert {path.relative_to(site).parts[0] for path in pages} == {
        "index.html",
        "run.html",
        "board",
        "dataset",
        "method",
    }
    for path, page in pages.items():
        for link in page.links:
            address, _, place = link.partition("#")
            if path.parent.name == "dataset" and link.startswith("https://"):
                continue  # where the data are from
            assert "//" not in link
            target = (path.parent / unquote(address)).resolve() if address else path
            assert target.is_file(), link
            if place and target.name != "run.html":
                assert place in pages[target].anchors, link
    known = {run for shard in sorted(site.glob("data/runs-*.js")) for run in loaded(shard)["runs"]}
    linked = {
        link.partition("run.html#")[2]
        for page in pages.values()
        for link in page.links
        if "run.html#" in link
    }
    assert linked == known
    assert len(known) == sum(map(len, BASES.values())) + 3


def test_the_front_page_says_what_was_found(site: Path) -> None:
    page = Page(site / "index.html")
    said = " ".join(page.text.split())
    # Table 1 has five methods in two columns, and the guest, who is planned nowhere, one
    assert "Cora 6 of 11 cells measured; 1 failed, 4 not run" in said
    ranking = records(next(table for table in page.tables if table[0][0] == "Method"))
    ranks = {row["Method"]: (row["Rank"].split()[0], row["Tasks"]) for row in ranking}
    assert ranks == {
        "Local": ("2.0", "2/2"),  # third of three, first of two
        "FedAvg": ("2.0", "2/2"),
        "FedPer": ("1.0", "1/2"),
    }
    assert [row["Method"] for row in ranking][-1] == "FedPer"  # not in every task
    verdicts = records(next(table for table in page.tables if table[0][0] == "Published in"))
    counts = {head.split(" ", 1)[-1]: int(text) for head, text in verdicts[0].items() if text.isdigit()}
    lead = re.search(r'class="lead">(.*?)</p>', (site / "index.html").read_text())
    assert lead
    grades = ("reproduced", "compatible", "above", "below", "uninformative", "not comparable")
    found = {grade: counts.get(grade, 0) for grade in grades}
    outcomes = (
        found["reproduced"] + found["compatible"],
        found["above"],
        found["below"],
        found["uninformative"] + found["not comparable"],
    )
    named = [counts["All"], sum(found.values()), *filter(None, outcomes)]
    assert [int(number) for number in re.findall(r"\d+", lead[1])] == named
    methods = re.findall(r'<li><a href="method/[^>]*>(.*?)</a>', (site / "index.html").read_text())
    assert methods == sorted(methods, key=str.lower)
    assert f"Not ranked until runs of theirs are made again and verified: {EVIL}" in page.text
    assert "15 runs, of them 1 diverged, 2 failed" in said


def test_a_method_has_one_name_in_ranking_list_and_page(renamed: Path) -> None:
    page = Page(renamed / "index.html")
    ranking = records(next(table for table in page.tables if table[0][0] == "Method"))
    assert "Plain averaging" in {row["Method"] for row in ranking}
    assert Page(renamed / method_page("fedavg")).text.count("Plain averaging")
    listed = (renamed / "index.html").read_text().split('id="methods"')[1]
    assert f'<a href="{method_page("fedavg")}">Plain averaging</a>' in listed


def test_every_page_says_what_it_is_about(site: Path) -> None:
    for path in site.rglob("*.html"):
        described = re.search(r'<meta name="description" content="([^"]+)"', path.read_text(encoding="utf-8"))
        assert described
        assert len(described[1]) > 1


def test_hostile_texts_are_escaped_everywhere(site: Path) -> None:
    own = [path for path in site.rglob("*") if path.is_file() and path.parent.name != "assets"]
    for path in own:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".html":
            assert "<img" not in text
            assert "<script>" not in text
            assert "<b " not in text
            assert "default-src 'none'; script-src 'self'" in text
        elif path.suffix == ".js":
            assert not set("<>&\u2028") & set(text)
    page = Page(site / method_page(EVIL))
    assert f"Evil {EVIL}" in page.text
    assert "First paragraph <script>window.hacked=1</script> with code <b> in it." in page.text
    assert board(site)[10, EVIL]["Trust"] == f"bundle {BUNDLE}: unverified"


@pytest.mark.slow
def test_unchanged_results_give_the_same_bytes_in_another_process(
    site: Path, database: str, tmp_path: Path
) -> None:
    again = tmp_path / "again"
    script = (
        "from pathlib import Path; from site_database import build_site; "
        f"build_site({database!r}, Path({str(again)!r}))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parents[1])}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=120)
    names = sorted(path.relative_to(site) for path in site.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    assert [name for name in names if (site / name).read_bytes() != (again / name).read_bytes()] == []


def test_a_database_without_runs_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    open_store(url, create=True).close()
    with (
        open_store(url, create=False) as store,
        pytest.raises(RequestError, match="the database has no runs yet"),
    ):
        build(MergedSource(store, []), {"tiny": Tiny}, COMPETITORS, tmp_path / "deep" / "site")
    assert not (tmp_path / "deep").exists()


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
