"""What is timed, and how: rounds by a clock that the test holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from toy_data import CIRCLE

from bench import registry
from bench.engine.methods import METHODS
from bench.engine.run import Run
from bench.timing.speed import Case, Row, cases, measure


@pytest.fixture(autouse=True)
def circle(home: Path, plugins: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "circle.py").write_text(CIRCLE)
    monkeypatch.setenv(registry.PLUGINS, str(tmp_path / "circle.py"))
    registry.forget()
    yield
    torch.set_flush_denormal(False)  # as in other tests


def timed(case: Case, rounds: int = 1, **overrides: Any) -> Row:
    """A row of the table, measured in this process."""
    return measure(case, rounds, (), "cpu", 1, overrides)


def test_a_graph_is_timed_against_the_reference_and_a_hypergraph_without() -> None:
    row = timed(Case("circle", "label-dirichlet", "fedhgn_hc", 2))
    assert (row.dataset, row.method, row.model, row.clients) == ("circle", "fedhgn_hc", "hgnn", 2)
    assert row.sequential_seconds_per_round is row.ratio is None
    row = timed(Case("cora", "non-overlapping", "fedavg", 10))
    assert row.sequential_seconds_per_round is not None
    assert row.ratio == row.sequential_seconds_per_round / row.seconds_per_round


def test_a_method_is_timed_beside_fedavg_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that only steps move: an epoch of FedAvg's takes one second, of any other's three."""
    now = 0.0
    order = []

    class Timed(Run):
        def step(self, round: int) -> None:
            nonlocal now
            order.append((self.spec.method, round))
            now += self.spec.protocol.local_epochs * (1.0 if self.spec.method == "fedavg" else 3.0)
            super().step(round)

    monkeypatch.setattr("bench.timing.speed.Run", Timed)
    monkeypatch.setattr("bench.timing.speed.time", SimpleNamespace(perf_counter=lambda: now))
    case = Case("cora", "non-overlapping", "fedprox", 3, reference=False, base="fedavg")
    row = timed(case, 2, **{"protocol.local_epochs": 2})
    assert (row.seconds_per_round, row.factor) == (6.0, 3.0)
    assert order[-4:] == [("fedprox", 2), ("fedavg", 2), ("fedprox", 3), ("fedavg", 3)]
    alone = Case("cora", "non-overlapping", "fedavg", 3, reference=False)
    row = timed(alone, 2, **{"protocol.local_epochs": 2})
    assert (row.seconds_per_round, row.factor) == (2.0, None)


def test_what_is_timed() -> None:
    """All methods are those that train, each beside FedAvg, which is first."""
    chosen = cases("circle", "label-dirichlet", (2,), ("all",))
    names = {
        name
        for name, kind in METHODS.all().items()
        if "hypergraph" in kind.families and kind.trains and kind.reads is None
    }
    assert {case.method for case in chosen} == names
    assert [case.method for case in chosen if case.base is None] == [chosen[0].method] == ["fedavg"]
    assert {case.base for case in chosen[1:]} == {"fedavg"}
    assert {case.clients for case in cases("cifar10-sample", "case-study", (), ("fedprox",))} == {20}
