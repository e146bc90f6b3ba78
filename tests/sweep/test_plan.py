"""What a plan says of stored and missing runs, and what those will take."""

import pytest
from fake_runs import grid, have, stored, took

from bench import engine
from bench.dataset import DATASETS
from bench.grids import expand
from bench.resolve import resolve
from bench.sources import RawFile
from bench.spec import RunSpec
from bench.store.store import Stored
from bench.sweep import display
from bench.sweep.plan import Estimator, Plan, make_plan

pytestmark = pytest.mark.usefixtures("older_code_exists")


def status(old: Stored | None, lacking=have) -> tuple[str, bool, bool]:
    planned = expand(grid(methods=("local",), seeds=(0,)))
    plan = make_plan(planned, {planned[0].spec.hash: old} if old else {}, lacking)
    return plan.steps[0].status, plan.steps[0].to_run, plan.steps[0].changed


def test_status_of_stored_runs() -> None:
    now = {"method": 2, "numerics": engine.NUMERICS}
    assert status(None) == ("missing", True, False)
    assert status(stored("done", **now, source="other")) == ("done", False, True)
    for state, expected, to_run in (
        ("done", "done", False),
        ("diverged", "diverged", False),
        ("not_applicable", "not_applicable", False),
        ("failed", "failed", True),
        ("oom", "oom", True),
        ("no_data", "missing", True),
    ):
        assert status(stored(state, **now)) == (expected, to_run, False)
    older_engine = {"method": 2, "numerics": engine.NUMERICS - 1}
    for older in (stored("done", 1), stored("diverged", 1), stored("done", **older_engine)):
        assert status(older) == ("stale", True, False)
    assert status(stored("done", 3)) == ("done", False, False), "newer is not stale"


def test_data_that_is_not_at_hand() -> None:
    now = {"method": 2, "numerics": engine.NUMERICS}
    assert status(None, lambda dataset: f"no {dataset}") == ("no_data", True, False)
    assert status(stored("done", **now), lambda dataset: "no") == ("done", False, False)


def test_times_are_scaled_by_rounds_and_epochs_of_like_runs_only() -> None:
    def timing(rounds: int, epochs: int, seconds: float, method: str = "local", clients: int = 3) -> Stored:
        overrides = {"protocol.rounds": rounds, "protocol.local_epochs": epochs}
        spec = resolve("cora", "non-overlapping", clients, method, 9, overrides)
        return took(spec, seconds)

    # Seconds per local epoch: 0.5, 1 and 3; the median is 1.
    history = [timing(10, 2, 10.0), timing(20, 1, 20.0), timing(5, 4, 60.0), timing(20, 1, 99.0, clients=4)]
    overrides = {"protocol.rounds": 20, "protocol.local_epochs": 2}
    plan = make_plan(expand(grid(), overrides=overrides), {}, have).timed(history, "cpu")
    times = {step.planned.names[3:]: step.seconds for step in plan.steps}
    assert times == {("local", 0): 40.0, ("local", 1): 40.0, ("fedavg", 0): None, ("fedavg", 1): None}
    assert (plan.times, plan.unknown_times) == ([40.0, 40.0], 2)
    assert display.to_do(plan, 2) == "4 to run, time 40 s on 2 at a time and 2 runs whose time is unknown"
    assert display.as_json(plan, 2, None)["seconds"] == 40.0
    nobody_knows = make_plan(expand(grid()), {}, have)
    tree = display.as_json(nobody_knows, 2, None)
    assert (tree["seconds"], tree["device_hours"], tree["unknown_times"]) == (None, None, 4)
    assert display.as_json(Plan(()), 2, None)["seconds"] == 0.0
    waiting = make_plan(expand(grid(datasets=("cora", "citeseer"))), {}, lambda name: "no" * (name != "cora"))
    assert len(waiting.to_run) == 8
    assert display.to_do(waiting, 2) == (
        "4 to run, time unknown, no like run is stored; 4 more need data that the sweep tries to download"
    )


def test_files_without_an_address_are_not_said_to_be_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(expand(grid()), {}, lambda name: "no")
    monkeypatch.setattr(DATASETS.named("cora"), "files", (RawFile("a.txt"),))
    assert "4 more need files that have no public address" in display.to_do(plan, 2)
    assert "download" not in display.to_do(plan, 2)


def test_runs_of_one_spec_are_done_once() -> None:
    plan = make_plan(expand(grid(methods=("fedavg", "fedavg_ft"), seeds=(0,))), {}, have)
    assert len(plan.steps) == 2
    assert [step.planned.method for step in plan.to_run] == ["fedavg"]
    assert Plan(()).to_run == []


def test_times_are_of_the_sort_of_device_that_runs_go_to() -> None:
    """Else a laptop's history would tell what a GPU takes, and the other way round."""
    specs = [resolve("cora", "non-overlapping", 3, "local", seed) for seed in range(3)]
    history = [
        took(spec, seconds, device)
        for spec, seconds, device in zip(specs, (90.0, 6.0, 8.0), ("cpu", "cuda:0", "cuda:1"), strict=True)
    ]
    plan = make_plan(expand(grid(methods=("local",), seeds=(7,))), {}, have)
    assert plan.timed(history, "cpu").times == [90.0]
    assert plan.timed(history, "cuda").times == [pytest.approx(7)]
    assert plan.timed(history[:1], "cuda").unknown_times == 1
    estimator = Estimator(history[:1], "cuda")
    estimator.add(specs[1], 6.0, "cpu")
    assert estimator.seconds(specs[0]) is None


def test_runs_of_as_many_epochs_tell_what_a_run_takes() -> None:
    """A generator that is trained once, for 300 s, is most of a short run and little of a long one."""

    def spec(rounds: int, epochs: int, seed: int = 0) -> RunSpec:
        overrides = {"protocol.rounds": rounds, "protocol.local_epochs": epochs}
        return resolve("cora", "non-overlapping", 3, "local", seed, overrides)

    estimator = Estimator([], "cpu")
    for seed in range(3):  # three short runs: a median over all epochs would be theirs
        estimator.add(spec(100, 1, seed), 300 + 100 * 0.3, "cpu")
    estimator.add(spec(100, 10), 300 + 1000 * 0.3, "cpu")
    assert estimator.seconds(spec(100, 10, 7)) == pytest.approx(600)
    assert estimator.seconds(spec(50, 20, 7)) == pytest.approx(600)
    assert estimator.seconds(spec(100, 1, 7)) == pytest.approx(330)
    assert estimator.seconds(spec(200, 10, 7)) == pytest.approx(1200)  # of what is nearest, no curve
    estimator.add(spec(200, 10), 300 + 2000 * 0.3, "cpu")
    assert estimator.seconds(spec(200, 10, 7)) == pytest.approx(900)


def test_where_no_like_run_is_known_here_that_of_another_machine_tells() -> None:
    def timing(method: str, seconds: float) -> Stored:
        return took(resolve("cora", "non-overlapping", 3, method, 9), seconds)

    plan = make_plan(expand(grid(seeds=(7,))), {}, have)
    timed_plan = plan.timed([timing("local", 4)], "cpu", [timing("local", 50), timing("fedavg", 60)])
    times = {step.planned.method: step.seconds for step in timed_plan.steps}
    assert times == {"local": pytest.approx(4), "fedavg": pytest.approx(60)}
    assert plan.timed([], "cuda", [timing("local", 50)]).unknown_times == 2
