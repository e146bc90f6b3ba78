import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fake_database import FakeDatabase
from study_cells import tables

from bench.report import page
from bench.report import report as building
from bench.report.report import Report, Request, build
from bench.reports.fedsheafhn import FedSheafHN

HOSTILE = "<script>alert(1)</script>\"' onerror=x & $\\frac{$ {{ 7 * 7 }} <img src=http://evil.example/x>"
VOID = {"meta", "img", "br", "link", "input"}

LOOKS_AT_FIGURES = True


def database(name: str = "fedavg") -> FakeDatabase:
    made = FakeDatabase()
    for seed in (0, 1):
        made.add("local", seed, [72, 70], curve=[[50, 60], [72, 70]], seconds_total=2.0)
        made.add(name, seed, [60, 62 + seed], seconds_total=3.0, bytes_up=10**6)
    made.add("flow", 0, None, state="failed", reason=f"broken {name}")
    return made


def report(out: Path, source: FakeDatabase | None = None) -> Report:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "usual", lambda grids: {})
        patch.setattr(FedSheafHN, "experiments", tables(FedSheafHN))
        return build(source or database(), Request(), {"fedsheafhn": FedSheafHN}, out)


class Tree(HTMLParser):
    """The elements in order, each with its attributes, its text and the names of those around it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[dict[str, Any]] = []
        self.elements: list[dict[str, Any]] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        inside = [element["tag"] for element in self.open]
        element = {"tag": tag, "attributes": dict(attrs), "text": "", "inside": inside}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element["text"] += data

    def all(self, *tags: str) -> list[dict[str, Any]]:
        return [element for element in self.elements if element["tag"] in tags]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    out = tmp_path_factory.mktemp("page")
    return report(out), out / page.NAME


@pytest.fixture(scope="module")
def tree(built: tuple[Report, Path]) -> Tree:
    return Tree(built[1].read_text(encoding="utf-8"))


def test_the_page_is_among_the_reports_files(built: tuple[Report, Path]) -> None:
    assert built[0].paths[-1] == built[1]
    assert all(path.is_file() for path in built[0].paths)


def test_every_table_and_figure_of_every_document_is_there(built: tuple[Report, Path], tree: Tree) -> None:
    expected = [
        [title, *(entry.text for entry in entries)]
        for document in built[0].documents
        for table in (*document.views, *document.details)
        for title, entries in table.rows
    ]
    found: list[list[str]] = []
    for element in tree.all("tr", "th", "td"):
        if "tbody" not in element["inside"]:
            continue
        if element["tag"] == "tr":
            found.append([])
        else:
            found[-1].append(element["text"])
    assert found == expected
    assert any(row[:2] == ["FedAvg", "61.25 ± 0.35"] for row in found)
    text = "".join(element["text"] for element in tree.all("body"))
    for document in built[0].documents:
        for line in (*document.caption, *document.notes):
            assert line in text
    drawn = {path.stem for path in built[0].paths if path.suffix == ".png"}
    assert {element["attributes"]["id"] for element in tree.all("figure")} == drawn


def test_places_and_verdicts_are_marked(tree: Tree) -> None:
    assert "71.00 ± 0.00" in {element["text"] for element in tree.all("strong")}
    assert "61.25 ± 0.35" in {element["text"] for element in tree.all("u")}
    marked = {(element["attributes"].get("class"), element["text"]) for element in tree.all("td")}
    assert ("reproduced", "-0.26 reproduced") in marked  # Local, published 71.26
    assert ("below", "-11.13 below") in marked  # FedAvg, published 72.38 ± 2.45


def test_nothing_outside_the_file_is_asked_for(built: tuple[Report, Path], tree: Tree) -> None:
    assert not tree.all("script", "link", "iframe", "object", "embed", "base", "form")
    for element in tree.elements:
        for name, value in element["attributes"].items():
            assert not name.startswith("on")
            if name in ("src", "href", "srcset", "action"):
                assert value.startswith(("#", "data:image/png;base64,"))
    style = tree.all("style")[0]["text"]
    assert "url(" not in style
    assert "@import" not in style
    assert "http://" not in built[1].read_text(encoding="utf-8")
    (policy,) = [e["attributes"] for e in tree.all("meta") if "http-equiv" in e["attributes"]]
    assert policy["content"].startswith("default-src 'none'; img-src data:")


def test_the_contents_lead_everywhere(built: tuple[Report, Path], tree: Tree) -> None:
    ids = [element["attributes"]["id"] for element in tree.elements if "id" in element["attributes"]]
    assert len(ids) == len(set(ids))
    links = {element["attributes"]["href"].removeprefix("#") for element in tree.all("a")}
    assert links == {"content", *(document.name for document in built[0].documents)}
    named = {element["attributes"].get("aria-labelledby") for element in tree.elements} - {None}
    assert links | named <= set(ids)


def test_headings_tables_and_images_are_accessible(tree: Tree) -> None:
    levels = [int(element["tag"][1]) for element in tree.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert set(levels) == {1, 2, 3, 4, 5}
    assert {element["attributes"].get("scope") for element in tree.all("th")} == {"col", "colgroup", "row"}
    captions = [element["text"] for element in tree.all("figcaption")]
    assert [element["attributes"]["alt"] for element in tree.all("img")] == captions
    assert all(captions)


@pytest.mark.filterwarnings("ignore:constrained_layout not applied")  # the name leaves no room to draw
def test_hostile_names_stay_text(tmp_path: Path) -> None:
    source = database(HOSTILE)
    report(tmp_path, source)
    text = (tmp_path / page.NAME).read_text(encoding="utf-8")
    tree = Tree(text)
    assert not tree.all("script")
    assert "<img src=http" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert HOSTILE in {element["text"] for element in tree.all("th")}
    assert any(f"broken {HOSTILE}" in element["text"] for element in tree.all("li"))
    assert {frozenset(e["attributes"]) for e in tree.all("img")} == {frozenset({"src", "width", "alt"})}


def test_heavy_figures_are_embedded_smaller_and_none_is_left_out(
    built: tuple[Report, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "HEAVY", 0)
    report(tmp_path)
    small, large = (
        Tree(path.read_text(encoding="utf-8")).all("img") for path in (tmp_path / page.NAME, built[1])
    )
    assert [e["attributes"]["alt"] for e in small] == [e["attributes"]["alt"] for e in large]
    for less, more in zip(small, large, strict=True):
        assert len(less["attributes"]["src"]) < 0.7 * len(more["attributes"]["src"])
        width = int(more["attributes"]["width"])
        assert int(less["attributes"]["width"]) == pytest.approx(width, abs=2)


@pytest.mark.slow
def test_another_process_writes_the_same_bytes(built: tuple[Report, Path], tmp_path: Path) -> None:
    script = "import sys, pathlib, test_page; test_page.report(pathlib.Path(sys.argv[1]))"
    here = Path(__file__).parent
    folders = os.pathsep.join([str(here), str(here.parent)])
    environment = {**os.environ, "PYTHONPATH": folders, "PYTHONHASHSEED": "77"}
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], env=environment, check=True)
    mine, other = (
        {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
        for folder in (built[1].parent, tmp_path)
    )
    assert mine == other


CHROMIUM = next((found for name in ("chromium", "chromium-browser") if (found := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_the_page_passes_axe(built: tuple[Report, Path], browser: Any, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    opened = browser.new_page(color_scheme=scheme)
    asked: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(built[1].as_uri())
    opened.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    found = axe.Axe().run(opened)
    assert [(each["id"], each["impact"]) for each in found.response["violations"]] == []
    assert {url for url in asked if not url.startswith("data:")} == {built[1].as_uri()}
    opened.close()


def test_wide_tables_scroll_under_a_column_that_stays(built: tuple[Report, Path], browser: Any) -> None:
    opened = browser.new_page(viewport={"width": 375, "height": 800})
    opened.goto(built[1].as_uri())
    assert opened.evaluate("document.documentElement.scrollWidth") <= 375
    first, second = (
        opened.evaluate(
            """left => {
                const boxes = [...document.querySelectorAll('.wide')];
                    const box = boxes.find(each => each.scrollWidth > each.clientWidth + 150);
                box.scrollLeft = left;
                const at = query => box.querySelector(query).getBoundingClientRect().left;
                return [at('tbody th'), at('tbody td'), at('thead th')];
            }""",
            left,
        )
        for left in (0, 150)
    )
    assert (second[0], second[2]) == (first[0], first[2])
    assert second[1] == first[1] - 150
    opened.close()


def test_printing_opens_what_is_folded(built: tuple[Report, Path], browser: Any) -> None:
    opened = browser.new_page()
    opened.goto(built[1].as_uri())
    shown = "document.querySelector('details table').checkVisibility({contentVisibilityAuto: true})"
    height = "document.querySelector('details').getBoundingClientRect().height"
    folded = opened.evaluate(height)
    opened.emulate_media(media="print")
    assert opened.evaluate(height) > 2 * folded
    assert opened.evaluate(shown)
    opened.close()


def test_names_in_the_page_are_those_of_the_template(built: tuple[Report, Path]) -> None:
    text = built[1].read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>\n")
    assert not re.search(r"{{|{%", re.sub(r"base64,[^\"]+", "", text))
