from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

UNPACK = Path(__file__).resolve().parents[3] / "shared" / "data" / "unpack.py"


@pytest.fixture(scope="session")
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the original raw files, as far as they are to be had."""
    named = os.environ.get("BENCH_DATA")
    if named:
        return Path(named)
    if not UNPACK.exists():
        pytest.skip("no raw files at hand: BENCH_DATA is not set")
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "raw"  # one for all workers
    with FileLock(f"{root}.lock"):
        if not root.exists():
            part = root.with_name("raw.part")
            subprocess.run([sys.executable, UNPACK, part], check=True, capture_output=True)
            part.rename(root)
    return root


@pytest.fixture(autouse=True)
def nothing_at_hand(home: Path) -> None:
    """No test sees data of whoever starts it, but through ``data_root``."""


@pytest.fixture
def by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data root whose files are taken for the published ones."""
    monkeypatch.setattr("bench.sources.RawFile.mismatch", lambda file, path: "")
    return tmp_path / "root"
