"""Runs made on another machine: what comes back of them, what is stored, and what is refused."""

import json
from pathlib import Path

import pytest
from fake_execute import faulty, instant, outcome
from fake_runs import any_federation, grid, plan_for

from bench.engine.result import RunResult
from bench.environment import describe
from bench.grids import expand
from bench.spec import RunSpec
from bench.store import open_store
from bench.store.store import now
from bench.sweep import cluster, fingerprint
from bench.sweep.federations import build_all
from bench.sweep.order import Order
from bench.sweep.policy import Slots
from bench.sweep.workers import Lost
from bench.sweep.writer import Writer


def spec(seed: int) -> RunSpec:
    return expand(grid(methods=("local",), seeds=(seed,)))[0].spec


def order(seed: int) -> Order:
    return cluster.order_for_node(Order(spec(seed), (), "cpu", 1))


def test_a_run_comes_back_with_the_machine_that_made_it() -> None:
    result = cluster.attempt(instant, order(0), 60, False)
    assert isinstance(result, cluster.NodeResult)
    assert result.environment == describe("cpu", 1)
    expected = outcome(spec(0))
    assert result.state == "done"
    assert result.correct["trained", "test"].tolist() == expected.correct["trained", "test"].tolist()


def test_folders_are_the_same_wherever_a_node_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    node_order = cluster.order_for_node(Order(spec(0), ("raw", "/data"), "cpu", 1))
    assert node_order.roots == (str(tmp_path / "raw"), "/data")


def test_a_kill_is_lost_and_an_exit_has_failed() -> None:
    assert cluster.attempt(faulty, order(2), 60, False) == Lost(
        "the worker process died (killed by signal 9)"
    )
    ended = cluster.attempt(faulty, order(1), 60, False)
    assert isinstance(ended, cluster.NodeResult)
    assert (ended.state, ended.reason) == ("failed", "the worker process died (exit code 3)")


def test_a_node_is_told_the_sources_of_this_machine() -> None:
    assert order(0).source == fingerprint.code("local").source


def test_the_node_is_stored_and_never_this_machine_for_one_that_is_unknown(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'bench.db'}"
    steps = plan_for(url, expand(grid(methods=("local",), seeds=(0, 1)))).to_run
    prepared, _ = build_all((step.spec for step in steps), (), any_federation)
    node_result = cluster.NodeResult(
        **vars(outcome(steps[0].spec)) | {"device": "cuda:0"},
        environment={"processor": "a node's", "threads": 1},
    )
    elsewhere = Slots(("cuda:0",), 1, elsewhere=True)
    with open_store(url, create=True) as store, Writer(store, prepared, elsewhere, bool) as writer:
        writer.save(steps[0], node_result, now())
        writer.save(steps[1], RunResult("failed", "lost", device="cuda:0"), now())
        rows = store.environments().set_index("id")["description"]
        runs = store.runs().set_index("seed")["environment_id"]
    rows_by_seed = {seed: rows[runs[seed]] for seed in (0, 1)}
    decoded = {
        seed: json.loads(each) if isinstance(each, str) else each for seed, each in rows_by_seed.items()
    }
    assert decoded == {0: {"processor": "a node's", "threads": 1}, 1: {}}
