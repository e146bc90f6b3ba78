"""What comes of an order in a process."""

from pathlib import Path

import pytest
from fake_execute import chatty, faulty
from fake_runs import grid

from bench.grids import expand
from bench.sweep.order import Order, attempt


def local_order(seed: int = 0) -> Order:
    spec = expand(grid(methods=("local",), seeds=(seed,)))[0].spec
    assert spec is not None
    return Order(spec, (), "cpu", 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_under_its_log_fails_no_run(capfd: pytest.CaptureFixture[str]) -> None:
    assert attempt(chatty, local_order(), Path("/dev/full"), True).state == "done"
    failed = attempt(faulty, local_order(), Path("/dev/full"), True)
    assert (failed.state, failed.reason) == ("failed", "ValueError: first line")
    print("seen again")
    assert "seen again" in capfd.readouterr().out
