"""What short runs say of long ones."""

from __future__ import annotations

import pytest

from bench.resolve import resolve
from bench.spec import RunSpec
from bench.store.queries import Timing
from bench.sweep.plan import Estimator
from bench.sweep.probe import steady_timings


def test_a_probe_counts_what_later_rounds_take() -> None:
    def timing(method: str, rounds: int, seconds: float) -> Timing:
        overrides = {"protocol.rounds": rounds, "protocol.local_epochs": 2}
        spec = resolve("cora", "non-overlapping", 3, method, 0, overrides)
        return Timing("cora", "non-overlapping", 3, method, spec.canonical(), seconds)

    # 10 s once and 2 s a round; a first round that was held up; only one round asked for.
    probed = [timing("local", 2, 99.0), timing("local", 1, 12.0), timing("local", 3, 16.0)]
    probed += [timing("fedavg", 3, 6.0), timing("fedavg", 1, 7.0), timing("fedprox", 1, 4.0)]
    estimator = Estimator(steady_timings(probed), "cpu")

    def wanted(method: str) -> RunSpec:
        overrides = {"protocol.rounds": 60, "protocol.local_epochs": 2}
        return resolve("cora", "non-overlapping", 3, method, 1, overrides)

    assert estimator.seconds(wanted("local")) == pytest.approx(120)
    assert estimator.seconds(wanted("fedavg")) == pytest.approx(120)
    assert estimator.seconds(wanted("fedprox")) == pytest.approx(240)
