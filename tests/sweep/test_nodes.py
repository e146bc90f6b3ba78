"""Runs made on another machine: what is stored of it, and what is refused."""

import json
from pathlib import Path

import pytest
from fake_execute import faulty, instant, outcome
from fake_runs import any_federation, grid, plan_for
from scripted import Scripted

from bench.cli.main import main
from bench.engine.result import RunResult
from bench.environment import describe
from bench.grids import expand
from bench.spec import RunSpec
from bench.store import open_store
from bench.sweep import engines, fingerprint, nodes
from bench.sweep.clock import now
from bench.sweep.devices import Slots
from bench.sweep.federations import build_all
from bench.sweep.interrupts import Interrupts
from bench.sweep.pool import Lost
from bench.sweep.worker import Order


def spec(seed: int) -> RunSpec:
    made = expand(grid(methods=("local",), seeds=(seed,)))[0].spec
    assert made is not None
    return made


def order(seed: int) -> nodes.NodeOrder:
    return nodes.order_for_node(Order(spec(seed).canonical(), (), "cpu", 1))


def test_a_run_comes_back_with_the_machine_that_made_it() -> None:
    made = nodes.attempt(instant, order(0), None, True, 60, False)
    assert isinstance(made, nodes.NodeResult)
    assert made.environment == describe("cpu", 1)
    expected = outcome(spec(0).canonical())
    assert made.state == "done"
    assert made.correct["trained", "test"].tolist() == expected.correct["trained", "test"].tolist()


def test_folders_are_the_same_wherever_a_node_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = nodes.order_for_node(Order(spec(0).canonical(), ("raw", "/data"), "cpu", 1))
    assert made.roots == (str(tmp_path / "raw"), "/data")


def test_a_kill_is_lost_and_an_exit_has_failed() -> None:
    assert nodes.attempt(faulty, order(2), None, True, 60, False) == Lost(
        "the worker process died (killed by signal 9)", sigkill=False
    )
    ended = nodes.attempt(faulty, order(1), None, True, 60, False)
    assert isinstance(ended, nodes.NodeResult)
    assert (ended.state, ended.reason) == ("failed", "the worker process died (exit code 3)")


def test_other_sources_make_no_run() -> None:
    mine = order(0)
    assert mine.source == fingerprint.code("local").source
    assert nodes.WithSameSources(instant)(mine).state == "done"
    other = nodes.NodeOrder(mine.spec, (), "cpu", 1, source="0" * 64)
    ended = nodes.attempt(instant, other, None, True, 60, False)
    assert isinstance(ended, nodes.NodeResult)
    assert (ended.state, ended.raised) == ("failed", False)
    assert "expected the sweep's sources of bench on every machine" in ended.reason


def test_the_node_is_stored_and_never_this_machine_for_one_that_is_unknown(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'bench.db'}"
    steps = plan_for(url, expand(grid(methods=("local",), seeds=(0, 1)))).to_run
    prepared = build_all((step.spec for step in steps), (), any_federation)
    made = nodes.NodeResult(
        **vars(outcome(steps[0].spec.canonical())) | {"device": "cuda:0"},
        environment={"processor": "a node's", "threads": 1},
    )
    interrupts = Interrupts(print)
    with open_store(url, create=True) as store, nodes.NodeWriter(store, prepared, 1, interrupts) as writer:
        writer.save(steps[0], made, now())
        writer.save(steps[1], RunResult("failed", "lost", device="cuda:0"), now())
        rows = store.environments().set_index("id")["description"]
        runs = store.runs().set_index("seed")["environment_id"]
    found = {seed: rows[runs[seed]] for seed in (0, 1)}
    decoded = {seed: json.loads(each) if isinstance(each, str) else each for seed, each in found.items()}
    assert decoded == {0: {"processor": "a node's", "threads": 1}, 1: {}}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--address", "auto"], "--address goes with --engine ray"),
        (["--slurm", "partition=gpu"], "--slurm goes with --engine slurm"),
        (["--engine", "slurm", "--address", "auto"], "--address goes with --engine ray, got --engine slurm"),
        (["--engine", "ray", "--devices", "cuda:1"], "--devices expects cpu or cuda with --engine ray"),
        (["--engine", "slurm", "--jobs", "0"], "--jobs expects at least 1, got 0"),
        (["--engine", "slurm", "--slurm", "partition"], "'partition'"),
        (["--engine", "slurm", "--slurm", "=3"], "'=3'"),
        (["--engine", "slurm", "--slurm", "mem_gb="], "'mem_gb='"),
        (["--engine", "ray", "--probe"], "--probe measures this machine"),
        (["--engine", "rya"], "rya"),
    ],
)
def test_what_does_not_go_together_is_refused_with_and_without_the_extras(
    options: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    with pytest.raises(SystemExit) as ended:
        main(["sweep", "-d", "cora", "-m", "local", *options])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("engine", ["ray", "slurm"])
def test_a_missing_extra_is_named(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as ended:
        main(["sweep", "-d", "cora", "-m", "local", "--engine", engine])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said == (
        f"bench: --engine {engine} needs the extra '{engine}': pip install 'pfl-bench[{engine}]'\n"
    )


@pytest.mark.slow
def test_a_run_that_must_be_alone_on_its_node_waits_for_no_other_node(tmp_path: Path) -> None:
    work = Scripted(tmp_path)
    planned = expand(grid(methods=("local",), seeds=(0, 1)))
    script = {"local 3 0": ["done 6"], "local 3 1": ["oom", "done"]}
    work.sweep(planned, script, Slots(("cpu",) * 2, 1, elsewhere=True))
    assert {row["state"] for row in work.stored().values()} == {"done"}
    tries = work.attempts("local 3 1")
    assert [each["shrink"] for each in tries] == [1, 1], "alone first, then smaller"
    assert tries[1]["began"] < work.ended("local 3 0")
