"""The Python of docs/evidence.md runs on the shipped results and gives the numbers of the text."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from bench.engine.methods import METHODS

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "evidence.md").read_text()
PROSE = " ".join(TEXT.split())

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("home")]


def printed(heading: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines that the Python of a section prints."""
    exec(TEXT.partition(f"\n## {heading}")[2].partition("```python\n")[2].partition("```")[0], {})
    return capsys.readouterr().out.splitlines()


def test_mean_ranks_under_released_settings_are_those_of_the_findings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    released, points, main, main_points = [
        {METHODS.named(name).title: value for name, value in ast.literal_eval(line).items()}
        for line in printed("Released client settings", capsys)
    ]
    titles, *rows = [
        [cell.strip() for cell in line.split("|")[2:-1]]
        for line in (DOCS / "findings.md").read_text().splitlines()
        if line.startswith(("| | FedProx |", "| released settings |", "| main tables |"))
    ]
    assert [released, main] == [dict(zip(titles, map(float, row), strict=True)) for row in rows]
    (about,) = re.findall(r"(FedProx is [\d.]+ points above .*?), and the others are below", PROSE)
    above, _, below = about.partition("under the main")
    for text, found in ((above, points), (below, main_points)):
        stated = re.findall(r"([\w+-]+)(?: is)? (\d\.\d)(?: points)?(?: above|,|;|$)", text)
        assert {name: float(number) for name, number in stated} == {
            name: value for name, value in found.items() if value > 0
        }


def test_what_swapped_masks_change_is_that_of_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    *by_clients, cells = printed("Swapped masks", capsys)
    changes = {line[0]: re.findall(r"[+-]\d\.\d+", line)[0] for line in by_clients}
    for clients, text in (("9", "0.68 with nine clients"), ("6", "0.45 with six"), ("3", "0.41 with three")):
        assert changes[clients] == f"+{text[:4]}"
        assert text in PROSE
    assert cells == "12 of 13 raised, +0.46 on average"
    assert "raise twelve, by 0.46 on average of thirteen" in PROSE
