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


@pytest.mark.parametrize(
    "words", ["datasets", "methods", "methods local", "grids", "runs status", "--version", "sweep --help"]
)
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


@pytest.mark.parametrize("module", ["cyclopts", "bench.cli.runs", "sqlalchemy"])
def test_an_interrupt_while_modules_are_imported_is_one_line(module: str, home: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module], capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stderr.count("\n")) == (130, 1)


@pytest.mark.parametrize("words", ["grids", "methods --help"])
def test_a_width_that_no_terminal_has_is_ignored(words: str, home: Path) -> None:
    def printed(columns: str | None) -> str:
        environment = {**os.environ, "BENCH_HOME": str(home), "COLUMNS": columns}
        return subprocess.run(
            [sys.executable, "-c", f"from bench.cli.main import main; main({words.split()})"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env={name: value for name, value in environment.items() if value is not None},
        ).stdout

    usual = printed(None)
    assert printed("40") != usual
    assert {printed(columns) for columns in ("0", "1", "-1", "²", "wide", "99999")} == {usual}


@pytest.mark.parametrize(("words", "code"), [("grids", 0), ("--version", 0), ("grids nothing", 2)])
@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)])
def test_streams_that_are_closed_change_no_exit_code(words: str, code: int, closed: tuple[int, ...]) -> None:
    closing = "".join(f"os.close({stream}); " for stream in closed)
    start = f"import os, sys; {closing}os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    command = f"from bench.cli.main import main; main({words.split()})"
    process = subprocess.run(
        [sys.executable, "-c", start, "-c", command], capture_output=True, text=True, check=False
    )
    assert process.returncode == code
    assert bool(process.stdout) == (1 not in closed and code == 0)
    assert bool(process.stderr) == (2 not in closed and code == 2)


@pytest.mark.skipif(os.name == "nt", reason="this system keeps the folder that somebody is in")
@pytest.mark.parametrize("words", ["--version", "grids", "runs list", "sweep -d cora --dry-run", "doctor"])
def test_a_working_directory_that_was_deleted_is_one_line(words: str, home: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    leaving = "import os, sys; from bench.cli.main import main; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1])"
    process = subprocess.run(
        [sys.executable, "-c", f"{leaving}; main({words.split()})", str(gone)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, process.stderr.count("\n")) == (2, 1)
    assert process.stdout == ""
