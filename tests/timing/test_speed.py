"""What is timed, and how: rounds by a clock that the test holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from toy_data import CIRCLE

from bench import registry
from bench.engine.run import Run
from bench.timing.reference import SequentialClients
from bench.timing.speed import Case, Row, cases, measure


@pytest.fixture(autouse=True)
def circle(home: Path, plugins: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "circle.py").write_text(CIRCLE)
    monkeypatch.setenv(registry.PLUGINS, str(tmp_path / "circle.py"))
    registry.forget()
    yield
    torch.set_flush_denormal(False)  # as in other tests


def timed(case: Case, rounds: int = 1) -> Row:
    """A row of the table, measured in this process."""
    return measure(case, rounds, (), "cpu", 1)


def test_a_hypergraph_is_timed_without_the_reference() -> None:
    row = timed(Case("circle", "label-dirichlet", "fedhgn_hc", 2))
    assert (row.dataset, row.method, row.model, row.clients) == ("circle", "fedhgn_hc", "hgnn", 2)
    assert row.sequential_seconds_per_round is row.ratio is None


def test_rounds_are_timed_by_a_clock_that_only_they_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """An epoch of the stacked run takes one second, of the sequential one three."""
    now = 0.0

    class Timed(Run):
        def step(self, round: int) -> None:
            nonlocal now
            is_sequential = isinstance(self.clients, SequentialClients)
            now += self.spec.protocol.local_epochs * (3.0 if is_sequential else 1.0)
            super().step(round)

    monkeypatch.setattr("bench.timing.speed.Run", Timed)
    monkeypatch.setattr("bench.timing.speed.time", SimpleNamespace(perf_counter=lambda: now))
    row = timed(Case("cora", "non-overlapping", "fedavg", 10), 2)
    assert (row.seconds_per_round, row.sequential_seconds_per_round, row.ratio) == (3.0, 9.0, 3.0)


def test_what_is_timed_by_default() -> None:
    assert [case.clients for case in cases("cora", "non-overlapping", (), ())] == [10, 50, 100]
    assert cases("cora", "non-overlapping", (3,), ()) == [Case("cora", "non-overlapping", "fedavg", 3)]
    assert {case.clients for case in cases("cifar10-sample", "case-study", (), ("fedprox",))} == {20}
