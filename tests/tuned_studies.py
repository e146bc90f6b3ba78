"""Finished studies and the runs of their winners, for reports."""

from __future__ import annotations

from bench.resolve import resolve
from bench.spec import RunSpec
from bench.tune.record import Record, Trial, record, winner_of
from bench.tune.tuning import Tuning, search_space

CELL = resolve("cora", "non-overlapping", 10, "fedavg", 0)
RATE = 0.003


def study(
    granted: int = 2,
    used: int = 2,
    each: float = 600.0,
    cell: RunSpec = CELL,
    best: int = 1,
) -> Record:
    """A study of the default, a smaller learning rate and no dropout, one of which is best. Each trial took
    so many client epochs.
    """
    tuning = Tuning(cell, search_space(cell), (1000, 1001), granted)
    better = {**tuning.default, "client.learning_rate": RATE}
    configurations = [tuning.default, better, {**tuning.default, "client.dropout": 0.0}]
    reached = [0.7, 0.6, 0.5]
    reached[best] = 0.8
    made = [
        Trial(
            number=number,
            parameters=configurations[number],
            validation=reached[number],
            state="complete",
            client_epochs=each,
            seconds=1.0,
        )
        for number in range(used)
    ]
    winner = winner_of(made)
    assert winner is not None
    return record(tuning, "abcdef0123456789", winner, made)


def tuned_run(spec: RunSpec, seed: int = 0) -> RunSpec:
    """A run at the smaller rate."""
    return spec.with_seed(seed).with_settings({"client.learning_rate": RATE})
