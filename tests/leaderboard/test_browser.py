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
from site_database import BASES, EVIL, REASON, TEN, build_site, means, spec

from bench.leaderboard.pages import board_page, method_page, run_page
from bench.leaderboard.serve import server

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: chromium is not on the path")

BOARD = board_page("tiny", "cora")
PAGES = ("index.html", "about.html", BOARD, method_page("fedper"), method_page(EVIL))
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
    made.on("requestfailed", lambda asked: wrong.append(f"failed: {asked.url}"))
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
    found: list[str] = tab.locator(f"#board tbody tr > *:nth-child({column})").all_inner_texts()
    return found


def heads(tab: Tab) -> list[str]:
    found: list[str] = tab.locator("#board thead th").all_inner_texts()
    return [text.strip() for text in found]


def chosen(tab: Tab, name: str) -> Any:
    """The select of that name above the board, by its label's form."""
    return tab.locator(f"#filters select[name={name}]")


def picture(tab: Tab, name: str) -> None:
    if SCREENSHOTS:
        Path(SCREENSHOTS).mkdir(parents=True, exist_ok=True)
        tab.screenshot(path=str(Path(SCREENSHOTS) / f"{name}.png"), full_page=True)


def test_from_the_front_page_to_a_run(site: Path, tab: Tab) -> None:
    tab.goto(address(site, "index.html"))
    picture(tab, "index")
    tab.get_by_role("link", name="Cora", exact=True).click()
    assert tab.locator("h1").inner_text() == "Cora in the study Tiny <study>"
    tab.wait_for_selector("#board_wrapper")
    tab.wait_for_selector(".chart svg")
    picture(tab, "board")
    tab.locator("#board").get_by_role("link", name="FedAvg", exact=True).first.click()
    assert tab.locator("h1").inner_text() == "FedAvg fedavg"
    picture(tab, "method")
    tab.locator("tr:target .runs").get_by_role("link", name="2", exact=True).click()
    tab.wait_for_selector(".chart svg")
    picture(tab, "run")
    assert tab.url == address(site, RUN)
    assert tab.title() == "FedAvg: cora, non-overlapping, 10 clients, seed 2 · bench leaderboard"
    rows = [row.split("\t") for row in tab.locator("table").first.inner_text().splitlines()]
    results = {tuple(row[:3]): row[3:] for row in rows[1:]}
    counts = [75 + client for client in range(10)]
    wanted = [f"{mean(counts):.2f}", f"{mean(counts):.2f}", f"{stdev(counts):.2f}", "75.00"]
    assert results["trained", "test", "best_val"] == wanted
    assert tab.locator("pre").first.inner_text().startswith("bench sweep -d cora")
    tab.get_by_text("The curves as numbers").click()
    lines = [line.split("\t") for line in tab.get_by_role("region", name="Curves").inner_text().splitlines()]
    second = dict(zip(lines[0], lines[2], strict=True))
    assert second == {
        "Round": "2",
        "received, validation": "80.00",
        "received, test": "78.50",
        "trained, validation": "80.00",
        "trained, test": "79.50",
    }


def test_a_column_sorts_like_the_database(site: Path, tab: Tab) -> None:
    tab.goto(address(site, BOARD))
    place = heads(tab).index("Measured") + 1
    measured = sorted(mean(means(*cell)) for cell in BASES)
    button = tab.locator(f"#board thead th:nth-child({place}) [role=button]")
    for direction, ordered in (("ascending", measured), ("descending", measured[::-1])):
        button.click()
        tab.wait_for_selector(f"#board thead th:nth-child({place})[aria-sort={direction}]")
        texts = [text.split(" ")[0] for text in shown(tab, place)]
        assert texts == [f"{value:.2f}" for value in ordered] + ["–"] * (len(texts) - len(measured))
    assert tab.url.endswith(f"#sort={place - 1}.desc")


def test_filters_choose_rows_and_stand_in_the_address(site: Path, browser: Browser, tab: Tab) -> None:
    tab.goto(address(site, BOARD))
    tab.wait_for_selector("#board_wrapper")
    every = len(shown(tab, 1))
    chosen(tab, "clients").select_option("20")
    chosen(tab, "family").select_option("FedAvg")
    clients = heads(tab).index("Clients") + 1
    assert set(shown(tab, clients)) == {"20"}
    assert sorted(shown(tab, 1)) == ["FedAvg", "FedPer", "FedProx"]
    chosen(tab, "verdict").select_option("not run")
    assert sorted(shown(tab, 1)) == ["FedPer", "FedProx"]
    tab.get_by_label("Search:").fill("prox")
    tab.get_by_text("1 to 1 of 1 rows").wait_for()
    assert shown(tab, 1) == ["FedProx"]
    again = browser.new_page()
    again.goto(tab.url)
    again.get_by_text("1 to 1 of 1 rows").wait_for()
    assert shown(again, 1) == ["FedProx"]
    assert chosen(again, "clients").input_value() == "20"
    again.close()
    tab.get_by_role("button", name="Show all").click()
    sync_api.expect(tab.locator("#board tbody tr")).to_have_count(every)
    assert "#" not in tab.url


