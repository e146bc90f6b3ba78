"""The site as a whole, without a browser: what stands on its pages, and what they lead to."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
from pages import Page, board, loaded, records
from site_database import (
    BASES,
    BUNDLE,
    COMPETITORS,
    EVIL,
    PARTITION,
    REASON,
    TEN,
    Renamed,
    Tiny,
    build_site,
    spec,
)

from bench import __version__
from bench.dataset import DATASETS
from bench.errors import RequestError
from bench.site.folder import dataset_page, method_page
from bench.site.leaderboard import MARKDOWN, build, description
from bench.spec import RunSpec
from bench.store import open_store
from bench.studies.shipped import merged


def test_every_run_of_a_board_has_a_link_there_and_on_its_methods_page(site: Path) -> None:
    known = {run for shard in site.glob("data/runs-*.js") for run in loaded(shard)}
    for kind in ("board", "method"):
        links = [link for path in site.glob(f"{kind}/*.html") for link in Page(path).links]
        assert {link.partition("run.html#")[2] for link in links if "run.html#" in link} == known
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
    (verdicts,) = records(next(table for table in page.tables if table[0][0] == "Published in"))
    counts = {head.split(" ", 1)[-1]: int(text) for head, text in verdicts.items() if text.isdigit()}
    everything = counts.pop("All")
    assert sum(counts.values()) == everything
    assert f"Of {everything} published values" in said
    methods = re.findall(r'<li><a href="method/[^>]*>(.*?)</a>', (site / "index.html").read_text())
    assert methods == sorted(methods, key=str.lower)
    assert "15 runs, of them 1 diverged, 2 failed" in said


def test_a_method_has_one_name_in_ranking_list_and_page(database: str, tmp_path: Path) -> None:
    renamed = tmp_path / "site"
    build_site(database, renamed, Renamed)
    page = Page(renamed / "index.html")
    ranking = records(next(table for table in page.tables if table[0][0] == "Method"))
    assert "Plain averaging" in {row["Method"] for row in ranking}
    assert Page(renamed / method_page("fedavg")).text.count("Plain averaging")
    listed = (renamed / "index.html").read_text().split('id="methods"')[1]
    assert f'<a href="{method_page("fedavg")}">Plain averaging</a>' in listed


def test_hostile_texts_are_escaped_everywhere(site: Path) -> None:
    own = [path for path in site.rglob("*") if path.is_file() and path.parent.name != "assets"]
    for path in own:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".html":
            assert "<img" not in text
            assert "<script>" not in text
            assert "<b " not in text
        elif path.suffix == ".js":
            assert not set("<>&\u2028") & set(text)
    page = Page(site / method_page(EVIL))
    assert f"Evil {EVIL}" in page.text
    assert "First paragraph <script>window.hacked=1</script> with code <b> in it." in page.text
    assert board(site)[10, EVIL]["Origin"] == f"bundle {BUNDLE}: unverified"


def test_a_database_without_runs_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    open_store(url, create=True).close()
    with (
        open_store(url, create=False) as store,
        pytest.raises(RequestError, match="the database has no runs yet"),
    ):
        build(merged(store, []), {"tiny": Tiny}, COMPETITORS, tmp_path / "deep" / "site")
    assert not (tmp_path / "deep").exists()


def test_every_data_set_of_the_suite_says_under_what_terms_its_source_gives_it(site: Path) -> None:
    suite = {
        name: kind for name, kind in DATASETS.all().items() if kind.__module__.startswith("bench.datasets.")
    }
    assert {"cora", "cifar10", "ogbn-arxiv", "news20", "tiny-imagenet"} <= set(suite)
    assert [name for name, kind in suite.items() if not (kind.licence and kind.homepage)] == []
    assert "MIT" in suite["photo"].licence
    cora = Page(site / dataset_page("cora"))
    assert suite["cora"].licence in cora.text
    assert suite["cora"].homepage in cora.links


def record(folder: Path, wanted: RunSpec) -> Any:
    """What the file that its hash leads to says of a run."""
    return loaded(folder / f"runs-{wanted.hash[:2]}.js")[wanted.hash]


def test_the_record_of_a_run_holds_what_is_stored(site: Path) -> None:
    wanted = spec(TEN, "fedavg", 2)
    run = record(site / "data", wanted)
    assert run["spec"] == wanted.tree()
    assert run["command"].startswith("bench sweep -d cora -s non-overlapping -k 10 -m fedavg --seed 2 ")
    ((address, reading),) = [(row["address"], (row["stage"], row["rule"])) for row in run["boards"]]
    assert reading == ("trained", "best_val")
    page, _, anchor = address.partition("#")
    assert f'id="{anchor}"' in (site / page).read_text()
    counts = [75 + client for client in range(10)]
    results = {tuple(row[:3]): row[3:] for row in run["results"]}
    assert results["test", "trained", "best_val"] == [mean(counts)] * 2 + [round(stdev(counts), 4), 75]
    assert results["test", "trained", "last"][0] == mean(counts) - 1
    assert results["test", "received", "best_val"][0] == mean(counts) - 1
    assert results["val", "trained", "best_val"] == [80, 80, 0, 80]
    assert results["val", "trained", "last"][0] == 40
    assert run["seconds_total"] == 2.5
    assert (run["code_version"], run["method_numerics"], run["engine_numerics"]) == (__version__, 1, 2)
    assert run["started"] == "2026-01-02T03:04:05"
    assert run["partition_hash"] == PARTITION
    assert run["environment"] == {"python": "3.11", "note": EVIL}
    lost = record(site / "data", spec(TEN, "fedprox", 1))
    assert (lost["state"], lost["reason"], lost["results"]) == ("failed", REASON, [])


def test_a_methods_page_describes_it(site: Path) -> None:
    page = Page(site / method_page("fedper"))
    assert "Arivazhagan et al., 2019" in page.text
    assert "The backbone is averaged as in FedAvg; every client keeps a head of its own." in page.text
    assert "fedavg.html" in " ".join(page.links)
    cells = records(next(table for table in page.tables if table[0][-1] == "Runs by seed"))
    assert cells[0]["Measured"] == "84.50"
    assert cells[0]["Runs by seed"] == "0 1 (diverged)"
    assert "not installed here" in description(None)
    evil = records(Page(site / method_page(EVIL)).tables[0])
    assert [(row["Name"], row["Default"], row["Tuned over"], row["Meaning"]) for row in evil] == [
        ("mu", "0.1", "0.1, 1.0", "–")
    ]
    fedprox = records(Page(site / method_page("fedprox")).tables[0])
    assert {row["Name"]: row["Range"] for row in fedprox} == {
        "weights": "uniform, samples",
        "mu": "≥ 0",
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


def test_docstrings_become_paragraphs_lists_and_code() -> None:
    shown = MARKDOWN.render(
        "One ``a.b`` *line*.\n\n1. first x_ij,\n2. second: 1e-3 * best_val <b>.\n\n- a\n- b"
    )
    assert shown.count("<p>") - shown.count("<li>") <= 1
    assert shown.count("<ol>") == shown.count("<ul>") == 1
    assert shown.count("<li>") == 4
    assert "<code>a.b</code>" in shown
    assert "<em>line</em>" in shown
    assert "best_val &lt;b&gt;" in shown
