"""The site in a real browser: what people see and do. Skipped where there is no Chromium."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
from stored_runs import save

from bench.leaderboard.folder import board_page, dataset_page, method_page, run_page, server
from bench.spec import Protocol
from bench.store import open_store

from .site_database import BASES, EVIL, REASON, TEN, TWENTY, build_site, done, fill, means, spec

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: chromium is not on the path")

BOARD = board_page("tiny", "cora")
PAGES = (
    "index.html",
    BOARD,
    method_page("fedsheafhn"),
    method_page(EVIL),
    dataset_page("cora"),
)
RUN = run_page(spec(TEN, "fedavg", 2).hash)
SCREENSHOTS = os.environ.get("BENCH_SCREENSHOTS")

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


def ready(tab: Tab) -> None:
    """Wait for the board."""
    tab.wait_for_selector("#filters:not([hidden])")


def picture(tab: Tab, name: str) -> None:
    if SCREENSHOTS:
        Path(SCREENSHOTS).mkdir(parents=True, exist_ok=True)
        tab.screenshot(path=str(Path(SCREENSHOTS) / f"{name}.png"), full_page=True)


def test_from_the_front_page_to_a_run(site: Path, tab: Tab) -> None:
    tab.goto(address(site, "index.html"))
    picture(tab, "index")
    tab.locator(".boards").get_by_role("link", name="Cora", exact=True).click()
    titled(tab, "Cora in the study Tiny <study>")
    ready(tab)
    picture(tab, "board")
    tab.locator("#board").get_by_role("link", name="FedAvg", exact=True).first.click()
    titled(tab, "FedAvg fedavg")
    picture(tab, "method")
    tab.locator("tr:target .runs").get_by_role("link", name="2", exact=True).click()
    tab.wait_for_url(address(site, RUN))
    tab.wait_for_selector("text=Make it again")
    picture(tab, "run")
    assert tab.title() == "FedAvg: cora, non-overlapping, 10 clients, seed 2 · bench leaderboard"
    rows = [row.split("\t") for row in tab.locator("table").first.inner_text().splitlines()]
    assert rows[1][0] == "✓ trained, test, best_val"
    assert not any("✓" in row[0] for row in rows[2:])
    assert [row[0].split(", ")[1] for row in rows[1:]] == ["test"] * 8 + ["validation"] * 8
    results = {row[0]: row[1:] for row in rows[1:]}
    counts = [75 + client for client in range(10)]
    wanted = [f"{mean(counts):.2f}", f"{mean(counts):.2f}", f"{stdev(counts):.2f}", "75.00"]
    assert results["✓ trained, test, best_val"] == wanted
    heads_of_clients = tab.get_by_role("region", name="Clients").locator("th[scope=col]").all_inner_texts()
    assert heads_of_clients[2] == "✓ trained, best_val"
    assert not any("✓" in head for head in heads_of_clients[3:])
    assert tab.locator(".path a").last.get_attribute("href") == dataset_page("cora")
    assert tab.locator("pre").first.inner_text().startswith("bench sweep -d cora")
    tab.get_by_text("The curves as numbers").click()
    lines = [line.split("\t") for line in tab.get_by_role("region", name="Curves").inner_text().splitlines()]
    second = dict(zip(lines[0], lines[2], strict=True))
    tab.get_by_role("link", name="Cora · Table 1").click()
    tab.wait_for_selector("#board tr.details:visible")
    opened = tab.locator("#board tr.row", has=tab.locator("[aria-expanded=true]"))
    assert opened.locator("a").first.inner_text() == "FedAvg"
    assert second == {
        "Round": "2",
        "received, validation": "80.00",
        "received, test": "78.50",
        "trained, validation": "80.00",
        "trained, test": "79.50",
    }


def test_a_column_sorts_within_each_ranking(site: Path, tab: Tab) -> None:
    tab.goto(address(site, BOARD))
    ready(tab)
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
    tab.wait_for_url(address(site, f"{BOARD}#sort={place - 1}.asc"))
    tab.goto("about:blank")
    tab.go_back()
    ready(tab)
    tab.evaluate("new Promise(done => setTimeout(done))")  # after whatever the page has put off
    assert [text.split(" ")[0] for text in shown(tab, place)] == texts


def test_filters_choose_rows_and_stand_in_the_address(site: Path, browser: Browser, tab: Tab) -> None:
    tab.goto(address(site, BOARD))
    ready(tab)
    every = len(shown(tab, 1))
    choose(tab, "clients", "20")
    assert sorted(shown(tab, 1)) == ["FedAvg", "FedPer", "FedProx", "FedSheafHN", "Local"]
    choose(tab, "verdict", "not run")
    assert sorted(shown(tab, 1)) == ["FedPer", "FedProx", "FedSheafHN"]
    tab.get_by_label("Find").fill("prox")
    tab.get_by_text("1 of 11 rows").wait_for()
    assert shown(tab, 1) == ["FedProx"]
    again = browser.new_page()
    again.goto(tab.evaluate("location.href"))
    again.get_by_text("1 of 11 rows").wait_for()
    assert shown(again, 1) == ["FedProx"]
    assert again.locator("input[name=clients][value='20']").is_checked()
    again.close()
    tab.get_by_role("button", name="Show all").click()
    tab.get_by_text(f"{every} of {every} rows").wait_for()
    tab.wait_for_url(address(site, BOARD))


def test_an_address_that_makes_no_sense_shows_everything(site: Path, tab: Tab) -> None:
    tab.goto(address(site, f"{BOARD}#clients=7&sort=99.up&table=%3Cscript%3E&nonsense=1"))
    ready(tab)
    assert len(shown(tab, 1)) == 11


def test_a_row_opens_its_details(site: Path, tab: Tab) -> None:
    tab.goto(address(site, BOARD))
    ready(tab)
    assert tab.locator("#board tr.details:visible").count() == 0
    button = tab.get_by_role("button", name="more on FedPer").first
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    assert "Runs by seed" in tab.locator("#board tr.details:visible").inner_text()
    tab.goto("about:blank")
    tab.goto(address(site, f"{BOARD}#tiny-cora-8"))
    tab.wait_for_selector("#more-tiny-cora-8:visible")
    assert tab.locator("#tiny-cora-8").is_visible()


def test_tuned_and_default_settings_are_mixed_on_request_alone(tmp_path: Path, tab: Tab) -> None:
    url = f"sqlite:///{tmp_path / 'bench.db'}"
    fill(url)
    with open_store(url, create=True) as store:
        other = spec(TEN, "fedavg", 0).model_copy(update={"protocol": Protocol(rounds=2)})
        save(store, other, done(99 - 9, 10))  # better than all in usual settings
    build_site(url, tmp_path / "site")
    tab.goto(address(tmp_path / "site", BOARD))
    ready(tab)
    place = heads(tab).index("Measured") + 1
    first = "94.50"  # mean of 90 .. 99
    assert first not in shown(tab, place)
    choose(tab, "settings", "other settings")
    assert shown(tab, place) == [first]
    choose(tab, "settings", "mixed")
    assert shown(tab, place)[:2] == [first, f"{mean(means(TEN, EVIL)):.2f} ± 0.71"]
    tab.wait_for_url("**settings=mixed**")


def test_the_board_can_be_used_by_keyboard(site: Path, tab: Tab) -> None:
    tab.goto(address(site, BOARD))
    ready(tab)

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
    numbers = [text.split(" ")[0] for text in shown(tab, place)][:2]
    assert numbers == ["60.00", "53.00"]


@pytest.mark.parametrize(
    "tab",
    [{"viewport": {"width": 360, "height": 740}}, {"viewport": {"width": 1280, "height": 900}}],
    indirect=True,
    ids=["360", "1280"],
)
def test_no_page_is_wider_than_the_screen(site: Path, tab: Tab) -> None:
    narrow = tab.viewport_size["width"] == 360
    for page in (*PAGES, RUN):
        tab.goto(address(site, page))
        if page == RUN:
            tab.wait_for_selector("text=Make it again")
        wide = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide == 0, page
    tab.goto(address(site, BOARD))
    ready(tab)
    scrolls = "(e => e.scrollWidth > e.clientWidth)(document.querySelector('[aria-label=Leaderboard]'))"
    assert tab.evaluate(scrolls) == narrow
    picture(tab, f"board-{tab.viewport_size['width']}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "tab",
    [
        pytest.param({"color_scheme": "light"}, id="light"),
        pytest.param({"color_scheme": "dark"}, id="dark", marks=pytest.mark.slow),
    ],
    indirect=True,
)
def test_no_page_has_a_known_barrier(site: Path, tab: Tab) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for page in (*PAGES, RUN):
        tab.goto("about:blank")
        tab.goto(address(site, page))
        if page == RUN:
            tab.wait_for_selector("text=Make it again")
        found = axe.run(tab, options={"preload": False})
        assert found.violations_count == 0, f"{page}: {found.generate_report()}"
    picture(tab, f"run-{tab.evaluate('matchMedia(`(prefers-color-scheme: dark)`).matches')}")


def test_hostile_texts_are_texts(site: Path, tab: Tab) -> None:
    for page in (*PAGES, run_page(spec(TEN, EVIL, 0).hash), run_page(spec(TEN, "fedprox", 0).hash)):
        tab.goto("about:blank")
        tab.goto(address(site, page))
        tab.wait_for_selector("h1")
        assert tab.locator("img").count() == 0, page
    tab.wait_for_selector("text=failed")
    said = tab.locator("dl").first.inner_text()
    assert all(part in said for part in REASON.split("\u2028"))
    tab.goto("about:blank")  # from one run to another would be the same document
    tab.goto(address(site, run_page(spec(TEN, EVIL, 0).hash)))
    tab.wait_for_selector("text=Make it again")
    line = tab.locator("pre").first.inner_text()
    assert line.startswith(
        f"BENCH_PLUGINS=FILE.py bench sweep -d cora -s non-overlapping -k 10 -m '{EVIL}' --seed 0 "
    )
    assert json.loads(tab.locator("pre").last.inner_text())["note"] == EVIL


NARROW = {"viewport": {"width": 360, "height": 740}}


@pytest.mark.parametrize(
    ("tab", "is_open"),
    [(NARROW, False), ({"viewport": {"width": 1280, "height": 900}}, True)],
    indirect=["tab"],
)
def test_filters_are_closed_on_a_narrow_screen(site: Path, tab: Tab, is_open: bool) -> None:
    tab.goto(address(site, BOARD))
    ready(tab)
    assert tab.locator("#filters .chip").first.is_visible() == is_open
    assert tab.get_by_label("Find").is_visible()


@pytest.mark.parametrize("tab", [NARROW], indirect=True)
def test_the_head_of_a_ranking_stays_when_a_narrow_board_scrolls(site: Path, tab: Tab) -> None:
    tab.goto(address(site, BOARD))
    ready(tab)
    head = tab.locator("#board tr.head th > *").first
    for place in (0, 200):
        tab.evaluate(f"document.querySelector('[aria-label=Leaderboard]').scrollLeft = {place}")
        box = head.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360


@pytest.mark.parametrize("tab", [NARROW], indirect=True)
def test_a_number_keeps_its_seeds_and_its_grade_as_a_word_on_a_narrow_screen(site: Path, tab: Tab) -> None:
    tab.goto(address(site, BOARD))
    ready(tab)
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
    tab.goto(address(site, f"run.html#{'f' * 64}"))
    tab.wait_for_selector("text=No run with the spec hash")
    tab.goto(address(site, "run.html#<img>"))
    titled(tab, "A run")


def test_it_works_over_http_too(site: Path, tab: Tab) -> None:
    with server(site, 0) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        try:
            tab.goto(f"http://127.0.0.1:{serving.server_port}/{BOARD}")
            ready(tab)
            tab.goto(f"http://127.0.0.1:{serving.server_port}/{RUN}")
            tab.wait_for_selector("text=Make it again")
        finally:
            serving.shutdown()
            thread.join()
