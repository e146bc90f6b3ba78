"""Reports and leaderboard in a real browser: what people see and do. Skipped where there is no Chromium."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
from site_database import BASES, EVIL, REASON, TEN, TWENTY, means, spec

from bench.site.folder import INDEX, board_page, dataset_page, method_page, run_page

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: chromium is not on the path")

BOARD = board_page("tiny", "cora")
RUN = run_page(spec(TEN, "fedavg", 2).hash)
PAGES = (INDEX, BOARD, method_page("fedsheafhn"), method_page(EVIL), dataset_page("cora"), RUN)
DOCUMENTS = (INDEX, *(f"toy/{name}/{INDEX}" for name in ("table1", "ranking", "reproduction")))
NARROW = {"viewport": {"width": 360, "height": 740}}
WIDE = {"viewport": {"width": 1280, "height": 900}}

Browser = Any
Tab = Any


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def tab(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Tab]:
    """A tab in which nothing may fail: no error on the console, no request but for the site's own files.

    Parametrised indirectly with options of a browser context.
    """
    context = browser.new_context(**getattr(request, "param", {}))
    made = context.new_page()
    wrong: list[str] = []
    made.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on(
        "requestfailed",  # what is on its way when a page is left, is given up
        lambda asked: None if asked.failure == "net::ERR_ABORTED" else wrong.append(f"failed: {asked.url}"),
    )
    made.on(
        "request",
        lambda asked: (
            None
            if asked.url.startswith(("file:", "data:", "http://127.0.0.1:"))
            else wrong.append(f"external: {asked.url}")
        ),
    )
    yield made
    assert wrong == []
    assert made.evaluate("window.hacked") is None
    context.close()


def address(site: Path, page: str) -> str:
    name, _, place = page.partition("#")
    return (site / name).as_uri() + (f"#{place}" if place else "")


def visit(tab: Tab, site: Path, page: str) -> None:
    """Open a page, from nowhere: from one place of a document to another nothing is loaded."""
    tab.goto("about:blank")
    tab.goto(address(site, page))
    if page.startswith(BOARD):
        tab.wait_for_selector("#board thead button")
    if page.startswith("run.html"):
        tab.wait_for_selector("text=Make it again")


def shown(tab: Tab, column: int) -> list[str]:
    """A column of the board as it is shown."""
    found: list[str] = tab.locator(f"#board tr.row:visible > *:nth-child({column})").all_inner_texts()
    return [text.strip() for text in found]


def heads(tab: Tab) -> list[str]:
    found: list[str] = tab.locator("#board thead th").all_inner_texts()
    return [text.strip() for text in found]


def titled(tab: Tab, text: str) -> None:
    """Wait for a page with this heading."""
    sync_api.expect(tab.locator("h1")).to_have_text(text, use_inner_text=True, timeout=30_000)


def test_from_the_front_page_to_a_run(site: Path, tab: Tab) -> None:
    visit(tab, site, INDEX)
    tab.locator(".boards").get_by_role("link", name="Cora", exact=True).click()
    titled(tab, "Cora in the study Tiny <study>")
    tab.locator("#board").get_by_role("link", name="FedAvg", exact=True).first.click()
    titled(tab, "FedAvg fedavg")
    tab.locator("tr:target .runs").get_by_role("link", name="2", exact=True).click()
    tab.wait_for_url(address(site, RUN))
    tab.wait_for_selector("text=Make it again")
    assert tab.title() == "FedAvg: cora, non-overlapping, 10 clients, seed 2 · bench leaderboard"
    rows = [row.split("\t") for row in tab.locator("table").first.inner_text().splitlines()]
    assert [row[0].startswith("✓") for row in rows[1:]] == [True] + 15 * [False]
    assert [row[0].split(", ")[1] for row in rows[1:]] == ["test"] * 8 + ["validation"] * 8
    counts = [75 + client for client in range(10)]
    wanted = [f"{mean(counts):.2f}", f"{mean(counts):.2f}", f"{stdev(counts):.2f}", "75.00"]
    assert rows[1] == ["✓ trained, test, best_val", *wanted]
    assert tab.locator(".path a").last.get_attribute("href") == dataset_page("cora")
    assert tab.locator("pre").first.inner_text().startswith("bench sweep -d cora")
    tab.get_by_role("link", name="Cora · Table 1").click()
    assert tab.locator("#board tr:target a").first.inner_text() == "FedAvg"


def test_a_column_sorts_within_each_ranking(site: Path, tab: Tab) -> None:
    visit(tab, site, BOARD)
    place = heads(tab).index("Measured") + 1
    tasks = [sorted(mean(means(*cell)) for cell in BASES if cell[0] == column) for column in (TEN, TWENTY)]
    button = tab.locator(f"#board thead th:nth-child({place}) button")
    for direction in ("descending", "ascending"):
        button.click()
        tab.wait_for_selector(f"#board thead th:nth-child({place})[aria-sort={direction}]")
        texts = [text.split(" ")[0] for text in shown(tab, place)]
        ordered = [task[::-1] if direction == "descending" else task for task in tasks]
        ten, twenty = ([f"{value:.2f}" for value in task] for task in ordered)
        assert texts == [*ten, "–", "–", *twenty, "–", "–", "–"]  # none comes last in either direction


def test_the_board_can_be_used_by_keyboard(site: Path, tab: Tab) -> None:
    visit(tab, site, BOARD)
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.innerText") == "Skip to content"
    tab.keyboard.press("Enter")
    tab.wait_for_function("document.activeElement.id === 'main'")
    text = ""
    while not text.startswith("Measured"):
        tab.keyboard.press("Tab")
        text = tab.evaluate("document.activeElement.innerText")
        assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", text
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#board thead th[aria-sort=descending]")


OPEN = "document.querySelectorAll('details').forEach(each => each.open = true)"


@pytest.mark.parametrize("tab", [NARROW, WIDE], indirect=True, ids=["360", "1280"])
def test_no_page_is_wider_than_the_screen(site: Path, wide_report: Path, tab: Tab) -> None:
    for folder, pages in ((site, PAGES), (wide_report, DOCUMENTS)):
        for page in pages:
            visit(tab, folder, page)
            tab.evaluate(OPEN)
            wide = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide == 0, page


@pytest.mark.slow
@pytest.mark.parametrize(
    "tab", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True, ids=["light", "dark"]
)
def test_no_page_has_a_known_barrier(site: Path, small_report: Path, tab: Tab) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for folder, pages in ((site, PAGES), (small_report, DOCUMENTS)):
        for page in pages:
            visit(tab, folder, page)
            tab.evaluate(OPEN)
            found = axe.run(tab, options={"preload": False})
            assert found.violations_count == 0, f"{page}: {found.generate_report()}"


def test_hostile_texts_are_texts(site: Path, tab: Tab) -> None:
    for page in PAGES:
        visit(tab, site, page)
        assert tab.locator("img").count() == 0, page
    visit(tab, site, run_page(spec(TEN, "fedprox", 0).hash))
    said = tab.locator("dl").first.inner_text()
    assert all(part in said for part in ("failed", *REASON.split("\u2028")))
    visit(tab, site, run_page(spec(TEN, EVIL, 0).hash))
    assert tab.locator("img").count() == 0
    line = tab.locator("pre").first.inner_text()
    assert line.startswith(f"bench sweep -d cora -s non-overlapping -k 10 -m '{EVIL}' --seed 0 ")
    assert json.loads(tab.locator("pre").last.inner_text())["note"] == EVIL


@pytest.mark.parametrize(("tab", "fits"), [(NARROW, False), (WIDE, True)], indirect=["tab"])
def test_a_board_fits_its_screen(site: Path, tab: Tab, fits: bool) -> None:
    visit(tab, site, BOARD)
    region = "document.querySelector('[aria-label=Leaderboard]')"
    assert tab.evaluate(f"{region}.scrollWidth == {region}.clientWidth") == fits
    head = tab.locator("#board tr.head th > *").first  # stays where the board moves sideways
    for place in (0, 200):
        tab.evaluate(f"{region}.scrollLeft = {place}")
        box = head.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= tab.viewport_size["width"]


@pytest.mark.parametrize("tab", [NARROW], indirect=True)
def test_a_number_has_its_seeds_and_its_grade_below_it_on_a_narrow_screen(site: Path, tab: Tab) -> None:
    visit(tab, site, BOARD)
    row = tab.locator("#board tr.row", has=tab.get_by_role("link", name="FedAvg", exact=True)).first
    below = "element => getComputedStyle(element, '::after').content"
    assert row.get_attribute("data-verdict") in row.locator("[data-grade]").evaluate(below)
    assert "n 3" in row.locator(".std").evaluate(below)
    box = row.locator("[data-grade]").bounding_box()
    assert box["x"] + box["width"] <= 360


def test_a_run_that_is_not_there_is_said(site: Path, tab: Tab) -> None:
    tab.goto(address(site, f"{RUN[:-62]}{'f' * 62}"))  # a file with runs, none of them this one
    tab.wait_for_selector("text=No run with the spec hash")
    tab.goto(address(site, "run.html#<img>"))
    titled(tab, "A run")
