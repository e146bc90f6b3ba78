"""``bench sweep``, ``bench runs`` and ``bench db`` as functions: what they print, return and write."""

import json
from pathlib import Path

import pytest

from bench.cli.db import check, upgrade
from bench.cli.runs import list_, show
from bench.cli.sweep import sweep
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.grids.published import published_names
from bench.resolve import resolve
from bench.spec import RunSpec
from bench.store.queries import Timing
from bench.sweep.estimate import Estimator
from bench.sweep.probe import _steady

PUBLISHED_ONLY = min(published_names("method") - set(METHODS.all()))
"""A method of some paper's table that the suite does not have yet."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("BENCH_DATA", raising=False)
    return tmp_path / "home"


REQUEST = {
    "dataset": ["cora"],
    "method": ["majority", "local"],
    "clients": [3],
    "set_": ["protocol.rounds=2"],
    "jobs": 1,
    "devices": "cpu",
}


def test_from_a_dry_run_to_a_second_call(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep(**REQUEST, dry_run=True) == 0
    out = capsys.readouterr().out
    assert "2 runs: 2 missing" in out
    assert "2 to run, time unknown" in out
    assert not home.exists(), "a dry run writes nothing"

    assert sweep(**REQUEST) == 0
    out = capsys.readouterr().out
    assert "[1/2] majority cora non-overlapping 3 seed 0: done" in out
    assert "[2/2] local cora non-overlapping 3 seed 0: done" in out
    assert "all 2 runs" not in out

    assert sweep(**REQUEST) == 0
    assert capsys.readouterr().out == "all 2 runs are done\n"
    assert sweep(**REQUEST, as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == {"counts": {"done": 2}, "ran": 0, "left": {}}

    assert sweep(**{**REQUEST, "method": ["local"]}) == 0
    assert capsys.readouterr().out == "the only run is done\n"

    assert sweep(**{**REQUEST, "seed": [1]}, dry_run=True, as_json=True) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["counts"] == {"missing": 2}
    assert plan["unknown_times"] == 0, "like runs are stored"

    list_(method=["local"], as_json=True)
    (run,) = json.loads(capsys.readouterr().out)
    assert (run["dataset"], run["clients"], run["seed"], run["rounds"]) == ("cora", 3, 0, 2)
    assert 0 < run["test"] <= 100
    list_()
    assert "2 runs" in capsys.readouterr().out

    show(str(run["id"]), as_json=True)
    detail = json.loads(capsys.readouterr().out)
    assert detail["command"] == (
        "bench sweep -d cora -s non-overlapping -k 3 -m local --seed 0 --set protocol.rounds=2"
    )
    assert detail["spec"]["protocol"]["rounds"] == 2
    assert detail["accuracy"]["trained test best_val"]["mean"] == pytest.approx(run["test"] / 100, abs=1e-4)
    text = json.dumps(detail["environment"])
    assert str(Path.home()) not in text
    assert str(home) not in text
    show(str(run["id"]))
    assert detail["spec_hash"] in capsys.readouterr().out
    with pytest.raises(RequestError, match="no run 77"):
        show("77")

    check()
    assert "no damage" in capsys.readouterr().out
    upgrade()
    assert "nothing to do" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"grid": "quickstrat"}, "did you mean 'quickstart'"),
        ({"grid": "quickstart", "dataset": ["citeseer"]}, "dataset in this grid"),
        ({"dataset": ["cora"]}, "--grid"),
        ({"dataset": ["cora"], "method": ["fedvg"]}, "did you mean 'fedavg'"),
        ({"dataset": ["cor"], "method": ["fedavg"]}, "did you mean 'cora'"),
        ({"dataset": ["cora"], "method": [PUBLISHED_ONLY]}, "not implemented"),
        ({**REQUEST, "set_": ["protocol.round=3"]}, "did you mean 'rounds'"),
        ({**REQUEST, "set_": ["rounds=3"]}, "--set expects"),
        ({**REQUEST, "seed": [-1]}, "--seed expects 0 or more, got -1"),
        ({**REQUEST, "clients": [100_000]}, "100000"),
        ({**REQUEST, "clients": [99], "set_": ["protocol.split=[1, 49, 50]"]}, "to train on"),
        ({**REQUEST, "clients": [0]}, "--clients expects 1 or more, got 0"),
        ({**REQUEST, "scenario": ["overlaping"]}, "did you mean 'overlapping'"),
        ({**REQUEST, "db": "mysql://x/y"}, "sqlite:///PATH"),
        ({**REQUEST, "jobs": 0}, "--jobs"),
        ({**REQUEST, "devices": "tpu"}, "--devices"),
        ({**REQUEST, "timeout": 0.0}, "--timeout expects more than 0, got 0"),
        ({**REQUEST, "budget_hours": -1.0}, "--budget-hours"),
        ({**REQUEST, "max_failures": 0}, "--max-failures"),
        ({**REQUEST, "max_failures": 2, "fail_fast": True}, "exclude each other"),
    ],
)
def test_a_wrong_request_writes_no_database(home: Path, request_: dict[str, object], message: str) -> None:
    with pytest.raises(RequestError) as caught:
        sweep(**request_)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (home / "bench.db").exists()


def test_a_probe_says_what_unknown_kinds_take_and_stores_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {**REQUEST, "seed": [0, 1], "set_": ["protocol.rounds=60"]}
    assert sweep(**asked, dry_run=True, probe=True, as_json=True) == 0
    captured = capsys.readouterr()
    plan = json.loads(captured.out)
    assert plan["unknown_times"] == 0
    times = {(run["method"], run["seed"]): run["seconds"] for run in plan["runs"]}
    assert times["local", 0] == times["local", 1] > 0
    assert plan["seconds"] == pytest.approx(sum(times.values()))
    assert plan["device_hours"] == pytest.approx(sum(times.values()) / 3600)
    # Two, one and three rounds of one run of local were run, of sixty; majority has one round anyway.
    assert len([line for line in captured.err.splitlines() if ": done" in line]) == 4
    assert not (home / "bench.db").exists()
    assert not (home / "sweeps").exists()


def test_a_probe_counts_what_later_rounds_take() -> None:
    def timing(method: str, rounds: int, seconds: float) -> Timing:
        overrides = {"protocol.rounds": rounds, "protocol.local_epochs": 2}
        spec = resolve("cora", "non-overlapping", 3, method, 0, overrides)
        return Timing("cora", "non-overlapping", 3, method, spec.canonical(), seconds)

    # 10 s once and 2 s a round; a first round that was held up; only one round asked for.
    probed = [timing("local", 2, 99.0), timing("local", 1, 12.0), timing("local", 3, 16.0)]
    probed += [timing("fedavg", 3, 6.0), timing("fedavg", 1, 7.0), timing("fedprox", 1, 4.0)]
    estimator = Estimator(_steady(probed), "cpu")

    def wanted(method: str) -> RunSpec:
        overrides = {"protocol.rounds": 60, "protocol.local_epochs": 2}
        return resolve("cora", "non-overlapping", 3, method, 1, overrides)

    assert estimator.seconds(wanted("local")) == pytest.approx(120)
    assert estimator.seconds(wanted("fedavg")) == pytest.approx(120)
    assert estimator.seconds(wanted("fedprox")) == pytest.approx(240)


def test_reading_without_a_database(home: Path) -> None:
    for command in (list_, check, upgrade):
        with pytest.raises(RequestError, match="no database at"):
            command()
    assert not home.exists()
