"""The site without a browser: what stands on its pages, and what they lead to."""

from __future__ import annotations

import base64
import csv
import json
import os
import re
import subprocess
import sys
import zlib
from datetime import date
from pathlib import Path
from statistics import mean, stdev
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from pages import Page, records
from scipy import stats
from site_database import (
    BASES,
    BUNDLE,
    CHECKED,
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
from bench.leaderboard import changes, charts, methods, run_shards
from bench.leaderboard.addresses import board_page, dataset_page, file_name, method_page, pair_page
from bench.leaderboard.build import build
from bench.leaderboard.charts import call, script_json
from bench.leaderboard.methods import about
from bench.leaderboard.pictures import Scale, usual_ends
from bench.store import open_store
from bench.studies.source import MergedSource

COMMAND = "bench sweep -d cora -s non-overlapping -k 10 -m fedavg --seed 2 --set protocol.rounds=3"
BOARD = board_page("tiny", "cora")


def board(site: Path) -> dict[tuple[int, str], dict[str, str]]:
    """Rows of the board by number of clients and method's title, with what their details say."""
    rows: dict[tuple[int, str], dict[str, str]] = {}
    page = Page(site / BOARD)
    heads, *lines = page.tables[0]
    clients = 0
    for line in lines:
        if len(line) == len(heads):
            title = line[0]
            rows[clients, title] = dict(zip(heads, line, strict=True))
        elif "clients" in line[0] and "axis" in line[0]:
            clients = int(line[0].split(", ")[1].split()[0])
    for (clients, title), facts in zip(rows, page.facts, strict=True):
        rows[clients, title] |= facts
    return rows


def loaded(path: Path) -> dict[str, Any]:
    """What a shard holds: runs by spec hash, and environments."""
    packed = path.read_text(encoding="ascii").split('"')[1]
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed)))
    return found


