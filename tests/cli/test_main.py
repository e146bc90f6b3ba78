"""How the program starts and ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
def test_a_full_disk_is_one_line_and_exit_code_1() -> None:
    with FULL.open("w") as output:
        process = subprocess.run(
            [sys.executable, "-c", "from bench.cli.main import main; main(['grids'])"],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert process.returncode == 1
    assert process.stderr.startswith("bench: ")
    assert process.stderr.count("\n") == 1


@pytest.mark.parametrize("words", ["methods local", "runs status", "sweep --help"])
def test_a_reader_that_goes_away_is_no_failure(words: str, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = subprocess.run(
        [sys.executable, "-c", f"from bench.cli.main import main; main({words.split()})"],
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env={**environment, "BENCH_HOME": str(tmp_path)},
    )
    os.close(write_end)
    assert (process.returncode, process.stderr) == (0, "")


INTERRUPTED = """
import sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
from bench.cli.main import main
main(["runs", "list"])
"""


@pytest.mark.parametrize("module", ["cyclopts", "sqlalchemy"])
def test_an_interrupt_while_modules_are_imported_is_one_line(module: str, home: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module], capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stderr.count("\n")) == (130, 1)
