"""The report's page: what stands on it, that it asks for nothing else, and how it looks in a browser."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from stored_runs import CORA, MemoryStore
from study_cells import report_of
from toy_study import ToyStudy

from bench.report.document import Report
from bench.report.grades import GRADES
from bench.site.folder import INDEX, REPORT
from bench.studies.published import published

HOSTILE = "<script>alert(1)</script>\"' onerror=x & $\\frac{$ {{ 7 * 7 }} <img src=http://evil.example/x>"
VOID = {"meta", "img", "br", "link", "input", "path", "circle", "line"}
INSIDE = "toy_table1"


def database(name: str = "fedavg") -> MemoryStore:
    source = MemoryStore()
    for seed in (0, 1, 2):
        source.add("local", seed, [[50, 60], [72, 70]], seconds={"total": 2.0})
        source.add(name, seed, [60, 62 + seed], bytes_up=10**6, seconds={"total": 3.0})
    source.add("flow", 0, None, state="failed", reason=f"broken {name}")
    return source


def report(out: Path, source: MemoryStore | None = None) -> Report:
    return report_of(source or database(), out)


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
        element = {"tag": tag, "attributes": dict(attrs), "text": "", "inside": inside, "parts": []}
        self.elements.append(element)
        for around in self.open:
            around["parts"].append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop()["tag"] == tag

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element["text"] += data

    def all(self, *tags: str) -> list[dict[str, Any]]:
        return [element for element in self.elements if element["tag"] in tags]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    out = tmp_path_factory.mktemp("page")
    return report(out), out


def trees_of(out: Path) -> dict[str, Tree]:
    """Every page by its place in the report."""
    return {
        path.relative_to(out).as_posix(): Tree(path.read_text(encoding="utf-8"))
        for path in sorted(out.rglob(INDEX))
    }


@pytest.fixture(scope="module")
def trees(built: tuple[Report, Path]) -> dict[str, Tree]:
    return trees_of(built[1])


@pytest.fixture(scope="module")
def tree(trees: dict[str, Tree]) -> Tree:
    """The front page."""
    return trees[INDEX]


def article(trees: dict[str, Tree], name: str) -> dict[str, Any]:
    (article,) = trees[f"{name.replace('_', '/', 1)}/{INDEX}"].all("article")
    assert article["attributes"]["id"] == name
    return article


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    """As many columns, protocols, settings and long words as the shipped results have."""
    source = MemoryStore()
    columns = [("cora", 10), ("cora", 20), ("citeseer", 10), ("citeseer", 20)]
    columns += [("pubmed", 10), ("computers", 10), ("photo", 10)]
    for place, (dataset, clients) in enumerate(columns):
        protocol = CORA.model_copy(update={"rounds": 100 + 10 * place, "local_epochs": 1 + place})
        for seed, method in product((0, 1, 2), ("local", "fedavg", "fedprox", "flow")):
            where = {
                "dataset": dataset,
                "clients": clients,
                "partition_hash": f"{place:08d}{method == 'flow'}",
            }
            part = protocol.model_copy(update={"participation": 0.2})
            for used in (protocol, part) if dataset == "cora" else (protocol,):
                source.add(method, seed, [[50, 60], [97, 93]], protocol=used, **where)
    out = tmp_path_factory.mktemp("wide")
    return report(out, source), out


def parts(element: dict[str, Any], tag: str, css: str = "") -> list[dict[str, Any]]:
    return [
        part
        for part in element["parts"]
        if part["tag"] == tag and css in ["", *(part["attributes"].get("class") or "").split()]
    ]


def unbroken(text: str) -> str:
    """A text of the page with the spaces of its source."""
    return text.strip().replace("\xa0", " ")


def test_numbers_on_the_page_are_those_of_the_frame(
    built: tuple[Report, Path], trees: dict[str, Tree]
) -> None:
    cells = pd.read_csv(built[1] / "cells.csv").query("table == 'Table 1' and clients == 10 and n > 0")
    assert len(cells) == 3  # FedAvg once more as received, with fine-tuning
    main = {}
    for row in parts(article(trees, "toy_table1"), "tr"):
        heads, values = parts(row, "th"), parts(row, "td")
        if heads and len(values) == 1:  # the main table: one column was run
            main.setdefault(heads[0]["text"], values[0])
    for cell in cells[cells["dataset"] == "cora"].itertuples():
        shown = {
            css: [part["text"] for part in parts(main[cell.line], "span", css)]
            for css in ("published", "grade")
        }
        assert main[cell.line]["text"].startswith(f"{cell.mean:.2f} ± {cell.std:.2f}")
        if pd.notna(cell.published_mean):
            assert shown["published"] == [f"{cell.published_mean:.2f} ± {cell.published_std:.2f}"]
            assert f"{cell.difference:+.2f} {cell.verdict}" in shown["grade"][0]
            grade = GRADES[cell.verdict]
            assert parts(main[cell.line], "span", grade.css)
            assert grade.symbol in shown["grade"][0]


def test_lost_and_missing_cells_say_so_beside_what_was_published(trees: dict[str, Tree]) -> None:
    rows = [row for row in parts(article(trees, "toy_table1"), "tr") if parts(row, "th")]
    (flow,) = [row for row in rows if parts(row, "th")[0]["text"] == "Flow" and len(parts(row, "td")) == 1]
    assert "failed" in flow["text"]
    assert parts(flow, "span", "published")
    assert any("broken fedavg" in item["text"] for item in parts(article(trees, "toy_table1"), "li"))


def test_a_study_begins_with_two_sentences_and_its_verdicts(built: tuple[Report, Path], tree: Tree) -> None:
    (part,) = built[0].parts
    (section,) = tree.all("section")
    (headline,) = [unbroken(paragraph["text"]) for paragraph in parts(section, "p", "headline")]
    assert headline == unbroken(" ".join(part.sentences[:2]))
    assert len(re.findall(r"\.(?= |$)", headline)) == 2
    assert not re.search("[;:]", headline)
    assert headline.startswith("Local has the highest mean")  # 71 against 61, 61.5 and 62
    cells = pd.read_csv(built[1] / "cells.csv")
    counts = cells.query("table in ('Table 1', 'Table 2') and n > 0 and published_mean == published_mean")
    (final, _) = part.scores
    assert final.counts == tuple((name, n) for name in GRADES if (n := (counts["verdict"] == name).sum()))
    assert final.published == len(published("toy", ToyStudy.published))
    assert f"{final.measured} of {final.published}" in parts(section, "li")[0]["text"]
    marks = [cell for table in parts(section, "table", "map") for cell in parts(table, "td")]
    assert (
        sum(any(part["text"] in GRADES for part in parts(cell, "span")) for cell in marks) == final.measured
    )


def test_captions_say_what_they_are_to_and_everything_else_is_folded(
    built: tuple[Report, Path], trees: dict[str, Tree]
) -> None:
    for document in built[0].documents:
        inside = article(trees, document.key)
        (caption,) = parts(inside, "div", "caption")
        assert unbroken(caption["text"]) == " ".join(document.caption)
        assert 1 <= len(document.caption) <= 4
        folded = [item for item in parts(inside, "li") if "details" in item["inside"]]
        assert {unbroken(item["text"]) for item in folded} == {*document.notes, *document.fine_print}
    caption = article(trees, "toy_table1")["text"]
    assert "100 rounds, 3 local epochs, split 40/30/30, partition seed 123" in caption
    assert "Seeds: 0-2" in caption


def test_every_figure_is_there_and_lies_beside_its_page(
    built: tuple[Report, Path], trees: dict[str, Tree]
) -> None:
    drawn = {path.relative_to(built[1]).as_posix() for path in built[1].rglob("*.png")}
    assert "toy/table1/convergence.png" in drawn
    shown = set()
    for place, page in trees.items():
        folder = Path(place).parent
        images = [image["attributes"] for image in page.all("img")]
        links = {element["attributes"]["href"] for element in page.all("a")}
        shown |= {(folder / image["src"]).as_posix() for image in images}
        assert {(image["width"], image["height"]) for image in images} <= {("64", "64")}  # undrawn
        assert len({image["alt"] for image in images}) == len(images)
        assert {
            image["src"].removesuffix("png") + kind for image in images for kind in ("png", "csv")
        } <= links
    assert shown == drawn


def test_figures_of_a_kind_share_one_caption(wide: tuple[Report, Path]) -> None:
    inside = article(trees_of(wide[1]), "toy_table1")
    (document,) = [each for each in wide[0].documents if each.key == "toy_table1"]
    captions = [figure.caption for figure in document.figures]
    texts = [unbroken(paragraph["text"]) for paragraph in parts(inside, "p")]
    assert len(set(captions)) < len(captions)
    assert {texts.count(caption) for caption in captions} == {1}


def test_a_number_is_not_parted_from_its_percent_sign(built: tuple[Report, Path]) -> None:
    texts = [path.read_text(encoding="utf-8") for path in built[1].rglob(INDEX)]
    assert any(re.search(r"\d\xa0%", text) for text in texts)
    assert not any(re.search(r"\d\s* %", text) for text in texts)


def test_every_number_has_its_interval_margin_and_tolerance(
    built: tuple[Report, Path], trees: dict[str, Tree]
) -> None:
    cells = pd.read_csv(built[1] / "cells.csv").query("table == 'Table 1' and method == 'local' and n > 0")
    (cell,) = cells.itertuples()
    assert cell.margin > 0
    texts = [[part["text"] for part in parts(row, "td")] for row in parts(article(trees, INSIDE), "tr")]
    heads = next(row for row in parts(article(trees, INSIDE), "tr") if "Tolerance" in row["text"])
    names = [unbroken(part["text"]) for part in parts(heads, "th")][1:]
    rows = [dict(zip(names, row, strict=True)) for row in texts if len(row) == len(names)]
    row = next(row for row in rows if row["Measured"].startswith(f"{cell.mean:.2f}"))
    assert row["90 % interval of it"] == f"{cell.low_difference:+.2f} to {cell.high_difference:+.2f}"
    assert (row["Margin"], row["Tolerance"]) == (f"{cell.margin:.2f}", f"{cell.tolerance:.2f}")


def test_a_grade_looks_the_same_in_every_document(trees: dict[str, Tree]) -> None:
    heads = parts(article(trees, "toy_reproduction"), "th")
    for name in ("reproduced", "above"):
        chips = [part for head in heads for part in parts(head, "span", GRADES[name].css)]
        assert {chip["text"].split(" ", 1)[1] for chip in chips} == {name}


def test_nothing_outside_the_folder_is_asked_for(built: tuple[Report, Path], trees: dict[str, Tree]) -> None:
    for place, page in trees.items():
        assert not page.all("script", "iframe", "object", "embed", "base", "form")
        folder = (built[1] / place).parent
        for element in page.elements:
            for name, value in element["attributes"].items():
                assert not name.startswith("on")
                if name in ("src", "href", "srcset", "action"):
                    file, _, anchor = value.partition("#")
                    target = (
                        (folder / file).resolve().relative_to(built[1].resolve()) if file else Path(place)
                    )
                    assert (built[1] / target).is_file()
                    assert not anchor or anchor in ids(trees[target.as_posix()])
        (policy,) = [e["attributes"] for e in page.all("meta") if "http-equiv" in e["attributes"]]
        assert policy["content"].startswith("default-src 'none';")
    style = (built[1] / "assets" / "site.css").read_text(encoding="utf-8")
    assert "url(" not in style
    assert "@import" not in style


def ids(tree: Tree) -> list[str]:
    return [element["attributes"]["id"] for element in tree.elements if "id" in element["attributes"]]


def test_the_front_page_leads_to_every_document_and_back(
    built: tuple[Report, Path], trees: dict[str, Tree]
) -> None:
    front = trees[INDEX]
    entries = {item["attributes"]["id"]: item for item in front.all("li") if "id" in item["attributes"]}
    documents = {document.key: document for document in built[0].documents}
    assert entries.keys() == documents.keys()
    assert len(trees) == len(documents) + 1
    for name, entry in entries.items():
        place = parts(entry, "a")[0]["attributes"]["href"]
        assert documents[name].summary in unbroken(entry["text"])
        assert not any(tag == "details" for tag in entry["inside"])
        back = {link["attributes"]["href"] for link in trees[place].all("a")}
        assert {"../../index.html", "../../index.html#toy"} <= back
    for page in trees.values():
        assert len(ids(page)) == len(set(ids(page)))
        named = {element["attributes"].get("aria-labelledby") for element in page.elements} - {None}
        assert named <= set(ids(page))


def test_headings_and_tables_are_accessible(trees: dict[str, Tree]) -> None:
    for page in trees.values():
        levels = [int(element["tag"][1]) for element in page.all("h1", "h2", "h3", "h4", "h5", "h6")]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        assert {element["attributes"].get("scope") for element in page.all("th")} <= {
            "col",
            "colgroup",
            "row",
        }


@pytest.mark.filterwarnings("ignore:constrained_layout not applied")  # the name leaves no room to draw
def test_hostile_names_stay_text(tmp_path: Path) -> None:
    report(tmp_path, database(HOSTILE))
    text = "".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob(INDEX))
    elements = [element for tree in trees_of(tmp_path).values() for element in tree.elements]
    assert not any(element["tag"] == "script" for element in elements)
    assert "<img src=http" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert HOSTILE in {element["text"] for element in elements if element["tag"] == "th"}
    assert any(f"broken {HOSTILE}" in element["text"] for element in elements if element["tag"] == "li")
    attributes = {frozenset(element["attributes"]) for element in elements if element["tag"] == "img"}
    assert attributes == {frozenset({"src", "width", "height", "loading", "alt"})}


@pytest.mark.slow
def test_another_process_writes_the_same_bytes(built: tuple[Report, Path], tmp_path: Path) -> None:
    script = (
        "import sys, pathlib, test_documents; from bench.figures import drawing; "
        "from matplotlib.figure import Figure; drawing.draw = lambda figure: Figure(figsize=(1, 1)); "
        "test_documents.report(pathlib.Path(sys.argv[1]))"
    )
    here = Path(__file__).parent
    folders = os.pathsep.join([str(here), str(here.parent)])
    environment = {**os.environ, "PYTHONPATH": folders, "PYTHONHASHSEED": "77"}
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], env=environment, check=True)
    mine, other = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (built[1], tmp_path)
    )
    assert mine.keys() == other.keys()
    assert Path(REPORT) in mine
    assert [path for path in mine if mine[path] != other[path]] == []


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


PLACES = [INDEX, f"toy/table1/{INDEX}", f"toy/ranking/{INDEX}", f"toy/reproduction/{INDEX}"]
"""The front page and documents of different kinds."""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_the_pages_pass_axe(built: tuple[Report, Path], browser: Any, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    opened = browser.new_page(color_scheme=scheme)
    asked: list[str] = []
    refused: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("console", lambda message: refused.append(message.text))
    for place in PLACES:
        opened.goto((built[1] / place).as_uri())
        opened.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        violations = axe.Axe().run(opened, options={"preload": False}).response["violations"]
        assert [(each["id"], each["impact"]) for each in violations] == []
    assert {url for url in asked if not url.startswith(built[1].as_uri())} == set()
    assert refused == []
    opened.close()


def test_no_page_is_wider_than_the_screen(wide: tuple[Report, Path], browser: Any) -> None:
    for width in (1280, 360):
        opened = browser.new_page(viewport={"width": width, "height": 800})
        for place in PLACES:
            opened.goto((wide[1] / place).as_uri())
            opened.evaluate(
                "document.querySelectorAll('main > details, section > details').forEach(e => e.open = true)"
            )
            assert opened.evaluate("document.documentElement.scrollWidth") <= width
        opened.close()


def test_captions_are_short_and_names_of_rows_have_room_for_a_word(
    wide: tuple[Report, Path], browser: Any
) -> None:
    opened = browser.new_page(viewport={"width": 1280, "height": 800})
    for place in trees_of(wide[1]).keys() - {INDEX}:
        opened.goto((wide[1] / place).as_uri())
        heads = "[...document.querySelectorAll('article tbody th')].filter(head => head.checkVisibility())"
        assert opened.evaluate(f"Math.min(...{heads}.map(head => head.offsetWidth))") >= 8 * 16
        (lines,) = opened.evaluate(
            """[...document.querySelectorAll('.caption')].map(box => [...box.querySelectorAll('p')].reduce(
                (sum, line) => sum + line.getBoundingClientRect().height / parseFloat(
                    getComputedStyle(line).lineHeight), 0))"""
        )
        assert round(lines) <= 4
    opened.close()


def test_the_best_methods_dot_is_not_covered_by_its_name(built: tuple[Report, Path], browser: Any) -> None:
    for width in (1280, 360):
        opened = browser.new_page(viewport={"width": width, "height": 800})
        opened.goto((built[1] / INDEX).as_uri())
        assert opened.evaluate(
            """(() => {const row = document.querySelector('.ranks tbody tr');
            return row.querySelector('.dot').getBoundingClientRect().left
                >= row.querySelector('th').getBoundingClientRect().right})()"""
        )
        opened.close()


def test_a_long_name_does_not_run_over_what_stands_beside_it(
    built: tuple[Report, Path], browser: Any
) -> None:
    opened = browser.new_page(viewport={"width": 360, "height": 800})
    opened.goto((built[1] / INDEX).as_uri())
    names = "[...document.querySelectorAll('.ranks tbody th')]"
    assert opened.evaluate(f"{names}.map(name => name.textContent = 'FedHGN w/o HC, released').length") > 1
    assert opened.evaluate(f"{names}.filter(name => name.scrollWidth > name.clientWidth).length") == 0
    opened.close()


def test_printing_opens_what_is_folded(built: tuple[Report, Path], browser: Any) -> None:
    opened = browser.new_page()
    opened.goto((built[1] / PLACES[1]).as_uri())
    height = "document.querySelector('article details').getBoundingClientRect().height"
    folded = opened.evaluate(height)
    opened.emulate_media(media="print")
    assert opened.evaluate(height) > 2 * folded
    opened.close()


def test_names_in_the_page_are_those_of_the_template(built: tuple[Report, Path]) -> None:
    for path in built[1].rglob(INDEX):
        text = path.read_text(encoding="utf-8")
        assert text.startswith("<!doctype html>\n")
        assert not re.search(r"{{|{%", text)
