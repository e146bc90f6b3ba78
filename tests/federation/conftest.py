from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from federation_toys import toy

from bench.data import Data
from bench.dataset import DATASETS, Dataset
from bench.errors import NoDataError
from bench.federation.prepared import prepare


@pytest.fixture(autouse=True)
def suite_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ``BENCH_HOME`` of the test's own."""
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def use_toy(monkeypatch: pytest.MonkeyPatch) -> Callable[[Data], type[Dataset]]:
    """Makes the data the data set 'toy', the only one there is."""

    def use(data: Data) -> type[Dataset]:
        kind = toy(data)
        monkeypatch.setattr(DATASETS, "all", lambda: {"toy": kind})
        return kind

    return use


@pytest.fixture
def at_hand() -> Callable[[str], None]:
    """Skips the test where the raw files of a data set are not at hand."""

    def check(name: str) -> None:
        try:
            prepare(name, download=False)
        except NoDataError as error:
            pytest.skip(f"BENCH_DATA names no folder with the raw files of {name}: {error}")

    return check
