"""The examples of docs/extending.md: every command runs."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from bench import registry
from bench.cli.main import main
from bench.federation.build import build

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
TEXT = (ROOT / "docs" / "extending.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)

pytestmark = pytest.mark.usefixtures("at_the_top")


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS)
def test_commands_run(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in block.splitlines():
        words = shlex.split(command)
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            monkeypatch.setenv(name, value)
        registry.forget()
        assert words.pop(0) == "bench"
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code == 0


def test_an_edited_scenario_draws_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    text = (EXAMPLES / "iid.py").read_text()
    hashes = []
    for version in (text, text.replace('"partition", self.name', '"partition", "another"')):
        file.write_text(version)
        sys.modules.pop("bench_plugin_own", None)  # as a new process would
        monkeypatch.setenv(registry.PLUGINS, str(file))
        registry.forget()
        hashes.append(build("cora", "iid", 4, 5, (40.0, 30.0, 30.0)).hash)
    assert hashes[0] != hashes[1]
