"""The site without a browser: what stands on its pages, and what they lead to."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import mean, stdev
from typing import Any
from urllib.parse import unquote

import pytest
from pages import Page, records
from scipy import stats
from site_database import (
    BASES,
    BUNDLE,
    COMPETITORS,
    EVIL,
    PARTITION,
    REASON,
    TEN,
    Tiny,
    build_site,
    fill,
    means,
    spec,
)

from bench.errors import RequestError
from bench.leaderboard import runs as run_files
from bench.leaderboard.build import build
from bench.leaderboard.libraries import classic
from bench.leaderboard.methods import about, paragraphs
from bench.leaderboard.names import file_name
from bench.leaderboard.pages import board_page, method_page
from bench.leaderboard.script import call, script_json
from bench.report.source import Merged
from bench.store import open_store

COMMAND = "bench sweep -d cora -s non-overlapping -k 10 -m fedavg --seed 2 --set protocol.rounds=3"
BOARD = board_page("tiny", "cora")


def board(site: Path) -> dict[tuple[int, str], dict[str, str]]:
    """Rows of the board by number of clients and method's title."""
    rows = records(Page(site / BOARD).tables[0])
    return {(int(row["Clients"]), row["Method"]): row for row in rows}


def loaded(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The two arguments of a shard's call."""
    text = path.read_text(encoding="ascii")
    decoder = json.JSONDecoder()
    runs, end = decoder.raw_decode(text, text.index("(") + 1)
    machines, _ = decoder.raw_decode(text, end + 1)
    return runs, machines


def test_every_link_leads_to_a_file_and_a_place_of_the_site(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert {path.relative_to(site).parts[0] for path in pages} == {
        "index.html",
        "about.html",
        "run.html",
        "board",
        "method",
    }
    for path, page in pages.items():
        for link in page.links:
            address, _, place = link.partition("#")
            if link == "data:,":
                continue
            assert "//" not in link
            target = (path.parent / unquote(address)).resolve() if address else path
            assert target.is_file(), link
            if place and target.name != "run.html":
                assert place in pages[target].anchors, link
    known = {run for shard in sorted(site.glob("data/runs-*.js")) for run in loaded(shard)[0]}
    linked = {
        link.partition("run.html#")[2]
        for page in pages.values()
        for link in page.links
        if "run.html#" in link
    }
    assert linked == known
    assert len(known) == sum(map(len, BASES.values())) + 3


def test_a_row_shows_the_numbers_of_the_database(site: Path) -> None:
    row = board(site)[10, "FedAvg"]
    values = means(TEN, "fedavg")
    assert values == [74.5, 75.5, 79.5]
    assert row["Measured"] == f"{mean(values):.2f} ± {stdev(values):.2f}"
    low, high = stats.t.interval(0.95, 2, mean(values), stdev(values) / 3**0.5)
    assert row["95 % interval"] == f"{low:.2f} to {high:.2f}"
    assert row["Seeds"] == "3"
    assert row["Published"] == "72.38 ± 2.45"
    assert row["Difference"] == f"{mean(values) - 72.38:+.2f}"
    # 4.12 points away, 2 sqrt(2.45^2 + 2.65^2) = 7.2 allowed
    assert row["Verdict"] == "reproduced"
    assert row["Worst client"] == f"{mean([70, 71, 75]):.2f}"
    assert row["Bottom 10 %"] == row["Worst client"]  # one client of ten
    assert row["Below Local"] == "0.00"
    assert row["Std over clients"] == f"{stdev(range(10)):.2f}"
    assert row["received, best_val"] == f"{mean(values) - 1:.2f}"
    assert (row["Seconds"], row["MB"], row["Peak MiB"]) == ("2.5", "2.0", "3")
    assert row["Settings"] == "default"
    assert row["Origin"] == "own"
    assert row["Protocol"] == "3 rounds, 3 local epochs, split 40/30/30, partition seed 123"


def test_clients_below_the_baseline_are_counted_with_the_same_seed(site: Path) -> None:
    # 40 + c against 50 + c, 47 + c against 51 + c: all twenty clients of both seeds
    assert board(site)[20, "FedAvg"]["Below Local"] == "20.00"


def test_groups_of_ties_are_those_of_the_paired_tests(site: Path) -> None:
    rows = board(site)
    # constant differences have no spread: p is 0, every pair differs; the unverified guest has no group
    assert rows[10, "FedPer"]["Tie group"] == "1"
    assert rows[10, "FedAvg"]["Tie group"] == "2"
    assert rows[10, "Local"]["Tie group"] == "3"
    assert rows[10, EVIL]["Tie group"] == "–"
    assert (rows[20, "Local"]["Tie group"], rows[20, "FedAvg"]["Tie group"]) == ("1", "2")


def test_cells_without_numbers_say_why(site: Path) -> None:
    rows = board(site)
    failed = rows[10, "FedProx"]
    assert (failed["Measured"], failed["Seeds"], failed["Verdict"]) == ("–", "–", "failed")
    assert failed["Why"] == f"seed 0: {REASON.splitlines()[0]}"
    assert rows[10, "FedSheafHN"]["Verdict"] == "not run"
    assert rows[10, "FedSheafHN"]["Published"] == "83.49 ± 0.22"
    lost = rows[10, "FedPer"]
    assert lost["Verdict"] == "not comparable"
    assert "1 of 2 runs without numbers (diverged, seed 1: loss is nan in round 2)" in lost["Why"]
    order = [row["Measured"] == "–" for (clients, _), row in rows.items() if clients == 10]
    assert order == sorted(order)


def test_the_csv_of_a_board_has_the_same_rows(site: Path) -> None:
    with (site / "data" / f"{Path(BOARD).stem}.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(board(site))
    row = next(line for line in lines if (line["method"], line["clients"]) == ("fedavg", "10"))
    assert float(row["mean"]) == pytest.approx(mean(means(TEN, "fedavg")), abs=1e-4)


def test_the_front_page_says_what_is_covered(site: Path) -> None:
    page = Page(site / "index.html")
    coverage = next(table for table in page.tables if table[0][0] == "Data set")
    # Table 1 has five methods in two columns, and the guest, who is planned nowhere, one
    assert coverage[1] == ["Cora", "6 of 11", "1 failed, 4 not run"]
    ranking = records(next(table for table in page.tables if table[0][0] == "Method"))
    assert [(row["Method"], row["Mean rank"], row["Tasks"]) for row in ranking] == [
        ("FedPer", "1.00", "1/2"),
        ("Local", "2.00", "2/2"),  # third of three, first of two
        ("FedAvg", "2.00", "2/2"),
    ]
    assert f"Not ranked until their runs are verified: {EVIL}" in page.text
    assert "15 runs: 1 diverged, 12 done, 2 failed" in " ".join(page.text.split())


def test_a_verified_guest_is_ranked(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'bench.db'}"
    fill(url, "verified")
    build_site(url, tmp_path / "site")
    rows = board(tmp_path / "site")
    assert rows[10, EVIL]["Tie group"] == "1"
    assert rows[10, EVIL]["Origin"] == f"bundle {BUNDLE}: verified"
    assert rows[10, "FedPer"]["Tie group"] == "2"


def test_the_record_of_a_run_holds_what_is_stored(site: Path) -> None:
    wanted = spec(TEN, "fedavg", 2)
    runs, machines = loaded(site / "data" / "runs-0000.js")
    run = runs[wanted.hash]
    assert run["spec"] == wanted.tree()
    assert run["command"] == COMMAND
    results = {tuple(row[:3]): row[3:] for row in run["results"]}
    counts = [75 + client for client in range(10)]
    assert results["trained", "test", "best_val"] == [79.5, 79.5, round(stdev(counts), 2), 75.0]
    assert results["trained", "test", "last"] == [78.5, 78.5, round(stdev(counts), 2), 74.0]
    assert results["received", "test", "best_val"][0] == 78.5
    assert results["trained", "val", "best_val"] == [80.0, 80.0, 0.0, 80.0]
    values = {tuple(row[:2]): row[2] for row in run["accuracies"]["values"]}
    assert values["trained", "best_val"] == counts
    assert run["accuracies"]["samples"] == [100] * 10
    assert run["curves"]["trained"]["test"] == {"rows": 3, "every": 1, "values": [7850, 7950, 7850]}
    assert run["curves"]["received"]["val"]["values"] == [2000, 8000, 4000]
    assert run["costs"]["seconds_total"] == 2.5
    assert run["code"] == {
        "code_version": "0.1",
        "source_hash": "source",
        "method_numerics": 1,
        "engine_numerics": 2,
    }
    assert run["partition"] == PARTITION
    assert machines[str(run["environment"])] == {"python": "3.11", "note": EVIL}
    lost = runs[spec(TEN, "fedprox", 1).hash]
    assert (lost["state"], lost["reason"], lost["results"]) == ("failed", REASON, [])


def test_runs_are_found_by_the_first_hash_of_each_shard(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_files, "SHARD", 4000)
    monkeypatch.setattr(run_files, "BLOCK", 4)
    with open_store(database, create=False) as store:
        made = run_files.write(Merged(store, []), tmp_path, {}, {})
        hashes = store.runs()["spec_hash"].tolist()
    assert len(made.first) > 2
    assert made.runs == len(hashes)
    for digest in hashes:
        shard = max(place for place, first in enumerate(made.first) if first <= digest)
        assert digest in loaded(tmp_path / f"runs-{shard:04d}.js")[0]


def test_long_curves_keep_every_kth_row_and_the_last() -> None:
    import numpy as np
    import pandas as pd

    class Source:
        def curves(self, ids: list[int], split: str) -> dict[tuple[int, str], Any]:
            return {(1, "trained"): np.arange(450, dtype=np.int32)[:, None]}

    rows = {"run_id": [1], "client": [0], "rule": ["last"], "metric": ["accuracy"], "samples": [1000]}
    curve = run_files._curves(Source(), [1], {"test": pd.DataFrame(rows)})[1]["trained"]["test"]  # type: ignore[arg-type]
    assert (curve["rows"], curve["every"]) == (450, 3)
    assert curve["values"] == [10 * row for row in (*range(0, 449, 3), 449)]


def test_all_curves_at_once_are_those_asked_for_one_by_one(database: str) -> None:
    with open_store(database, create=False) as store:
        ids = store.runs(state="done")["id"].tolist()
        found = store.curves([*ids, 999], "val")
        assert set(found) == {(run, stage) for run in ids for stage in ("received", "trained")}
        for (run, stage), counts in found.items():
            assert (counts == store.curve(run, stage, "val")).all()
        merged = Merged(None, [("a", store), ("b", store)])
        assert len(merged.curves(merged.runs()["id"], "test")) == len(found)


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
    assert board(site)[10, EVIL]["Origin"] == f"bundle {BUNDLE}: unverified"


def test_scripts_hold_no_sign_that_html_knows() -> None:
    value = {"a</script>": ["\u2028\u2029é", "<!--", 1.5, None, True]}
    text = script_json(value)
    assert not set("<>&'\u2028\u2029é") & set(text)
    assert json.loads(text) == value
    assert call("f", 1, "<") == 'f(1,"\\u003c");\n'
    with pytest.raises(ValueError, match="Out of range"):
        script_json(float("nan"))


def test_names_of_files_are_harmless_and_differ() -> None:
    assert file_name("fedsheafhn_released") == "fedsheafhn_released"
    for name in ("../../etc/passwd", "A", "a/b", "", "con.", "é", "x" * 300, EVIL, "a\0b", "index.html"):
        made = file_name(name)
        assert made != name
        assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-.")
        assert not made.startswith(".")
        assert len(made) < 80
    assert len({file_name(name).lower() for name in ("a", "A", "a/", "a.", " a")}) == 5


def test_a_methods_page_describes_it(site: Path) -> None:
    page = Page(site / method_page("fedper"))
    assert "Arivazhagan et al., 2019" in page.text
    assert "The backbone is averaged as in FedAvg; every client keeps a head of its own." in page.text
    assert "fedavg.html" in " ".join(page.links)
    cells = records(next(table for table in page.tables if table[0][-1] == "Runs by seed"))
    assert cells[0]["Measured"] == "84.50"
    assert cells[0]["Runs by seed"] == "0 1 (diverged)"
    assert "This method is not installed here" in " ".join(
        paragraph[0][0] for paragraph in about("x", {}).text
    )
    evil = records(Page(site / method_page(EVIL)).tables[0])
    assert evil == [{"Name": "mu", "Default": "0.1", "Values to try": "0.1, 1.0", "Meaning": "–"}]


def test_docstrings_become_paragraphs_with_code() -> None:
    assert paragraphs("One ``a.b``\nline.\n\n  Two `c`.") == [
        (("One ", False), ("a.b", True), (" line.", False)),
        (("Two ", False), ("c", True), (".", False)),
    ]


@pytest.mark.slow
def test_unchanged_results_give_the_same_bytes_in_another_process(
    site: Path, database: str, tmp_path: Path
) -> None:
    again = tmp_path / "again"
    script = (
        "from pathlib import Path; from site_database import build_site; "
        f"build_site({database!r}, Path({str(again)!r}))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parent)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=120)
    names = sorted(path.relative_to(site) for path in site.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    assert [name for name in names if (site / name).read_bytes() != (again / name).read_bytes()] == []


def test_a_changed_bundle_of_a_library_is_noticed() -> None:
    module = "var a=1,$b=2;export{a as x,$b as default};\n/* end */"
    assert "window.Name=$b;" in classic(module, "default", "Name")
    assert "export" not in classic(module, "default", "Name")
    with pytest.raises(RuntimeError, match="exports x, default, not y"):
        classic(module, "y", "Name")
    for other in ("var a=1;", module + module):
        with pytest.raises(RuntimeError, match="expected one 'export"):
            classic(other, "default", "Name")


def test_a_database_without_runs_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    open_store(url, create=True).close()
    with (
        open_store(url, create=False) as store,
        pytest.raises(RequestError, match="the database has no runs yet"),
    ):
        build(Merged(store, []), {"tiny": Tiny}, COMPETITORS, tmp_path / "deep" / "site")
    assert not (tmp_path / "deep").exists()
