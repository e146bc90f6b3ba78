"""What every test shares: one thread, and small federations and data sets made in memory."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is loaded: small products, shared machines

import pytest
from hypothesis import HealthCheck, settings

from bench import registry
from bench.data import Data
from bench.dataset import DATASETS, Dataset
from bench.errors import NoDataError
from bench.federation.types import Federation

RAW_DATA = os.environ.get("BENCH_DATA", "")
"""The folder of raw files that whoever starts the tests names, whatever a test sets."""

settings.register_profile(  # a busy machine is no error of what is tested, nor is one day's luck
    "suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell that starts tests in the background does so
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what tests interrupt would inherit it


def pytest_collection_finish() -> None:
    """Exempt what is imported and collected from garbage collection: every run of a test begins with one,
    which took longer to walk through thousands of tests than many a run.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def seeded_torch() -> None:
    """What a test draws from torch's global generator does not depend on the tests before it."""
    torch = sys.modules.get("torch")  # not loaded for tests that need none
    if torch is not None:
        torch.manual_seed(0)


@pytest.fixture
def tiny() -> Federation:
    """Two clients of three and four nodes, by hand."""
    from toy_federations import tiny_federation

    return tiny_federation()


@pytest.fixture(scope="session")
def federation() -> Federation:
    """Five clients of 5 to 60 nodes with overlapping ids; one has isolated nodes."""
    from toy_federations import random_federation

    return random_federation()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``BENCH_HOME``, which does not exist yet; no raw data."""
    for name in ("BENCH_DATA", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def use_toy(monkeypatch: pytest.MonkeyPatch) -> Callable[[Data], type[Dataset]]:
    """Makes the data the data set 'toy', the only one there is."""
    from toy_data import toy

    def use(data: Data) -> type[Dataset]:
        kind = toy(data)
        monkeypatch.setattr(DATASETS, "all", lambda: {"toy": kind})
        return kind

    return use


@pytest.fixture
def at_hand(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Skips the test where the raw files of a data set are not at hand."""
    from bench.federation.prepared import prepare

    def check(name: str) -> None:
        monkeypatch.setenv("BENCH_DATA", RAW_DATA)
        try:
            prepare(name, download=False)
        except NoDataError as error:
            pytest.skip(f"BENCH_DATA names no folder with the raw files of {name}: {error}")

    return check


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No plug-ins; those of the test are gone after it."""
    monkeypatch.setenv(registry.PLUGINS, "")
    yield
    os.environ[registry.PLUGINS] = ""
    registry.forget()
