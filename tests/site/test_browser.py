"""Reports and leaderboard in a real browser: what people see and do. Skipped where there is no Chromium."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
from site_database import BASES, EVIL, REASON, TEN, TWENTY, build_site, done, fill, means, spec
from stored_runs import save

from bench.site.folder import INDEX, board_page, dataset_page, method_page, run_page
from bench.spec import Protocol
from bench.store import open_store

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: chromium is not on the path")

BOARD = board_page("tiny", "cora")
RUN = run_page(spec(TEN, "fedavg", 2).hash)
PAGES = (INDEX, BOARD, method_page("fedsheafhn"), method_page(EVIL), dataset_page("cora"), RUN)
DOCUMENTS = (INDEX, *(f"toy/{name}/{INDEX}" for name in ("table1", "ranking", "reproduction")))
SCREENSHOTS = os.environ.get("BENCH_SCREENSHOTS")
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
        tab.wait_for_selector("#filters:not([hidden])")
    if page.startswith("run.html"):
        tab.wait_for_selector("text=Make it again")
    if SCREENSHOTS:
        Path(SCREENSHOTS).mkdir(parents=True, exist_ok=True)
        width = tab.viewport_size["width"]
        name = page.partition("#")[0].replace("/", "-").removesuffix(".html")
        tab.screenshot(path=str(Path(SCREENSHOTS) / f"{name}-{width}.png"), full_page=True)


def shown(tab: Tab, column: int) -> list[str]:
    """A column of the board as it is shown."""
    found: list[str] = tab.locator(f"#board tr.row:visible > *:nth-child({column})").all_inner_texts()
    return [text.strip() for text in found]


def heads(tab: Tab) -> list[str]:
    found: list[str] = tab.locator("#board thead th").all_inner_texts()
    return [text.strip() for text in found]


def choose(tab: Tab, name: str, value: str) -> None:
    """Press a chip above the board."""
    tab.locator(f"#filters label.chip:has(input[name={name}][value='{value}'])").click()


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
    tab.get_by_text("The curves as numbers").click()
    lines = [line.split("\t") for line in tab.get_by_role("region", name="Curves").inner_text().splitlines()]
    assert dict(zip(lines[0], lines[2], strict=True)) == {
        "Round": "2",
        "received, validation": "80.00",
        "received, test": "78.50",
        "trained, validation": "80.00",
        "trained, test": "79.50",
    }
    tab.get_by_role("link", name="Cora · Table 1").click()
    tab.wait_for_selector("#board tr.details:visible")
    opened = tab.locator("#board tr.row", has=tab.locator("[aria-expanded=true]"))
    assert opened.locator("a").first.inner_text() == "FedAvg"


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


def test_filters_choose_rows(site: Path, tab: Tab) -> None:
    visit(tab, site, BOARD)
    every = len(shown(tab, 1))
    choose(tab, "clients", "20")
    assert sorted(shown(tab, 1)) == ["FedAvg", "FedPer", "FedProx", "FedSheafHN", "Local"]
    choose(tab, "verdict", "not run")
    assert sorted(shown(tab, 1)) == ["FedPer", "FedProx", "FedSheafHN"]
    tab.get_by_label("Find").fill("prox")
    tab.get_by_text("1 of 11 rows").wait_for()
    assert shown(tab, 1) == ["FedProx"]
    tab.get_by_role("button", name="Show all").click()
    tab.get_by_text(f"{every} of {every} rows").wait_for()


def test_a_row_opens_its_details(site: Path, tab: Tab) -> None:
    visit(tab, site, BOARD)
    assert tab.locator("#board tr.details:visible").count() == 0
    button = tab.get_by_role("button", name="more on FedPer").first
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    assert "Runs by seed" in tab.locator("#board tr.details:visible").inner_text()
    visit(tab, site, f"{BOARD}#tiny-cora-8")
    tab.wait_for_selector("#more-tiny-cora-8:visible")
    assert tab.locator("#tiny-cora-8").is_visible()


def test_other_settings_are_shown_on_request_alone(tmp_path: Path, tab: Tab) -> None:
    url = f"sqlite:///{tmp_path / 'bench.db'}"
    fill(url)
    with open_store(url, create=True) as store:
        other = spec(TEN, "fedavg", 0).model_copy(update={"protocol": Protocol(rounds=2)})
        save(store, other, done(99 - 9, 10))  # better than all in usual settings
    build_site(url, tmp_path / "site")
    visit(tab, tmp_path / "site", BOARD)
    place = heads(tab).index("Measured") + 1
    first = "94.50"  # mean of 90 .. 99
    assert first not in shown(tab, place)
    choose(tab, "settings", "other settings")
    assert shown(tab, place) == [first]


def test_the_board_can_be_used_by_keyboard(site: Path, tab: Tab) -> None:
    visit(tab, site, BOARD)

    def focused(expression: str) -> Any:
        return tab.evaluate(f"document.activeElement.{expression}")

    tab.keyboard.press("Tab")
    assert focused("innerText") == "Skip to content"
    tab.keyboard.press("Enter")
    tab.wait_for_function("document.activeElement.id === 'main'")
    seen = []
    for _ in range(60):
        tab.keyboard.press("Tab")
        label = focused("getAttribute('aria-label')") or focused("name") or focused("innerText")
        seen.append(label)
        focus = "document.activeElement.closest('.chip') || document.activeElement"
        outline = tab.evaluate(f"getComputedStyle({focus}).outlineStyle")
        assert outline != "none", label
        if str(label).startswith("Measured"):
            break
        if label == "clients":
            tab.keyboard.press("ArrowRight")
            tab.keyboard.press("ArrowRight")
    assert "Leaderboard" in seen  # the scrolling region itself
    assert len(shown(tab, 1)) == 5  # of twenty clients
    tab.keyboard.press("Enter")
    place = heads(tab).index("Measured") + 1
    assert [text.split(" ")[0] for text in shown(tab, place)][:2] == ["60.00", "53.00"]


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
    assert line.startswith(
        f"BENCH_PLUGINS=FILE.py bench sweep -d cora -s non-overlapping -k 10 -m '{EVIL}' --seed 0 "
    )
    assert json.loads(tab.locator("pre").last.inner_text())["note"] == EVIL


@pytest.mark.parametrize(("tab", "is_open"), [(NARROW, False), (WIDE, True)], indirect=["tab"])
def test_a_board_fits_its_screen(site: Path, tab: Tab, is_open: bool) -> None:
    visit(tab, site, BOARD)
    assert tab.locator("#filters .chip").first.is_visible() == is_open
    assert tab.get_by_label("Find").is_visible()
    region = "document.querySelector('[aria-label=Leaderboard]')"
    assert tab.evaluate(f"{region}.scrollWidth == {region}.clientWidth") == is_open
    head = tab.locator("#board tr.head th > *").first  # stays where the board moves sideways
    for place in (0, 200):
        tab.evaluate(f"{region}.scrollLeft = {place}")
        box = head.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= tab.viewport_size["width"]


@pytest.mark.parametrize("tab", [NARROW], indirect=True)
def test_a_number_keeps_its_seeds_and_its_grade_as_a_word_on_a_narrow_screen(site: Path, tab: Tab) -> None:
    visit(tab, site, BOARD)
    place, seeds = heads(tab).index("Measured"), heads(tab).index("n")
    seen = tab.locator("#board tr.row").evaluate_all(
        """(rows, [place, seeds]) => rows.map((row) => {
          const cell = row.cells[place], std = cell.querySelector(".std");
          const { right } = cell.getBoundingClientRect();
          const said = (element) => getComputedStyle(element, "::after").content.replaceAll('"', "");
          const number = row.cells[seeds].textContent;
          return [row.dataset.verdict, said(cell), right, std ? said(std) : "", number];
        })""",
        [place, seeds],
    )
    assert len(seen) == 11
    for verdict, word, right, note, number in seen:
        assert word.endswith(f" {verdict}")
        assert note.removeprefix(", ") == (f"n {number}" if number != "–" else "")
        assert right <= 360  # beside the number, which is on the screen


def test_a_run_that_is_not_there_is_said(site: Path, tab: Tab) -> None:
    tab.goto(address(site, f"{RUN[:-62]}{'f' * 62}"))  # a file with runs, none of them this one
    tab.wait_for_selector("text=No run with the spec hash")
    tab.goto(address(site, "run.html#<img>"))
    titled(tab, "A run")
