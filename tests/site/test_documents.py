"""The pages of a report: what stands on them, and where it is from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pages import Element, Page, parts
from site_database import runs_of_two
from study_cells import report_of
from toy_study import ToyStudy

from bench.report.document import MARKS, Part, css_class, symbol
from bench.site.folder import INDEX
from bench.studies.published import published

HOSTILE = "<script>alert(1)</script>\"' onerror=x & $\\frac{$ {{ 7 * 7 }} <img src=http://evil.example/x>"

Built = tuple[Part, Path]


def pages_of(out: Path) -> dict[str, Page]:
    """Every page by its place in the report."""
    return {path.relative_to(out).as_posix(): Page(path) for path in sorted(out.rglob(INDEX))}


@pytest.fixture(scope="module")
def pages(small_report: Path) -> dict[str, Page]:
    return pages_of(small_report)


def article(pages: dict[str, Page], name: str) -> Element:
    (article,) = pages[f"{name.replace('_', '/', 1)}/{INDEX}"].all("article")
    assert article["attributes"]["id"] == name
    return article


def unbroken(texts: Any) -> str:
    """Texts of a document as ``Page`` reads them."""
    return " ".join(texts).replace("\xa0", " ")


def test_numbers_on_the_page_are_those_of_the_frame(small_report: Path, pages: dict[str, Page]) -> None:
    cells = pd.read_csv(small_report / "cells.csv").query("table == 'Table 1' and clients == 10 and n > 0")
    assert len(cells) == 3  # FedAvg once more as received, with fine-tuning
    main: dict[str, Element] = {}
    for row in parts(article(pages, "toy_table1"), "tr"):
        heads, values = parts(row, "th"), parts(row, "td")
        if heads and len(values) == 1:  # the main table: one column was run
            main.setdefault(heads[0]["text"], values[0])
    for cell in cells[cells["dataset"] == "cora"].itertuples():
        assert main[cell.line]["text"].startswith(f"{cell.mean:.2f} ± {cell.std:.2f}")
        if pd.notna(cell.published_mean):
            (beside,) = parts(main[cell.line], "span", css="published")
            assert beside["text"] == f"{cell.published_mean:.2f} ± {cell.published_std:.2f}"
            (chip,) = parts(main[cell.line], "span", css="grade")
            assert f"{cell.difference:+.2f} {cell.verdict}" in chip["text"]
            assert symbol(cell.verdict) in chip["text"]
            assert css_class(cell.verdict) in chip["attributes"]["class"]
    flow = main["Flow"]
    assert "failed" in flow["text"]
    assert parts(flow, "span", css="published")
    assert any("broken fedavg" in item["text"] for item in parts(article(pages, "toy_table1"), "li"))


def test_a_study_begins_with_two_sentences_and_its_verdicts(built: Built, pages: dict[str, Page]) -> None:
    part = built[0]
    (section,) = pages[INDEX].all("section")
    (headline,) = [paragraph["text"] for paragraph in parts(section, "p", css="headline")]
    assert headline == unbroken(part.sentences[:2])
    assert headline.startswith("Local has the highest mean")  # 71 against 61, 61.5 and 62
    cells = pd.read_csv(built[1] / "cells.csv")
    counts = cells.query("table in ('Table 1', 'Table 2') and n > 0 and published_mean == published_mean")
    final = part.counts.iloc[0]
    measured = final[[*MARKS]]
    assert measured.tolist() == [(counts["verdict"] == name).sum() for name in MARKS]
    assert final.sum() == len(published("toy", ToyStudy.published))
    assert f"{measured.sum()} of {final.sum()}" in parts(section, "li")[0]["text"]
    marks = [cell for table in parts(section, "table", css="map") for cell in parts(table, "td")]
    marked = [any(part["text"] in MARKS for part in parts(cell, "span")) for cell in marks]
    assert sum(marked) == measured.sum()


def test_captions_say_what_they_are_to_and_everything_else_is_folded(
    built: Built, wide: Built, pages: dict[str, Page]
) -> None:
    for document in built[0].documents:
        inside = article(pages, document.key)
        (caption,) = parts(inside, "div", css="caption")
        assert caption["text"].strip() == unbroken(document.caption)
        folded = [item["text"] for item in parts(inside, "li") if "details" in item["inside"]]
        assert set(folded) == {unbroken([text]) for text in (*document.notes, *document.fine_print)}
    caption = article(pages, "toy_table1")["text"]
    assert "100 rounds, 3 local epochs, split 40/30/30, partition seed 123" in caption
    assert "Seeds: 0-2" in caption
    # figures of a kind share theirs
    (document,) = [each for each in wide[0].documents if each.key == "toy_table1"]
    captions = [unbroken([figure.caption]) for figure in document.figures]
    texts = [paragraph["text"] for paragraph in parts(article(pages_of(wide[1]), "toy_table1"), "p")]
    assert len(set(captions)) < len(captions)
    assert {texts.count(caption) for caption in captions} == {1}


def test_every_figure_is_there_and_lies_beside_its_page(small_report: Path, pages: dict[str, Page]) -> None:
    drawn = {path.relative_to(small_report).as_posix() for path in small_report.rglob("*.png")}
    assert "toy/table1/convergence.png" in drawn
    shown = set()
    for place, page in pages.items():
        images = [image["attributes"] for image in page.all("img")]
        shown |= {(Path(place).parent / image["src"]).as_posix() for image in images}
        assert {(image["width"], image["height"]) for image in images} <= {("64", "64")}  # undrawn
        assert len({image["alt"] for image in images}) == len(images)
        stems = [image["src"].removesuffix("png") for image in images]
        assert {stem + kind for stem in stems for kind in ("png", "csv")} <= set(page.links)
    assert shown == drawn


def test_the_front_page_leads_to_every_document_and_back(built: Built, pages: dict[str, Page]) -> None:
    entries = {
        item["attributes"]["id"]: item for item in pages[INDEX].all("li") if "id" in item["attributes"]
    }
    documents = {document.key: document for document in built[0].documents}
    assert entries.keys() == documents.keys()
    assert len(pages) == len(documents) + 1
    for name, entry in entries.items():
        assert unbroken([documents[name].summary]) in entry["text"]
        assert "details" not in entry["inside"]
        place = parts(entry, "a")[0]["attributes"]["href"]
        assert {"../../index.html", "../../index.html#toy"} <= set(pages[place].links)


@pytest.mark.filterwarnings("ignore:constrained_layout not applied")  # the name leaves no room to draw
def test_hostile_names_stay_text(tmp_path: Path) -> None:
    report_of(runs_of_two(HOSTILE), tmp_path)
    elements = [element for page in pages_of(tmp_path).values() for element in page.elements]
    assert not any(element["tag"] == "script" for element in elements)
    assert HOSTILE in {element["text"] for element in elements if element["tag"] == "th"}
    assert any(f"broken {HOSTILE}" in element["text"] for element in elements if element["tag"] == "li")
    attributes = {frozenset(element["attributes"]) for element in elements if element["tag"] == "img"}
    assert attributes == {frozenset({"src", "width", "height", "loading", "alt"})}
