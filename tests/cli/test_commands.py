"""``--help`` of every command, and what is imported for it."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Iterator

import cyclopts
import pytest

from bench.cli import main as program

from .conftest import Bench

APP = program.commands()


def commands(parent: cyclopts.App, *path: str) -> Iterator[tuple[str, ...]]:
    for name in parent:
        if not name.startswith("-"):
            below = list(commands(parent[name], *path, name))
            yield from below or [(*path, name)]


@pytest.mark.parametrize("path", list(commands(APP)), ids=" ".join)
def test_a_commands_help_is_its_docstring(path: tuple[str, ...], bench: Bench) -> None:
    command = APP
    for name in path:
        command = command[name]
    paragraphs = (inspect.getdoc(command.default_command) or "").split("\n\n")
    text = [" ".join(paragraph.split()) for paragraph in paragraphs if not paragraph.startswith("Args:")]
    ended = bench(*path, "--help")
    assert ended.code == 0
    assert text[0]
    for paragraph in text:
        assert paragraph in " ".join(ended.out.split())


WORK = {
    "jinja2",
    "matplotlib",
    "numpy",
    "optuna",
    "pandas",
    "psutil",
    "pyarrow",
    "pydantic",
    "scipy",
    "sqlalchemy",
    "torch",
    "torch_geometric",
}
"""Packages that commands do their work with; asking for help or asking wrongly needs none of them."""

CALLS = """
import json, sys
from bench.cli.main import main
for words in json.loads(sys.argv[1]):
    try:
        main([*words, "--help"])
    except SystemExit as ended:
        assert not ended.code
    print(json.dumps([words, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def test_help_imports_nothing_that_does_work() -> None:
    paths = [(), *commands(APP)]
    assert ("runs", "list") in paths
    call = [sys.executable, "-c", CALLS, json.dumps(paths)]
    process = subprocess.run(call, capture_output=True, text=True, check=True)
    ends = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("[")]
    assert len(ends) == len(paths)
    for path, packages in ends:
        assert not WORK.intersection(packages), path
