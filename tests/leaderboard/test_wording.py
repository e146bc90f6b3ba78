"""What things are called, and in which order they are offered."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest
from pages import Page, records
from site_database import COMPETITORS, TEN, Tiny, done, fill

from bench.grids import Filters, expand, load_grid
from bench.leaderboard.addresses import board_page, method_page
from bench.leaderboard.build import build
from bench.pages.grades import GRADES
from bench.store import Context, open_store
from bench.studies.experiment import Comparison, Experiment, Line, Target
from bench.studies.settings import Column
from bench.studies.source import MergedSource

URL = "https://example.org/board"
PLANNED = expand(load_grid("fedpub_protocol"), Filters(seeds=(0,)))[0]


class Renamed(Tiny):
    """A table that knows a method by a name of its own, and an experiment set beside a paper."""

    experiments = (
        Experiment(
            "table1",
            "Table 1",
            (Comparison("Table 1", (Target("fedsheafhn_final", "Table 1"),)),),
            main=True,
            columns=(TEN, Column("cora", "non-overlapping", 5)),
        ),
        Experiment("others", "What others do", (Comparison("A paper"),), grid="fedpub_protocol"),
    )
    lines = (Line("local", "Local"), Line("fedavg", "Plain averaging"), Line("fedprox", "FedProx"))


@pytest.fixture(scope="module")
def renamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study's site, which is published at ``URL``."""
    folder = tmp_path_factory.mktemp("renamed")
    url = f"sqlite:///{folder / 'bench.db'}"
    fill(url)
    with open_store(url, create=True) as store:
        now = Context(datetime(2026, 1, 2), {}, "0.1", 1, 2, "source")
        assert PLANNED.spec
        store.save(PLANNED.spec, done(60, PLANNED.clients), now)
        build(MergedSource(store, []), {"tiny": Renamed}, COMPETITORS, folder / "site", url=URL)
    return folder / "site"


def options(page: Path, name: str) -> list[str]:
    """What a filter of a board offers, but for everything."""
    found = re.findall(rf'type="radio" name="{name}" value="([^"]+)"', page.read_text())
    assert len(found) > 1
    return found


def test_a_method_has_one_name_in_ranking_list_and_page(renamed: Path) -> None:
    page = Page(renamed / "index.html")
    ranking = records(next(table for table in page.tables if table[0][0] == "Method"))
    assert "Plain averaging" in {row["Method"] for row in ranking}
    assert Page(renamed / method_page("fedavg")).text.count("Plain averaging")
    listed = (renamed / "index.html").read_text().split('id="methods"')[1]
    assert f'<a href="{method_page("fedavg")}">Plain averaging</a>' in listed


def test_an_experiment_goes_by_its_title(renamed: Path) -> None:
    heads = [row[0] for row in Page(renamed / board_page("tiny", "cora")).tables[0] if "axis" in row[0]]
    assert any(head.startswith("What others do") for head in heads)
    assert not any(head.startswith("A paper") for head in heads)


def test_filters_offer_clients_by_number_and_grades_best_first(renamed: Path) -> None:
    page = renamed / board_page("tiny", "cora")
    clients = options(page, "clients")
    assert clients == sorted(clients, key=int)
    assert clients != sorted(clients)
    verdicts = options(page, "verdict")
    grades = [verdict for verdict in GRADES if verdict in verdicts]
    assert verdicts == [*grades, *sorted(set(verdicts) - set(grades))]
    assert len(grades) > 1


def test_pages_name_their_picture_and_where_that_is_known_their_address(renamed: Path, site: Path) -> None:
    for path in renamed.rglob("*.html"):
        text = path.read_text()
        named = dict(re.findall(r'property="og:(image|url)" content="([^"]+)"', text))
        assert named["url"] == f"{URL}/{path.relative_to(renamed).as_posix()}"
        assert (renamed / named["image"].removeprefix(f"{URL}/")).is_file()
    page = site / board_page("tiny", "cora")
    image = re.search(r'property="og:image" content="([^"]+)"', page.read_text())
    assert image
    assert (page.parent / image[1]).is_file()
    assert "og:url" not in page.read_text()
