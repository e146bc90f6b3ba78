"""What every test shares: one thread, and small federations (``toy_federations``)."""

from __future__ import annotations

import gc
import os
import signal

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is loaded: small products, shared machines

import pytest
from hypothesis import HealthCheck, settings

from bench.federation.types import Federation

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
