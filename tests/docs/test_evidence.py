"""The Python of docs/evidence.md runs on the shipped results and gives the numbers of the text."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.engine.methods import METHODS

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "evidence.md").read_text()
PROSE = " ".join(TEXT.split())


@pytest.fixture
def printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], str]:
    """What the Python of a section of the page prints, by its heading, in an empty home."""
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))

    def run(heading: str) -> str:
        (section,) = (
            part for part in re.split(r"^## ", TEXT, flags=re.MULTILINE) if part.startswith(heading)
        )
        (block,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
        exec(block, {})
        return capsys.readouterr().out

    return run


@pytest.mark.slow
def test_mean_ranks_under_released_settings_are_those_of_the_findings(printed: Callable[[str], str]) -> None:
    findings = (DOCS / "findings.md").read_text()
    titles, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in findings.splitlines()
        if line.startswith(("| | FedProx |", "| released settings |", "| main tables |"))
    )
    released, points, main, main_points = (
        {METHODS.named(name).title: value for name, value in ast.literal_eval(line).items()}
        for line in printed("Released client settings").splitlines()
    )
    assert [released, main] == [dict(zip(titles[1:], map(float, row[1:]), strict=True)) for row in rows]
    above = re.search(r"FedProx is (0?[\d.]+) points above FedSheafHN, (.*?); under the main", PROSE)
    assert above is not None
    stated = {name: float(value) for name, value in re.findall(r"([\w+-]+) (\d\.\d)", above[2])}
    assert {"FedProx": float(above[1]), **stated} == {
        name: value for name, value in points.items() if value > 0
    }
    assert (main_points["Local"], main_points["FED-PUB"], main_points["Flow"]) == (1.3, 0.8, -3.1)


@pytest.mark.slow
def test_what_swapped_masks_change_is_that_of_the_text(printed: Callable[[str], str]) -> None:
    *by_clients, cells = printed("Swapped masks").splitlines()
    changes = dict(re.findall(r"(\d) clients, 20 seeds: (\S+) \(p", "\n".join(by_clients)))
    p_values = dict(re.findall(r"(\d) clients, .* \(p (\d\.\d+)\)", "\n".join(by_clients)))
    assert re.fullmatch(r"12 of 13 raised, \+0\.46 on average", cells)
    words = {"9": "0.68 with nine clients", "6": "0.45 with six", "3": "0.41 with three"}
    for clients, text in words.items():
        assert float(text.split()[0]) == float(changes[clients])
        assert text in PROSE
    assert "raise twelve, by 0.46 on average of thirteen" in PROSE
    assert (p_values["9"], round(float(p_values["6"]), 2)) == ("0.007", 0.05)
    assert round(float(changes["1"]), 1) == -0.1
