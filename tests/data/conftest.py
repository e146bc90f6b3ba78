from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import download

UNPACK = Path(__file__).resolve().parents[3] / "shared" / "data" / "unpack.py"


@pytest.fixture(scope="session")
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the original raw files, as far as they are to be had."""
    named = os.environ.get("BENCH_DATA")
    if named:
        return Path(named)
    if not UNPACK.exists():
        pytest.skip("no raw files at hand: BENCH_DATA is not set")
    root = tmp_path_factory.mktemp("raw")
    subprocess.run([sys.executable, UNPACK, root], check=True, capture_output=True)
    return root


@pytest.fixture(scope="session")
def planetoid_root(data_root: Path) -> Path:
    """The folder of the data root that has Planetoid's three sets of raw files."""
    if not (data_root / "planetoid" / "Cora" / "raw").exists():
        pytest.skip("the data root has no raw files of Planetoid")
    return data_root / "planetoid"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty BENCH_HOME that does not exist yet, no data root, no memory of silent hosts."""
    for name in ("BENCH_DATA", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(download, "_silent", {})
    return tmp_path / "home"
