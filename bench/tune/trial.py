"""A trial's run in a worker process: a run of the sweep that sees no label of a test item."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from bench.engine.checkpoint import Checkpoint
from bench.engine.methods import METHODS
from bench.engine.result import RunResult
from bench.engine.run import Run
from bench.federation.types import TEST, Federation, hide_held_out
from bench.spec import RunSpec
from bench.sweep import execution
from bench.sweep.order import Order

CLIENT_EPOCHS = "client_epochs"
"""Array kept with a search's run: the passes over a client's training items, on average over clients."""


def execute(order: Order, make_run: Callable[..., RunResult] = execution.execute) -> RunResult:
    """Execute an order of a search; raises as ``bench.sweep.execution.execute``, which makes the run."""
    hide = partial(hide_held_out, roles=(TEST,))  # a search cannot see the labels of test items
    return without_test_items(make_run(order, hide, rung_checkpoint))


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


def rung_path(folder: Path, spec: RunSpec) -> Path:
    """Where runs that differ in the number of rounds alone are saved, each to go on from the one before."""
    protocol = spec.protocol.model_copy(update={"rounds": 1})
    return folder / f"search-{spec.model_copy(update={'protocol': protocol}).hash}.pt"


class RungCheckpoint(Checkpoint):
    """A checkpoint that is also saved after the last round, for a run of more rounds to go on from."""

    def keep(self, run: Run, round_index: int, seconds: float) -> None:
        """Save the run where it is due, and at its end."""
        if round_index + 1 == run.spec.protocol.rounds:
            self.minutes = 0.0
        super().keep(run, round_index, seconds)


def rung_checkpoint(spec: RunSpec, federation: Federation, order: Order) -> Checkpoint | None:
    """Where a run of a search is saved: after its last round, too, if the method can go on from there. None
    where runs are not saved.
    """
    checkpoint = execution.run_checkpoint(spec, federation, order)
    if checkpoint is None or order.checkpoints is None or not METHODS.named(spec.method).prolongable:
        return checkpoint
    return RungCheckpoint(rung_path(order.checkpoints.folder, spec), checkpoint.identity, checkpoint.minutes)
