"""What a plan says of stored and missing runs, what those will take, and how people and programs see it."""

from __future__ import annotations

import io
from typing import get_args

import pytest
from fake_execute import outcome
from fake_runs import grid, have, stored, took
from rich.console import Console

from bench import engine
from bench.cli.sweep import plan_table
from bench.engine.result import RunResult
from bench.grids import expand
from bench.resolve import resolve
from bench.runner import Level, display, fingerprint
from bench.runner.display import line
from bench.runner.plan import Estimator, make_plan, to_run
from bench.spec import RunSpec

pytestmark = pytest.mark.usefixtures("older_code_exists")


def spec_of(
    method: str = "local", seed: int = 9, clients: int = 3, rounds: int = 100, epochs: int = 1
) -> RunSpec:
    overrides = {"protocol.rounds": rounds, "protocol.local_epochs": epochs}
    return resolve("cora", "non-overlapping", clients, method, seed, overrides)


@pytest.mark.parametrize(
    ("state", "numerics", "source", "expected"),
    [
        # numerics of the method and the engine beside those installed; status, to run, level to redo
        (None, (0, 0), None, ("missing", True, "")),
        ("done", (0, 0), "other", ("done", False, "changed")),
        ("done", (0, 0), None, ("done", False, "")),
        ("diverged", (0, 0), None, ("diverged", False, "")),
        ("not_applicable", (0, 0), None, ("not_applicable", False, "")),
        ("failed", (0, 0), None, ("failed", True, "failed")),
        ("oom", (0, 0), None, ("oom", True, "failed")),
        ("no_data", (0, 0), None, ("missing", True, "")),
        ("done", (-1, 0), None, ("stale", True, "stale")),
        ("diverged", (-1, 0), "other", ("stale", True, "stale")),
        ("done", (0, -1), None, ("stale", True, "stale")),
        ("done", (1, 0), None, ("done", False, "")),
    ],
)
def test_status_of_stored_runs(
    state: str | None, numerics: tuple[int, int], source: str | None, expected: tuple[str, bool, str]
) -> None:
    """Without the data, what is settled stays so, and the rest is no_data; the sweep tries to get them."""
    planned = expand(grid(methods=("local",), seeds=(0,)))
    rows = {}
    if state is not None:
        row = stored(state, 2 + numerics[0], engine.NUMERICS + numerics[1], source)
        rows[planned[0].spec.hash] = row
    (step,) = make_plan(planned, rows, have)
    assert (step.status, step.to_run, step.changed) == (*expected[:2], expected[2] == "changed")
    for level in get_args(Level):
        (again,) = make_plan(planned, rows, have, level)
        assert again.to_run == (level == expected[2])
    (step,) = make_plan(planned, rows, lambda dataset: "no")
    assert (step.status == "no_data") == expected[1]


def test_runs_of_one_spec_are_done_once() -> None:
    plan = make_plan(expand(grid(methods=("fedavg", "fedavg_ft"), seeds=(0,))), {}, have)
    assert len(plan) == 2
    assert [step.planned.method for step in to_run(plan)] == ["fedavg"]


# What runs take -------------------------------------------------------------------------------------


def test_times_are_scaled_by_rounds_and_epochs_of_like_runs_on_such_a_device_only() -> None:
    # Seconds per local epoch: 0.5, 1 and 3; the median is 1.
    history = [
        took(spec_of(rounds=10, epochs=2), 10.0),
        took(spec_of(rounds=20), 20.0),
        took(spec_of(rounds=5, epochs=4), 60.0),
        took(spec_of(rounds=20, clients=4), 99.0),
        took(spec_of(rounds=20), 8.0, "cuda:1"),
        took(spec_of(rounds=20), 5.0, state="failed"),
    ]
    wanted = spec_of(rounds=20, epochs=2)
    assert Estimator(history, "cpu").seconds(wanted) == 40.0
    assert Estimator(history, "cuda:0").seconds(wanted) == 16.0
    assert Estimator(history, "cpu").seconds(spec_of("fedavg")) is None
    assert Estimator(history[:1], "cuda").seconds(wanted) is None


def test_runs_of_as_many_epochs_tell_what_a_run_takes() -> None:
    """A generator that is trained once, for 300 s, is most of a short run and little of a long one."""
    short, long = took(spec_of(), 300 + 100 * 0.3), took(spec_of(epochs=10), 300 + 1000 * 0.3)
    estimator = Estimator([short] * 3 + [long], "cpu")  # a median over all epochs would be the short ones'
    assert estimator.seconds(spec_of(epochs=10)) == pytest.approx(600)
    assert estimator.seconds(spec_of(rounds=50, epochs=20)) == pytest.approx(600)
    assert estimator.seconds(spec_of()) == pytest.approx(330)
    assert estimator.seconds(spec_of(rounds=200, epochs=10)) == pytest.approx(1200)  # of what is nearest


