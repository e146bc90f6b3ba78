"""What a person sees of a sweep while it runs."""

from __future__ import annotations

import io

import pytest
from fake_execute import outcome
from fake_runs import (
    grid,
)
from rich.console import Console

from bench.engine.result import RunResult
from bench.grids import expand
from bench.sweep.plan import make_plan
from bench.sweep.reporters import Display, line


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
