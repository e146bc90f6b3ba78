"""The Python of docs/findings.md runs on the shipped results and gives the numbers of the text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"


def test_pairs_and_generated_neighbours_are_those_of_the_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    text = PAGE.read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(code, {})
    found = re.fullmatch(r"-(0\.\d)\d \(p (0\.\d\d)\); (\d+) neighbours\n", capsys.readouterr().out)
    assert found is not None
    difference, p, neighbours = found.groups()
    prose = " ".join(text.split())
    assert f"lower by 0.2 to {difference} points (p {p} to" in prose
    assert f"and {neighbours} and 9 at K = 8" in prose
