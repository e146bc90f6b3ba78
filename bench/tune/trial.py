"""A trial's run in a worker process: a run of the sweep that sees no label of a test item."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from bench.engine.result import RunResult
from bench.federation.types import TEST, hide_held_out
from bench.runner import execution
from bench.runner.workers import Order

CLIENT_EPOCHS = "client_epochs"
"""Array kept with a search's run: the passes over a client's training items, on average over clients."""


def execute(order: Order, make_run: Callable[..., RunResult] = execution.execute) -> RunResult:
    """Execute an order of a search; raises as ``bench.runner.execution.execute``, which makes the run."""
    return without_test_items(make_run(order, partial(hide_held_out, roles=(TEST,))))


def without_test_items(result: RunResult) -> RunResult:
    """The outcome as a search's: no test item is in it, and what it used is kept with it."""
    if result.state == "done":
        result.state = "searched"
        result.samples["test"] = np.zeros_like(result.samples["test"])
        for stage, split in result.correct:
            if split == "test":
                result.correct[stage, split] = np.zeros_like(result.correct[stage, split])
    result.artefacts = {}
    if result.state in ("searched", "diverged"):
        result.artefacts[CLIENT_EPOCHS] = np.array(result.client_epochs)
    return result
