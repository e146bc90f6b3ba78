"""What comes of an order in a process."""

from pathlib import Path

import pytest
from fake_execute import chatty, faulty

from bench.resolve import resolve
from bench.sweep.order import Order, attempt

ORDER = Order(resolve("cora", "non-overlapping", 3, "local", 0), (), "cpu", 1, log=Path("/dev/full"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_under_its_log_fails_no_run(capfd: pytest.CaptureFixture[str]) -> None:
    assert attempt(chatty, ORDER).state == "done"
    failed = attempt(faulty, ORDER)
    assert (failed.state, failed.reason) == ("failed", "ValueError: first line")
    print("seen again")
    assert "seen again" in capfd.readouterr().out
