"""Plans, as people and programs see them."""

from __future__ import annotations

import io

import pytest
from fake_execute import outcome
from fake_runs import grid, have, stored, took
from rich.console import Console

from bench.engine.result import RunResult
from bench.grids import expand
from bench.resolve import resolve
from bench.sweep import display, fingerprint
from bench.sweep.display import Display, line
from bench.sweep.plan import make_plan

pytestmark = pytest.mark.usefixtures("older_code_exists")


def test_durations_as_people_say_them() -> None:
    seconds = (0.0, 0.03, 0.25, 9.94, 9.96, 59.4, 59.6, 5360.0, 5400.0)
    said = ["0 s", "under 0.1 s", "0.2 s", "9.9 s", "10 s", "59 s", "1 min", "89 min", "1.5 h"]
    assert [display.duration(each) for each in seconds] == said


@pytest.mark.parametrize(
    ("seconds", "slots", "expected", "time"),
    [
        ((3600.0, 10.0), 2, 3600.0, "60 min on 2 at a time"),
        ((3600.0, 10.0), 1, 3610.0, "60 min on 1 at a time"),
        ((3600.0,), 2, 3600.0, "60 min on 2 at a time"),
        ((50.0, 20.0, 50.0), 2, 60.0, "1 min on 2 at a time"),
        ((50.0, 20.0, 50.0), 8, 50.0, "50 s on 8 at a time"),
    ],
)
def test_more_slots_than_runs_shorten_nothing(
    seconds: tuple[float, ...], slots: int, expected: float, time: str
) -> None:
    """Beside every run is one whose data are not at hand, which takes no slot."""
    methods = ("local", "fedavg", "fedprox")[: len(seconds)]
    history = [
        took(resolve("cora", "non-overlapping", 3, method, 0), each)
        for method, each in zip(methods, seconds, strict=True)
    ]
    planned = expand(grid(("cora", "citeseer"), methods, seeds=(0,)))
    plan = make_plan(planned, {}, lambda dataset: "no" * (dataset != "cora")).timed(history, "cpu")
    runs = len(seconds)
    assert display.to_do(plan, slots) == (
        f"{runs} to run, time {time}; {runs} more need data that the sweep tries to download"
    )
    tree = display.as_json(plan, slots, None)
    assert tree["seconds"] == pytest.approx(expected)
    assert tree["device_hours"] == pytest.approx(sum(seconds) / 3600)


def test_a_dry_run_says_what_is_exact_compatible_and_stale_and_what_it_costs() -> None:
    planned = expand(grid(methods=("local", "fedavg"), seeds=(0, 1, 2)))
    by_name = {plan.names[3:]: plan.spec.hash for plan in planned}
    here = fingerprint.code("fedavg")
    rows = {
        ("local", 0): stored("done", 2),
        ("local", 1): stored("done", 1),
        ("local", 2): stored("failed", 2),
        ("fedavg", 0): stored("done", here.method_numerics, source="other"),
        ("fedavg", 1): stored("diverged", here.method_numerics, source=here.source),
    }
    states = {by_name[name]: row for name, row in rows.items()}
    history = [took(planned[0].spec, 120.0)]
    plan = make_plan(planned, states, have).timed(history, "cpu")
    out = io.StringIO()
    Console(file=out, width=120).print(display.table(plan))
    text = " ".join(out.getvalue().split())
    assert "local 1 done, 1 failed, 1 stale 4 min" in text
    assert "fedavg 1 changed, 1 diverged, 1 missing unknown" in text
    tree = display.as_json(plan, 2, 2000.0)
    levels = {level: row["runs"] for level, row in tree["levels"].items()}
    assert levels == {"exact": 2, "compatible": 1, "stale": 1}
    assert [run["spec_hash"] for run in tree["runs"]] == [step.spec.hash for step in plan.steps]
    assert (tree["counts"]["missing"], tree["to_run"]) == (1, 3)
    assert (tree["seconds"], tree["device_hours"], tree["bytes"]) == (120.0, pytest.approx(1 / 15), 6000)


@pytest.mark.parametrize("is_terminal", [False, True])
def test_the_lines_are_the_same_with_a_bar_and_without(is_terminal: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=is_terminal, width=120)
    planned = expand(grid(methods=("local",), seeds=(0,)))
    step = make_plan(planned, {}, lambda dataset: "").steps[0]
    with Display(console) as display:
        display.started(1)
        display.finished(step, RunResult("failed", "reason [red]"))
    text = console.file.getvalue()
    line_of_run = "[1/1] local cora non-overlapping 3 seed 0: failed: reason [red]\n"
    if is_terminal:
        assert line_of_run in text
        assert "1/1" in text.replace(line_of_run, "")
    else:
        assert text == line_of_run


@pytest.mark.parametrize("method", ["local", "fedavg"])  # of which one deploys what is received
def test_a_finished_run_is_summed_up_in_a_line(method: str) -> None:
    step = make_plan(expand(grid(methods=(method,), seeds=(0,))), {}, lambda dataset: "").steps[0]
    result = outcome(step.spec)
    for stage, split in result.correct:
        result.correct[stage, split][:] = 0
    # Best validation is in row 1; of three clients with five samples, 5, 4 and 0 are right there.
    result.correct["trained", "val"][:] = [[0, 1, 1], [1, 1, 1]]
    result.correct["trained", "test"] = result.correct["trained", "test"].copy()
    result.correct["trained", "test"][:] = [[5, 5, 5], [5, 4, 0]]
    assert line(step, result) == f"{method} cora non-overlapping 3 seed 0: done 0.5 s, test 60.0 %"
    failed = RunResult("not_applicable", "no such thing")
    assert line(step, failed).endswith("seed 0: not applicable: no such thing")