def test_an_address_that_makes_no_sense_shows_everything(site: Path, tab: Tab) -> None:
    tab.goto(address(site, f"{BOARD}#clients=7&sort=99.up&table=%3Cscript%3E&nonsense=1"))
    tab.wait_for_selector("#board_wrapper")
    assert len(shown(tab, 1)) == 11


def test_the_board_can_be_used_by_keyboard(site: Path, tab: Tab) -> None:
    tab.goto(address(site, BOARD))
    tab.wait_for_selector("#board_wrapper")

    def focused(expression: str) -> Any:
        return tab.evaluate(f"document.activeElement.{expression}")

    tab.keyboard.press("Tab")
    assert focused("innerText") == "Skip to content"
    tab.keyboard.press("Enter")
    assert focused("id") == "main"
    seen = []
    for _ in range(60):
        tab.keyboard.press("Tab")
        label = focused("getAttribute('aria-label')") or focused("name") or focused("innerText")
        seen.append(label)
        outline = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", label
        if str(label).startswith("Measured"):
            break
        if label == "clients":
            tab.keyboard.press("ArrowDown")
            tab.keyboard.press("ArrowDown")
    assert "Leaderboard" in seen  # the scrolling region itself
    clients = heads(tab).index("Clients") + 1
    assert set(shown(tab, clients)) == {"20"}
    tab.keyboard.press("Enter")
    place = heads(tab).index("Measured") + 1
    numbers = [text.split(" ")[0] for text in shown(tab, place)][:2]
    assert numbers == ["53.00", "60.00"]


@pytest.mark.parametrize("tab", [{"viewport": {"width": 360, "height": 740}}], indirect=True, ids=["360"])
def test_a_narrow_screen_has_no_overflow(site: Path, tab: Tab) -> None:
    for page in (*PAGES, RUN):
        tab.goto(address(site, page))
        if page in (BOARD, RUN):
            tab.wait_for_selector(".chart svg")
        wide = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide == 0, page
    tab.goto(address(site, BOARD))
    tab.wait_for_selector("#board_wrapper")
    assert tab.evaluate(
        "(e => e.scrollWidth > e.clientWidth)(document.querySelector('[aria-label=Leaderboard]'))"
    )
    picture(tab, "board-narrow")


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
        if page in (BOARD, RUN):
            tab.wait_for_selector(".chart svg")
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
    assert f"not available here: unknown method '{EVIL}'" in tab.locator("pre").first.inner_text()
    assert json.loads(tab.locator("pre").last.inner_text())["note"] == EVIL


def test_charts_show_every_method_and_follow_the_task(site: Path, tab: Tab) -> None:
    tab.goto(address(site, BOARD))
    tab.wait_for_selector(".chart[data-kind=rounds] svg")
    clients = tab.locator(".chart[data-kind=clients]")
    ten = [method for column, method in BASES if column == TEN]
    assert clients.locator(".mark-symbol path").count() == 10 * len(ten)
    label = clients.get_attribute("aria-label")
    assert label.startswith("Clients, Cora, non-overlapping, 10 clients, of Local, FedAvg, FedPer")
    legend = tab.locator(".chart[data-kind=rounds] .role-legend-label").all_text_contents()
    assert sorted(legend) == sorted(["Local", "FedAvg", "FedPer", EVIL])
    tab.locator("#task").select_option("non-overlapping, 20 clients")
    tab.wait_for_selector(".chart[data-kind=clients][aria-label*='20 clients']")
    assert "10 clients" not in clients.get_attribute("aria-label")
    assert clients.locator(".mark-symbol path").count() == 20 * 2


def test_a_run_that_is_not_there_is_said(site: Path, tab: Tab) -> None:
    tab.goto(address(site, f"run.html#{'f' * 64}"))
    tab.wait_for_selector("text=No run with the spec hash")
    tab.goto(address(site, "run.html#<img>"))
    assert tab.locator("h1").inner_text() == "A run"


def test_it_works_over_http_too(site: Path, tab: Tab) -> None:
    with server(site, 0) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        try:
            tab.goto(f"http://127.0.0.1:{serving.server_port}/{BOARD}")
            tab.wait_for_selector(".chart svg")
            tab.goto(f"http://127.0.0.1:{serving.server_port}/{RUN}")
            tab.wait_for_selector("text=Make it again")
        finally:
            serving.shutdown()
            thread.join()


def test_a_link_to_a_row_leads_to_its_page_of_the_table(database: str, tmp_path: Path, tab: Tab) -> None:
    build_site(database, tmp_path / "site")
    script = tmp_path / "site" / "assets" / "site.js"
    script.write_text(script.read_text().replace("pageLength: 50", "pageLength: 3"))
    tab.goto(address(tmp_path / "site", f"{BOARD}#tiny-cora-8"))
    tab.wait_for_selector("#tiny-cora-8")
    assert tab.get_by_text("7 to 9 of 11 rows").is_visible()
