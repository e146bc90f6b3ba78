"""``bench.run``, ``bench.sweep`` and ``bench.compare``: the numbers of the commands, from Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import api, registry
from bench.engine.method import Method
from bench.engine.methods import METHODS
from bench.methods.fedavg import FedAvg
from bench.methods.local import Local
from bench.reports.fedsheafhn import FedSheafHN

ROUNDS = {"protocol.rounds": 2}
EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


@pytest.fixture(autouse=True)
def _own_methods(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(METHODS, "added", {})
    yield
    monkeypatch.undo()
    registry.forget()


def in_a_cell(base: type[Method]) -> type[Method]:
    """A method that is a base under another name, as a cell of a notebook defines it."""
    names = {"name": "mine", "title": "Mine", "__module__": "__main__", "__doc__": base.__doc__}
    return type("Mine", (base,), {**names, "families": ("graph",)})


def test_a_run_has_the_numbers_that_a_sweep_stores() -> None:
    mine = in_a_cell(FedAvg)
    one = api.run(mine, "cora", clients=3, rounds=2)
    stored = api.sweep([mine, "majority"], ["cora"], [3], settings=ROUNDS)
    assert stored.set_index("method").loc["mine", "test"] == pytest.approx(one.accuracy)
    assert one.state == "done"
    assert one.clients["accuracy"].mean() == pytest.approx(one.accuracy)
    assert one.curve["evaluation"].max() == one.spec.protocol.rounds == 2
    assert one.curve["accuracy"].max() >= one.accuracy


def test_a_method_of_a_cell_is_run_again_as_the_cell_is_now() -> None:
    first = api.sweep([in_a_cell(FedAvg)], ["cora"], [3], [1], settings=ROUNDS)
    again = api.sweep([in_a_cell(Local)], ["cora"], [3], [1], settings=ROUNDS)
    assert len(again) == len(first) == 1
    assert again["test"].item() != pytest.approx(first["test"].item())
    local = api.run("local", "cora", clients=3, seed=1, rounds=2)
    assert again["test"].item() == pytest.approx(local.accuracy)


def test_data_of_ones_own_need_no_study_for_a_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(registry.PLUGINS, str(EXAMPLES / "friends.py"))
    registry.forget()
    monkeypatch.setenv("BENCH_DATA", str(EXAMPLES / "data"))
    monkeypatch.setattr(FedSheafHN, "lines", FedSheafHN.lines[:3])
    standings = api.compare(in_a_cell(FedAvg), "friends", clients=5, seeds=(0, 1), settings=ROUNDS)
    rows = standings.set_index("method")
    assert set(rows.index) == {"local", "fedavg", "fedprox", "mine"}
    assert rows.loc["mine", "mean"] == pytest.approx(rows.loc["fedavg", "mean"])
    assert rows.loc["fedavg", "difference"] == 0
    ahead = rows.loc["mine", "mean"] - rows["mean"]
    assert rows["difference"].to_numpy() == pytest.approx(ahead.where(rows.index != "mine"), nan_ok=True)
