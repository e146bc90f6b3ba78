"""``bench speed``: what it times and what it says; how fast that is, is no test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench import speed
from bench.cli.main import main
from bench.data import Hypergraph, Ragged
from bench.dataset import DATASETS, Dataset
from bench.engine.result import RunResult
from bench.federation.build import build
from bench.sources import Sources
from bench.spec import ClientSettings, Protocol, RunSpec

Time = Callable[..., list[dict[str, Any]]]


class Circle(Dataset):
    """A hypergraph of 60 nodes whose hyperedges are three neighbours on a circle."""

    name = "circle"
    title = "Circle"
    family = "hypergraph"
    homepage = ""
    scenarios = ("label-dirichlet",)
    protocol = Protocol(rounds=6, local_epochs=2, split=(30, 20, 40), initial="common")
    client = ClientSettings(model="hgnn", hidden=4)

    def load(self, sources: Sources) -> Hypergraph:
        """Two classes in turns."""
        nodes = np.arange(60)
        hyperedges = Ragged.of([(nodes[:3] + first) % 60 for first in nodes])
        return Hypergraph(np.eye(60, dtype=np.float32), nodes % 2, hyperedges, 2)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Measures in this process, on a machine of known rates."""
    everything = {**DATASETS.all(), "circle": Circle}
    monkeypatch.setattr(DATASETS, "all", lambda: everything)
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(speed, "apart", lambda work, case: work(case))
    monkeypatch.setattr(speed, "measure_machine", lambda device: speed.Machine(1e9, 1e9))
    yield
    torch.set_flush_denormal(False)  # as in other tests


@pytest.fixture
def timed(tmp_path: Path) -> Time:
    """The rows of a request."""

    def rows(*arguments: str) -> list[dict[str, Any]]:
        file = tmp_path / "rows.json"
        with pytest.raises(SystemExit) as caught:
            main(["speed", "--threads", "1", "--out", str(file), *arguments])
        assert caught.value.code == 0
        return list(json.loads(file.read_text()))

    return rows


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The scenarios of the federations that are made."""
    cases = []

    def noted(dataset: str, scenario: str, *rest: Any) -> Any:
        cases.append(scenario)
        return build(dataset, scenario, *rest)

    monkeypatch.setattr(speed, "build", noted)
    return cases


def test_a_hypergraph_is_timed_in_its_own_scenario_without_reference_or_bound(
    timed: Time, built: list[str]
) -> None:
    rows = timed("-d", "circle", "-k", "2", "-m", "fedavg", "-m", "fedhgn_hc", "--rounds", "1")
    assert built == ["label-dirichlet"] * 2
    assert [(row["method"], row["clients"]) for row in rows] == [("fedavg", 2), ("fedhgn_hc", 2)]
    for row in rows:
        assert row["seconds_per_round"] > 0
        assert row["sequential_seconds_per_round"] is row["bound_seconds"] is row["ratio"] is None


def test_a_graph_is_timed_in_its_first_scenario_or_the_one_asked_for(timed: Time, built: list[str]) -> None:
    request = ("-d", "cora", "-k", "10", "-m", "fedavg", "--rounds", "1")
    (row,) = timed(*request)
    assert built == ["non-overlapping"]
    assert row["ratio"] == row["sequential_seconds_per_round"] / row["seconds_per_round"]
    assert row["bound_share"] == row["bound_seconds"] / row["seconds_per_round"]
    timed(*request, "-s", "overlapping")
    assert built[1:] == ["overlapping"]


def test_every_method_is_timed_beside_fedavg_in_turns(timed: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that only steps move: an epoch of FedAvg's takes one second, of any other's three."""
    now = 0.0
    order = []
    step = speed.Run.step

    def timed_step(run: speed.Run, index: int) -> None:
        nonlocal now
        order.append((run.spec.method, index))
        now += run.spec.protocol.local_epochs * (1.0 if run.spec.method == "fedavg" else 3.0)
        step(run, index)

    monkeypatch.setattr(speed.Run, "step", timed_step)
    monkeypatch.setattr(speed.time, "perf_counter", lambda: now)
    monkeypatch.setattr(speed, "every_method", lambda family: ["fedavg", "fedprox"])
    rows = timed("-d", "cora", "-k", "3", "-m", "all", "--rounds", "2", "--set", "protocol.local_epochs=2")
    assert [(row["method"], row["seconds_per_round"], row["factor"]) for row in rows] == [
        ("fedavg", 2.0, None),
        ("fedprox", 6.0, 3.0),
    ]
    assert order[-4:] == [("fedprox", 2), ("fedavg", 2), ("fedprox", 3), ("fedavg", 3)]


