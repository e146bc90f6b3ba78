"""Where things are kept, by the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.paths import data_roots, default_database, home


def test_a_tilde_is_a_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("BENCH_HOME", raising=False)
    assert home() == tmp_path / ".bench"
    monkeypatch.setenv("BENCH_HOME", "~/results")
    monkeypatch.setenv("BENCH_DATA", "~/data")
    assert data_roots() == (tmp_path / "data", tmp_path / "results" / "data")
    assert default_database() == f"sqlite:///{tmp_path / 'results' / 'bench.db'}"