def test_every_link_leads_to_a_file_and_a_place_of_the_site(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert {path.relative_to(site).parts[0] for path in pages} == {
        "index.html",
        "about.html",
        "run.html",
        "board",
        "dataset",
        "method",
        "pair",
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


def test_a_row_shows_the_numbers_of_the_database(site: Path) -> None:
    row = board(site)[10, "FedAvg"]
    values = means(TEN, "fedavg")
    assert values == [74.5, 75.5, 79.5]
    assert row["Measured"] == f"{mean(values):.2f} ± {stdev(values):.2f}"
    low, high = stats.t.interval(0.95, 2, mean(values), stdev(values) / 3**0.5)
    assert row["95 % interval"] == f"{low:.2f} to {high:.2f}; 3 seeds"
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


def test_a_picture_holds_every_number_in_its_place() -> None:
    axis = Scale(60.0, 80.0)
    first, middle, last = axis.at(60), axis.at(70), axis.at(80)
    assert middle == pytest.approx((first + last) / 2)
    assert axis.at(65) == pytest.approx((first + middle) / 2)
    assert (axis.at(-5), axis.at(500)) == (first, last)
    assert 0 < first < last < 100
    strokes = axis.ticks(np.array([60.0, 65.0, 500.0]))
    assert [float(part.split()[0]) for part in strokes.split("M")[1:]] == [first, axis.at(65), last]


def test_an_axis_leaves_room_to_most_values_and_points_to_the_others() -> None:
    most = [80.0, 81.0, 82.0, 83.0, 84.0]
    low, high = np.quantile([39.0, *most], (0.25, 0.75))
    ends = usual_ends([39.0, *most], [39.0, *most, 86.0, 99.0])
    assert ends == [end for end in (39.0, *most, 86.0, 99.0) if 2 * low - high <= end <= 2 * high - low]
    assert ends[0] == 80.0
    assert 99.0 not in ends
    axis = Scale(min(ends), max(ends))
    assert [axis.beyond(value) for value in (39.0, 81.0, 99.0)] == [-1, 0, 1]
    assert (axis.end(39.0), axis.end(81.0), axis.end(99.0)) == (0.0, axis.at(81.0), 100.0)


def test_a_difference_is_a_bar_as_long_as_it_is_large(site: Path) -> None:
    text = (site / BOARD).read_text(encoding="utf-8")
    lengths = {}
    for row in re.findall(r'<tr id="[^"]+" class="row".*?</tr>', text, re.DOTALL):
        number = re.search(r">([+-][\d.]+)<svg", row)
        bar = re.search(r'class="bar" x1="([\d.]+)%" x2="([\d.]+)%"', row)
        assert bool(number) == bool(bar)
        if number and bar and 'class="tip"' not in row:
            lengths[float(number[1])] = float(bar[2]) - float(bar[1])
    assert len(lengths) > 1
    by_task = {round(length / difference, 1) for difference, length in lengths.items()}
    assert len(by_task) < len(lengths)  # one factor a task
    assert min(by_task) > 0


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
    assert (failed["Measured"], failed["Grade"]) == ("–", "– failed")
    assert failed["Why"] == f"seed 0: {REASON.splitlines()[0]}"
    assert rows[10, "FedSheafHN"]["Grade"] == "– not run"
    assert rows[10, "FedSheafHN"]["Published"] == "83.49 ± 0.22"
    assert rows[10, "FedSheafHN"]["Trust"] == "published"
    lost = rows[10, "FedPer"]
    assert lost["Grade"] == "≠ not comparable"
    assert "1 of 2 runs without numbers (diverged, seed 1: loss is nan in round 2)" in lost["Why"]
    order = [row["Measured"] == "–" for (clients, _), row in rows.items() if clients == 10]
    assert order == sorted(order)


def test_the_csv_of_a_board_has_the_same_rows(site: Path) -> None:
    with (site / "data" / f"{Path(BOARD).stem}.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(board(site))
    row = next(line for line in lines if (line["method"], line["clients"]) == ("fedavg", "10"))
    assert float(row["mean"]) == pytest.approx(mean(means(TEN, "fedavg")), abs=1e-4)


def test_the_front_page_says_what_was_found(site: Path) -> None:
    page = Page(site / "index.html")
    said = " ".join(page.text.split())
    # Table 1 has five methods in two columns, and the guest, who is planned nowhere, one
    assert "Cora 6 of 11 cells measured; 1 failed, 4 not run" in said
    ranking = records(next(table for table in page.tables if table[0][0] == "Method"))
    found = {row["Method"]: (row["Rank"].split()[0], row["Tasks"]) for row in ranking}
    assert found == {
        "Local": ("2.0", "2/2"),  # third of three, first of two
        "FedAvg": ("2.0", "2/2"),
        "FedPer": ("1.0", "1/2"),
    }
    assert [row["Method"] for row in ranking][-1] == "FedPer"  # not in every task
    assert f"Not ranked until their runs are verified: {EVIL}" in page.text
    assert "15 runs, of them 1 diverged, 2 failed" in said


def test_every_page_says_what_it_is_about(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for name in ('name="description" content="', 'property="og:title" content="'):
            assert len(text.split(name)[1].split('"')[0]) > 1, path


def test_a_verified_guest_is_ranked(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'bench.db'}"
    fill(url, "verified")
    build_site(url, tmp_path / "site")
    rows = board(tmp_path / "site")
    day = f"verified on {CHECKED:%Y-%m-%d}"
    assert day in " ".join(Page(tmp_path / "site" / BOARD).text.split())
    table = pd.read_csv(tmp_path / "site" / "data" / f"{Path(BOARD).stem}.csv")
    assert set(table.loc[table["method"] == EVIL, "trust"]) == {day}
    assert set(table.loc[table["method"] == "local", "trust"]) == {"own"}
    assert rows[10, EVIL]["Tie group"] == "1"
    assert rows[10, EVIL]["Trust"] == f"bundle {BUNDLE}: verified"
    assert rows[10, "FedPer"]["Tie group"] == "2"


def test_the_record_of_a_run_holds_what_is_stored(site: Path) -> None:
    wanted = spec(TEN, "fedavg", 2)
    shard = loaded(site / "data" / "runs-0000.js")
    runs, machines = shard["runs"], shard["environments"]
    run = runs[wanted.hash]
    assert run["spec"] == wanted.tree()
    assert run["command"] == COMMAND
    counts = [75 + client for client in range(10)]
    right = {tuple(row[:2]): row[2] for row in run["counts"]["test"]["right"]}
    assert right["trained", "best_val"] == counts
    assert right["trained", "last"] == [count - 1 for count in counts]
    assert right["received", "best_val"] == [count - 1 for count in counts]
    assert run["counts"]["test"]["samples"] == [100] * 10
    checked = {tuple(row[:2]): row[2] for row in run["counts"]["val"]["right"]}
    assert (checked["trained", "best_val"], checked["trained", "last"]) == ([40] * 10, [20] * 10)
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
    assert (lost["state"], lost["reason"], lost["counts"]) == ("failed", REASON, {})


def test_runs_are_found_by_the_first_hash_of_each_shard(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_shards, "SHARD", 4000)
    monkeypatch.setattr(run_shards, "BLOCK", 4)
    with open_store(database, create=False) as store:
        shards, runs = run_shards.write(MergedSource(store, []), tmp_path, {}, {})
        hashes = store.runs()["spec_hash"].tolist()
    assert len(shards) > 2
    assert runs == len(hashes)
    for digest in hashes:
        shard = max(place for place, first in enumerate(shards) if first <= digest)
        assert digest in loaded(tmp_path / f"runs-{shard:04d}.js")["runs"]


def test_long_curves_keep_every_kth_row_and_the_last() -> None:
    correct = np.arange(450, dtype=np.int32)[None, :, None] * np.array([[[1]], [[2]]], np.int32)
    for times, curve in enumerate(run_shards.thinned(correct, np.array([1000])), 1):
        assert (curve["rows"], curve["every"]) == (450, 3)
        assert curve["values"] == [10 * times * row for row in (*range(0, 449, 3), 449)]


def test_all_curves_at_once_are_those_asked_for_one_by_one(database: str) -> None:
    with open_store(database, create=False) as store:
        ids = store.runs(state="done")["id"].tolist()
        found = store.curves([*ids, 999], "val")
        assert set(found) == {(run, stage) for run in ids for stage in ("received", "trained")}
        for (run, stage), counts in found.items():
            assert (counts == store.curves([run], "val")[run, stage]).all()
        merged = MergedSource(None, [("a", store), ("b", store)])
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
        elif path.suffix == ".xml":
            ElementTree.fromstring(text)
    page = Page(site / method_page(EVIL))
    assert f"Evil {EVIL}" in page.text
    assert "First paragraph <script>window.hacked=1</script> with code <b> in it." in page.text
    assert board(site)[10, EVIL]["Trust"] == f"bundle {BUNDLE}: unverified"


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
    assert "not installed here" in about("x", {}).description
    evil = records(Page(site / method_page(EVIL)).tables[0])
    assert [(row["Name"], row["Default"], row["Tuned over"], row["Meaning"]) for row in evil] == [
        ("mu", "0.1", "0.1, 1.0", "–")
    ]
    fedprox = records(Page(site / method_page("fedprox")).tables[0])
    assert {row["Name"]: row["Range"] for row in fedprox} == {
        "weights": "uniform or samples",
        "mu": "0 or more",
    }


def test_every_hyper_parameter_has_a_meaning() -> None:
    silent = [
        (name, field)
        for name, cls in COMPETITORS.items()
        if name != EVIL
        for field in cls.Hyper.model_fields
        if not cls.Hyper.meaning(field)
    ]
    assert silent == []


def test_docstrings_become_paragraphs_lists_code_and_formulas() -> None:
    shown = methods.html("One ``a.b``\nline.\n\n1. first x_ij,\n2. second: 1e-3 * best_val <b>.\n\n- a\n- b")
    assert shown.count("<p>") - shown.count("<li>") <= 1
    assert shown.count("<ol>") == shown.count("<ul>") == 1
    assert shown.count("<li>") == 4
    assert "<code>a.b</code>" in shown
    assert "<i>x</i><sub>ij</sub>" in shown
    assert "best_val &lt;b&gt;" in shown


def test_formulas_have_letters_and_indices() -> None:
    shown = methods.html("sum_j alpha_ij Theta'_g softmax_j dW_i max_{i, j} ||w||^2_k theta~_i^l <mu>")
    for part in ("<sub>j</sub>", "<i>α</i><sub>ij</sub>", "softmax<sub>j</sub>", "max<sub>i, j</sub>"):
        assert part in shown
    assert "<i>θ</i>~<sub>i</sub><sup>l</sup>" in shown
    assert "&lt;<i>μ</i>&gt;" in shown
    assert "_" not in shown
    assert "best_val, max_degree" in methods.html("best_val, max_degree")


def test_no_description_keeps_a_raw_index() -> None:
    names = "|".join((*methods.GREEK, *methods.OPERATORS))
    for name in COMPETITORS:
        text = re.sub(r"<(code|pre)>.*?</\1>", "", about(name, COMPETITORS).description, flags=re.DOTALL)
        assert not re.search(rf"\b({names}|[A-Za-z])[~']?_\w", text), name


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


def test_a_data_sets_page_counts_labels(site: Path) -> None:
    page = Page(site / dataset_page("cora"))
    ten = next(table for table in page.tables if table[0][0] == "Client" and len(table) == 11)
    held = [sum(map(int, row[1:])) for row in ten[1:]]
    assert sum(held) == 2485  # nodes of Cora's largest connected component, none shared


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
    first = json.loads((out / changes.LOG).read_text())["changes"]
    assert [(one["date"], one["kind"]) for one in first] == [("2026-01-01", "first")]
    table = pd.read_csv(out / changes.CELLS)
    fedavg = (table["method"] == "fedavg") & (table["clients"] == 10)
    table.loc[fedavg, "verdict"] = "below"
    table.loc[(table["method"] == "local") & (table["clients"] == 10), "mean"] += 1.0
    table.loc[(table["method"] == "local") & (table["clients"] == 20), "mean"] = np.nan
    gone = table[fedavg].assign(method="gone", line="Gone")
    pd.concat([table, gone]).to_csv(out / changes.CELLS, index=False)
    build_site(database, out, today=date(2026, 1, 3))
    after = json.loads((out / changes.LOG).read_text())["changes"]
    assert after[-1:] == first
    kinds = {one["kind"]: one for one in after[:-1]}
    assert sorted(kinds) == ["measured", "number", "removed", "verdict"]
    assert {one["date"] for one in kinds.values()} == {"2026-01-03"}
    assert kinds["removed"]["rows"] == ["Gone, non-overlapping, 10 clients"]
    assert "Local, non-overlapping, 20 clients" in kinds["measured"]["rows"][0]
    feed = ElementTree.fromstring((out / "feed.xml").read_text())
    assert len(feed.findall("{http://www.w3.org/2005/Atom}entry")) == len(after)
    (out / changes.LOG).write_text("{")
    with pytest.raises(RequestError, match="never dropped"):
        changes.log(out, table, date(2026, 1, 4))
    assert (out / changes.LOG).read_text() == "{"


def test_a_release_is_frozen_and_kept(database: str, tmp_path: Path) -> None:
    out = tmp_path / "site"
    build_site(database, out, release="0.1.0", today=date(2026, 1, 1))
    frozen = out / "releases" / "0.1.0"
    before = {path: path.read_bytes() for path in frozen.rglob("*") if path.is_file()}
    assert frozen / BOARD in before
    assert frozen / "data" / "runs-0000.js" in before
    assert "Frozen copy of release 0.1.0" in (frozen / "index.html").read_text()
    (out / changes.CELLS).unlink()
    build_site(database, out, release="0.2.0", today=date(2026, 1, 2))
    assert {path: path.read_bytes() for path in frozen.rglob("*") if path.is_file()} == before
    links = Page(out / "index.html").links
    assert [link for link in links if link.startswith("releases/")] == [
        "releases/0.2.0/index.html",
        "releases/0.1.0/index.html",
    ]
    for name in ("0.2.0", "../x", ".", "a/b"):
        with pytest.raises(RequestError, match="--release"):
            build_site(database, out, release=name)


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


def test_the_library_is_named_by_version_and_hash(site: Path) -> None:
    library = charts.library()
    assert library.sha256[:12] in library.file
    assert (site / "assets" / library.file).read_text(encoding="utf-8") == library.text
    assert "window.vegaEmbed" in library.text
    assert library.sha256 in (site / "about.html").read_text()


@pytest.mark.parametrize("changed", ["script", "version"])
def test_a_script_that_is_not_known_is_refused(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if changed == "script":
        monkeypatch.setattr("vl_convert.javascript_bundle", lambda: "window.vegaEmbed = 1")
    else:
        monkeypatch.setattr(charts, "version", lambda package: "0.0.1")
    with pytest.raises(RequestError, match="SHA-256") as refused:
        charts.library()
    assert "\n" not in str(refused.value)


def test_a_database_without_runs_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    open_store(url, create=True).close()
    with (
        open_store(url, create=False) as store,
        pytest.raises(RequestError, match="the database has no runs yet"),
    ):
        build(MergedSource(store, []), {"tiny": Tiny}, COMPETITORS, tmp_path / "deep" / "site")
    assert not (tmp_path / "deep").exists()
