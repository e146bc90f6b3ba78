"""What tests of plans share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench import engine
from bench.engine.methods import METHODS
from bench.runner import fingerprint


@pytest.fixture
def older_code_exists(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The installed code is of the second version, so that there can be runs of a first one."""
    monkeypatch.setattr(engine, "NUMERICS", engine.NUMERICS + 1)
    monkeypatch.setattr(METHODS.named("local"), "numerics", 2)
    fingerprint.code.cache_clear()
    yield
    fingerprint.code.cache_clear()
