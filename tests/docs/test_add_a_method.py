"""docs/add_a_method.md: its commands run in their order, and its example is the suite's own method."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from toy_federations import furthest, make_spec, play

from bench import registry
from bench.cli.main import main
from bench.federation.types import Federation

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "add_a_method.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "docs" / "examples" / "fedbabu" / "fedbabu.py"
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


pytestmark = pytest.mark.usefixtures("at_the_top")


@pytest.mark.slow
def test_commands_lead_to_a_row_on_the_leaderboard(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for command in COMMANDS:
        words = shlex.split(command)
        monkeypatch.setenv(registry.PLUGINS, "")
        while "=" in words[0]:
            monkeypatch.setenv(*words.pop(0).split("=", 1))
        registry.forget()
        if "--out" in words:
            place = words.index("--out") + 1
            words[place] = str(tmp_path / words[place])
        with pytest.raises(SystemExit) as end:
            main(words[1:])
        assert end.value.code == 0, command
    assert "FedBABU (example)" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert (tmp_path / "compare" / "index.html").is_file()


def test_the_example_is_the_suites_own_method(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On graphs: the same bits of the bodies, and of the personal models."""
    monkeypatch.setenv(registry.PLUGINS, str(EXAMPLE))
    registry.forget()
    example, own = (play(make_spec(name, federation), federation) for name in ("own_fedbabu", "fedbabu"))
    assert furthest(example.method.model, own.method.model) == 0  # type: ignore[attr-defined]
    assert furthest(example.own, {name: own.own[name] for name in example.own}) == 0


def test_the_page_shows_the_example_as_it_is() -> None:
    """Every line of code on the page stands in the file, but for the types."""
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    text = re.sub(r": (?:Stack|Clients|Message)\b|\s->\s[^:\n]+", "", EXAMPLE.read_text(encoding="utf-8"))
    lines = {line.strip() for line in text.splitlines()}
    assert [line for line in block.splitlines() if line.strip() and line.strip() not in lines] == []
