"""The Python of docs/findings.md runs on the shipped results and gives the numbers of the text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"


def blocks(text: str) -> list[str]:
    """The Python of the page."""
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_orders_of_methods_by_two_metrics_are_those_of_the_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    text = PAGE.read_text()
    exec(blocks(text)[0], {})
    found = re.fullmatch(r"9 methods: tau (0\.\d\d)\n25 methods: tau (0\.\d\d)\n", capsys.readouterr().out)
    assert found is not None
    prose = " ".join(text.split())
    assert (
        f"Kendall's tau of the two orders is {found[1]}. With 0.001 it is {found[2]} over the board's 25"
        in prose
    )


def test_pairs_and_generated_neighbours_are_those_of_the_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    text = PAGE.read_text()
    exec(blocks(text)[1], {})
    found = re.fullmatch(r"-(0\.\d)\d \(p (0\.\d\d)\); (\d+) neighbours\n", capsys.readouterr().out)
    assert found is not None
    difference, p, neighbours = found.groups()
    prose = " ".join(text.split())
    assert f"lower by 0.2 to {difference} points (p {p} to" in prose
    assert f"and {neighbours} and 9 at K = 8" in prose
