"""The Python of docs/evidence.md runs on the shipped results and gives the numbers of the text."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "evidence.md").read_text()
PROSE = " ".join(TEXT.split())


@pytest.fixture
def printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[[int], str]:
    """What a block of the page's Python prints, by its number, in an empty home."""
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))

    def run(number: int) -> str:
        exec(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)[number], {})
        return capsys.readouterr().out

    return run


@pytest.mark.slow
def test_what_fed_pubs_settings_are_worth_is_that_of_the_text(printed: Callable[[int], str]) -> None:
    differences = re.findall(r": ([+-].*)\n", printed(0))
    rows = ("2 local epochs", "200 rounds", "no weight decay")
    cells = [re.search(rf"\| {row} \|(.*)", TEXT) for row in rows]
    texts = [text.strip() for row in cells if row for text in row[1].split("|")[1:4:2]]
    assert len(differences) == 6
    assert texts == differences


@pytest.mark.slow
def test_orders_of_methods_by_two_metrics_are_those_of_the_text(printed: Callable[[int], str]) -> None:
    found = re.fullmatch(r"10 methods: tau (0\.\d\d)\n25 methods: tau (0\.\d\d)\n", printed(1))
    assert found is not None
    assert (
        f"Kendall's tau of the two orders is {found[1]}. With 0.001 it is {found[2]} over the board's 25"
        in PROSE
    )


@pytest.mark.slow
def test_pairs_and_generated_neighbours_are_those_of_the_text(printed: Callable[[int], str]) -> None:
    found = re.fullmatch(r"-(0\.\d)\d \(p (0\.\d\d)\); (\d+) neighbours\n", printed(2))
    assert found is not None
    difference, p, neighbours = found.groups()
    assert f"lower by 0.2 to {difference} points (p {p} to" in PROSE
    assert f"and {neighbours} and 9 at K = 8" in PROSE
