"""How the program ends where its output cannot be written."""

from __future__ import annotations

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
