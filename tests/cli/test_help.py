"""``--help``: the list of commands has a line for each, a command's own help all that its docstring says."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator

import cyclopts
import pytest

from bench.cli.main import app, main


def commands(parent: cyclopts.App, *path: str) -> Iterator[tuple[str, ...]]:
    for name in parent:
        if not name.startswith("-"):
            below = list(commands(parent[name], *path, name))
            yield from below or [(*path, name)]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("path", list(commands(app)), ids=" ".join)
def test_a_commands_help_is_its_docstring(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    command = app
    for name in path:
        command = command[name]
    paragraphs = (inspect.getdoc(command.default_command) or "").split("\n\n")
    text = [" ".join(each.split()) for each in paragraphs if not each.startswith("Parameters\n---")]
    shown = printed(capsys, *path)
    assert text[0]
    for paragraph in text:
        assert paragraph in shown


def test_the_list_of_commands_has_a_line_for_each_and_imports_none() -> None:
    asked = "import sys; from bench.cli import main; "
    shown = "print([each for each in sys.modules if each.startswith('bench.cli.')])"
    code = f"{asked}\ntry: main.main(['--help'])\nfinally: {shown}"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    text = " ".join(process.stdout.split())
    assert "sweep Run what is not done yet of a grid. " in text.replace("│", "")
    assert "Exit code 0: all agree" not in text
    assert text.endswith("['bench.cli.main']")