def test_where_no_like_run_is_known_here_that_of_another_machine_tells() -> None:
    there = [took(spec_of(), 50), took(spec_of("fedavg"), 60)]
    estimator = Estimator([took(spec_of(), 4)], "cpu", there)
    assert [estimator.seconds(spec_of(method)) for method in ("local", "fedavg")] == [4, 60]
    assert Estimator([], "cuda", there).seconds(spec_of()) is None


# As people and programs see it ----------------------------------------------------------------------


def test_durations_as_people_say_them() -> None:
    seconds = (0.0, 0.25, 9.94, 9.96, 59.4, 59.6, 5360.0, 5400.0)
    said = ["0 s", "0.2 s", "9.9 s", "10 s", "59 s", "1 min", "89 min", "1.5 h"]
    assert [display.duration(each) for each in seconds] == said


@pytest.mark.parametrize(
    ("seconds", "slots", "expected", "time"),
    [
        ((3600.0, 10.0), 2, 3600.0, "60 min"),
        ((3600.0, 10.0), 1, 3610.0, "60 min"),
        ((50.0, 20.0, 50.0), 2, 60.0, "1 min"),
        ((50.0, 20.0, 50.0), 8, 50.0, "50 s"),
        ((40.0, None), 2, 40.0, "40 s"),
        ((None, None), 2, None, "unknown"),
    ],
)
def test_what_is_to_do_and_how_long_it_takes(
    seconds: tuple[float | None, ...], slots: int, expected: float | None, time: str
) -> None:
    """Beside every run is one whose data are not at hand, whose time counts as unknown."""
    methods = ("local", "fedavg", "fedprox")[: len(seconds)]
    planned = expand(grid(("cora", "citeseer"), methods, seeds=(0,)))
    like = zip(planned, seconds, strict=False)  # Cora's come first
    estimator = Estimator([took(run.spec, each) for run, each in like if each], "cpu")
    plan = make_plan(planned, {}, lambda dataset: "no" * (dataset != "cora"))
    runs = len(seconds)
    text = display.summary(plan, estimator, slots)
    assert text.startswith(f"{2 * runs} runs: {runs} missing, {runs} no data; {2 * runs} to run, time {time}")
    tree = display.as_json(plan, estimator, slots)
    known = [each for each in seconds if each]
    assert (tree["seconds"], tree["unknown_times"]) == (pytest.approx(expected), seconds.count(None))
    assert tree["device_hours"] == (pytest.approx(sum(known) / 3600) if known else None)
    assert display.as_json([], estimator, slots)["seconds"] == 0.0


def test_a_dry_run_says_what_is_stored_and_what_the_rest_costs() -> None:
    planned = expand(grid(methods=("local", "fedavg"), seeds=(0, 1, 2)))
    by_name = {plan.names[3:]: plan.spec.hash for plan in planned}
    numerics = fingerprint.code("fedavg").method_numerics
    rows = {
        by_name["local", 0]: stored("done", 2),
        by_name["local", 1]: stored("done", 1),
        by_name["local", 2]: stored("failed", 2),
        by_name["fedavg", 0]: stored("done", numerics, source="other"),
        by_name["fedavg", 1]: stored("diverged", numerics, source=fingerprint.code("fedavg").source),
    }
    plan = make_plan(planned, rows, have)
    estimator = Estimator([took(planned[0].spec, 120.0)], "cpu")
    out = io.StringIO()
    Console(file=out, width=120).print(plan_table(plan, estimator))
    text = " ".join(out.getvalue().split())
    assert "local 1 done, 1 failed, 1 stale 4 min" in text
    assert "fedavg 1 changed, 1 diverged, 1 missing unknown" in text
    tree = display.as_json(plan, estimator, 2, {by_name["local", 2], by_name["local", 0]})
    assert (tree["counts"]["missing"], tree["to_run"], tree["shipped"]) == (1, 3, 1)


@pytest.mark.parametrize("method", ["local", "fedavg"])  # of which one deploys what is received
def test_a_finished_run_is_summed_up_in_a_line(method: str) -> None:
    (step,) = make_plan(expand(grid(methods=(method,), seeds=(0,))), {}, have)
    result = outcome(step.spec)
    for stage, split in result.correct:
        result.correct[stage, split][:] = 0
    # Best validation is in row 1; of three clients with five samples, 5, 4 and 0 are right there.
    result.correct["trained", "val"][:] = [[0, 1, 1], [1, 1, 1]]
    result.correct["trained", "test"] = result.correct["trained", "test"].copy()
    result.correct["trained", "test"][:] = [[5, 5, 5], [5, 4, 0]]
    assert line(step, result).endswith("test 60.0 %")
    failed = RunResult("not_applicable", "no such thing")
    assert line(step, failed).endswith("seed 0: not applicable: no such thing")
