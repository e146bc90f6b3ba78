from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def suite_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ``BENCH_HOME`` of the test's own."""
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
