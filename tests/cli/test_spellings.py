"""Old names of options and commands: they work, and a line on standard error says the new one."""

from __future__ import annotations

import cyclopts
import pytest

from bench.cli.main import app
from bench.cli.spellings import COMMANDS, FLAGS, OPTIONS, renamed

from .conftest import Bench


@pytest.mark.parametrize(
    ("words", "now"),
    [
        ("sweep -d cora --timeout 5 --dry-run", "sweep -d cora --timeout-seconds 5 --dry-run"),
        ("sweep --timeout=5", "sweep --timeout-seconds=5"),
        ("tune --engine ray --tune-seeds 20-23", "tune --backend ray --seed 20-23"),
        (
            "speed --device cpu --methods all --json rows",
            "speed --devices cpu --method all --out rows",
        ),
        ("verify bundle --seed 3", "verify bundle --draw-seed 3"),
        ("data list --data-root x", "datasets --data-root x"),
    ],
)
def test_an_old_name_is_the_new_one(words: str, now: str) -> None:
    spelt, lines = renamed(words.split())
    assert spelt == now.split()
    changed = set(now.split()) - set(words.split())
    assert len(lines) == len(changed), "a line for each name"
    assert all(name.partition("=")[0] in " ".join(lines) for name in changed)


@pytest.mark.parametrize(
    "words",
    [
        "sweep -d cora --timeout-seconds 5",
        "speed --json",  # a flag now
        "speed --json --rounds 3",
        "report --engine",  # of no other command
        "runs list --json",
    ],
)
def test_what_is_spelt_as_it_is_now_stays(words: str) -> None:
    assert renamed(words.split()) == (words.split(), [])


def options_of(command: cyclopts.App) -> set[str]:
    names = command.assemble_argument_collection()
    return {name for argument in names for name in argument.names}


@pytest.mark.parametrize("spelling", OPTIONS, ids=" ".join)
def test_every_new_name_is_an_option_and_no_old_one_is(spelling: tuple[str, str]) -> None:
    command, old = spelling
    names = options_of(app[command])
    assert OPTIONS[spelling] in names
    assert (old in names) == (spelling in FLAGS)


def test_every_new_command_is_there_and_no_old_one_is() -> None:
    for old, new in COMMANDS.items():
        assert app[new[0]].default_command is not None
        assert old[-1] not in app[old[0]]


def test_the_line_is_on_standard_error_and_the_command_runs(bench: Bench) -> None:
    old, new = bench("sweep -d cora -m local --dry-run --json --timeout 60"), bench("data list --json")
    assert (old.code, new.code) == (0, 0)
    assert old.out.startswith("{")
    assert "--timeout-seconds" in old.err
    assert "bench datasets" in new.err
    assert old.err.count("\n") == new.err.count("\n") == 1
