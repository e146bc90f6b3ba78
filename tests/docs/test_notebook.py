"""docs/notebook.ipynb runs, and shows what its code gives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


@pytest.mark.slow
def test_its_cells_run_in_order_and_give_what_it_shows(tmp_path: Path) -> None:
    environment = {**os.environ, "BENCH_HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(ROOT / ".ci" / "notebook.py"), str(NOTEBOOK)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