def test_a_whole_run_is_the_median_of_three_after_one_to_warm_up(
    timed: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter([100.0, 3.0, 9.0, 4.0])
    specs = []

    def run(spec: RunSpec, *rest: Any) -> RunResult:
        specs.append(spec)
        took = next(seconds)
        return RunResult("done", seconds={"total": took}, peak_memory=int(took) * 2**20)

    monkeypatch.setattr(speed, "run", run)
    (row,) = timed("-d", "circle", "-k", "2", "-m", "fedhgn_hc", "--whole")
    assert {spec.hash for spec in specs} == {specs[0].hash}
    assert specs[0].protocol == Circle.protocol
    assert row == {
        "method": "fedhgn_hc",
        "clients": 2,
        "rounds": 6,
        "local_epochs": 2,
        "seconds": 4.0,
        "peak_mib": 100.0,
    }


def test_whole_runs_are_run_to_their_end(timed: Time, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = timed("-d", "circle", "-k", "2", "--whole")
    assert (row["method"], row["rounds"]) == ("fedavg", 6)
    assert row["seconds"] > 0
    assert f"{row['seconds']:.2f}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (("-m", "all"), {("fedavg", None), ("fedavg", "resnet18"), ("fedprox", None)}),
        ((), {("fedavg", None), ("fedavg", "resnet18")}),
        (("-m", "fedprox"), {("fedprox", None)}),
    ],
)
def test_images_are_timed_with_every_model_against_the_reference(
    request_: tuple[str, ...],
    expected: set[tuple[str, str | None]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cases = []

    def measure(case: speed.Case, **options: Any) -> speed.Row:
        cases.append(case)
        taken = 3.0 if case.method == "fedprox" else 2.0
        subject = case.dataset, case.method, case.model or "cnn", case.clients
        return speed.Row(*subject, taken, None, None, 0.0, None, None, taken / 2.0 if case.base else None)

    monkeypatch.setattr(speed, "measure", measure)
    with pytest.raises(SystemExit) as caught:
        main(["speed", "-d", "cifar10-sample", "--threads", "1", *request_])
    assert caught.value.code == 0
    assert {case.clients for case in cases} == {20}
    assert expected <= {(case.method, case.model) for case in cases}
    assert [case.reference for case in cases] == [
        case.method == "fedavg" or "all" not in request_ for case in cases
    ]
    lines = [line for line in capsys.readouterr().out.splitlines() if "fedprox" in line]
    assert all(("1.50" in line) == ("all" in request_) for line in lines)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (("--whole", "--rounds", "3"), "leave out --rounds"),
        (("--whole", "--set", "protocol.local_epochs=1"), "leave out --rounds and --set"),
        (("-d", "circle", "-k", "2", "--set", "protocol.epochs=1"), "protocol.epochs"),
        (("--devices", "tpu"), "unknown device 'tpu'"),
        (("--threads", "-1"), "--threads expects at least 1"),
        (("--threads", "0"), "--threads expects at least 1"),
        (("--out", "/"), "--out: expected a file"),
        (("--out", "no/such/folder/x.json"), "--out: there is no folder no/such/folder"),
        (("-d", "circle", "-m", "fedavg", "-k", "2", "--rounds", "5"), "which has 6; got 5"),
        (("-d", "circle", "-m", "fedavg", "-k", "2", "--rounds", "0"), "which has 6; got 0"),
        (("-d", "circle", "-m", "majority", "-k", "2"), "which has 1; got 9"),
        (("-d", "circle", "-m", "fedsheafhn", "-k", "2", "--rounds", "1"), "not on hypergraph"),
        (("-d", "circle", "-m", "fedsheafhn", "-k", "2", "--whole"), "not on hypergraph"),
        (("-d", "circle", "-s", "overlapping", "-k", "5"), "use label-dirichlet"),
        (("-d", "cora", "-s", "overlapping", "-k", "7"), "expected a multiple of 5"),
    ],
)
def test_a_wrong_request_is_one_line(
    request_: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["speed", *request_, *(() if "--threads" in request_ else ("--threads", "1"))])
    assert caught.value.code == 2
    line = capsys.readouterr().err
    assert line.startswith("bench: ")
    assert line.count("\n") == 1
    assert reason in line
