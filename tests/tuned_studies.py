"""Finished studies and the runs of their winners, for reports."""

from __future__ import annotations

from bench.resolve import resolve
from bench.spec import Protocol, RunSpec
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
    clients: str = "abcdef0123456789",
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
    return record(tuning, clients, winner, made)


def tuned_run(spec: RunSpec, seed: int = 0, partition: int | None = None) -> RunSpec:
    """A run at the smaller rate, on another partition where one is named."""
    protocol = spec.protocol if partition is None else on_partition(spec.protocol, partition)
    client = spec.client.model_copy(update={"learning_rate": RATE})
    return spec.model_copy(update={"seed": seed, "client": client, "protocol": protocol})


def on_partition(protocol: Protocol, partition: int) -> Protocol:
    return protocol.model_copy(update={"partition_seed": partition})
