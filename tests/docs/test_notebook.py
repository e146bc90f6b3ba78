"""docs/notebook.ipynb runs, and shows what its code gives."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def test_its_outputs_are_there_and_small() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    pictures = [output["data"].get("image/png", "") for cell in code for output in cell["outputs"]]
    assert all(cell["outputs"] for cell in code)
    assert max(map(len, pictures)) * 3 / 4 < 60_000
    assert NOTEBOOK.stat().st_size < 200_000


@pytest.mark.slow
def test_its_cells_run_in_order_and_give_what_it_shows(tmp_path: Path) -> None:
    environment = {**os.environ, "BENCH_HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(ROOT / ".ci" / "notebook.py"), str(NOTEBOOK)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
