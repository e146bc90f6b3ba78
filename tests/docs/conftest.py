"""What tests of pages share: commands as a reader types them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import registry

ROOT = Path(__file__).parents[2]


@pytest.fixture
def at_the_top(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No plug-ins before and none left behind; commands are typed at the top of the repository."""
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(registry.PLUGINS, "")
    monkeypatch.chdir(ROOT)
    registry.forget()
    yield
    registry.forget()
