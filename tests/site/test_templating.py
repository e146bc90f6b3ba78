"""What the pages of reports and leaderboard share."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pandas as pd
import pytest
from pages import Page

from bench.report.document import MARKS, css_class, symbol
from bench.site.templating import Pages

TABLE = pd.DataFrame(
    {
        "method": ["a", "b", "c", "d", "e"],
        "title": ["A", "B & B", "C", "D", "E"],
        "rank": [1.0, 2.5, 5.0, 1.5, 3.0],
        "low": [1.0, 2.0, 4.0, None, None],
        "high": [1.5, 3.0, 5.0, None, None],
        "group": pd.array([1, 1, 2, None, None], "Int64"),
        "tasks": [4, 4, 4, 2, 2],
        "minus_baseline": [3.25, -0.01, 0.0, None, 1.0],
    }
)


def test_a_picture_of_ranks_says_what_the_table_says(tmp_path: Path) -> None:
    ranking = SimpleNamespace(ranks=TABLE.assign(planned=6), task_count=4, baseline_title="B")
    template = Pages(tmp_path).templates.from_string(
        '{% from "elements.html.j2" import ranks with context %}{{ ranks("Ranks", ranking) }}'
    )
    lines = template.render(ranking=ranking).partition("<tbody>")[2].split("<tr")[1:]
    # methods of fewer tasks stand below a line, with their number; those of group 1 are filled
    assert ["rule" in row.partition(">")[0] for row in lines] == [False, False, False, True, False]
    assert [re.findall(r"(\d)/6", row) for row in lines] == [["4"], ["4"], ["4"], ["2"], ["2"]]
    assert ['class="dot first"' in row for row in lines] == [True, True, False, False, False]
    assert "-0.0" not in lines[1], "what is printed as zero has no sign of a loss"
    places = [float(row.partition('cx="')[2].partition("%")[0]) for row in lines]
    first, last = places[0], places[2]  # of rank 1 and 5
    assert 0 < first < last < 100
    assert places == pytest.approx([first + (last - first) * (rank - 1) / 4 for rank in TABLE["rank"]])


def test_a_grade_is_said_by_symbol_and_word_and_text_is_escaped(tmp_path: Path) -> None:
    assert len({symbol(name) for name in (*MARKS, "failed")}) == len(MARKS) + 1
    assert len({*MARKS.values()}) == len(MARKS)
    assert all(mark.isascii() for mark in MARKS.values())
    template = Pages(tmp_path).templates.from_string(
        '{% import "elements.html.j2" as elements %}{{ elements.grade("below", "<b> below") }}'
    )
    html = template.render()
    assert "&lt;b&gt; below" in html
    assert css_class("below") in html


def test_every_link_leads_to_a_file_and_a_place_of_the_folder(site: Path, small_report: Path) -> None:
    for folder in (site, small_report):
        pages = {path: Page(path) for path in folder.rglob("*.html")}
        for path, page in pages.items():
            assert path.read_text(encoding="utf-8").startswith("<!doctype html>\n")
            assert len(page.ids) == len(set(page.ids))
            metas = [part["attributes"] for part in page.all("meta")]
            assert len(next(meta["content"] for meta in metas if meta.get("name") == "description")) > 1
            (policy,) = [meta["content"] for meta in metas if "http-equiv" in meta]
            assert policy.startswith("default-src 'none'; script-src 'self';")
            assert not any(name.startswith("on") for part in page.elements for name in part["attributes"])
            assert not page.all("iframe", "object", "embed", "base", "style")
            assert not (folder == small_report and page.all("script"))
            for link in page.links:
                address, _, place = link.partition("#")
                if path.parent.name == "dataset" and link.startswith("https://"):
                    continue  # where the data are from
                target = (path.parent / unquote(address)).resolve() if address else path
                assert target.is_relative_to(folder)
                assert target.is_file(), link
                assert not place or target.name == "run.html" or place in pages[target].ids, link
        style = (folder / "assets" / "site.css").read_text(encoding="utf-8")
        assert "url(" not in style
        assert "@import" not in style


def test_a_number_is_not_parted_from_its_percent_sign(small_report: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in small_report.rglob("*.html")]
    assert any(re.search(r"\d\xa0%", text) for text in texts)
    assert not any(re.search(r"\d\s* %", text) for text in texts)


@pytest.mark.slow
def test_unchanged_results_give_the_same_bytes_in_another_process(
    site: Path, small_report: Path, database: str, tmp_path: Path
) -> None:
    script = (
        "import sys; from pathlib import Path; from site_database import build_site, runs_of_two; "
        "from study_cells import report_of; from bench.figures import drawing; "
        "from matplotlib.figure import Figure; drawing.draw = lambda figure: Figure(figsize=(1, 1)); "
        "build_site(sys.argv[1], Path(sys.argv[2])); report_of(runs_of_two(), Path(sys.argv[3]))"
    )
    again = {site: tmp_path / "site", small_report: tmp_path / "report"}
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parents[1])}
    words = [sys.executable, "-c", script, database, *map(str, again.values())]
    subprocess.run(words, env=environment, check=True, timeout=240)
    for folder, other in again.items():
        first, second = (
            {path.relative_to(one): path.read_bytes() for path in one.rglob("*") if path.is_file()}
            for one in (folder, other)
        )
        assert first.keys() == second.keys()
        assert [name for name in first if first[name] != second[name]] == []
