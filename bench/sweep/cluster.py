"""A run on another machine: what Ray and Slurm hand over alike, and how it is made there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from bench.engine.result import RunResult
from bench.environment import describe
from bench.sweep import fingerprint
from bench.sweep.order import Execute, Order
from bench.sweep.workers import LocalWorkers, Lost, thread_variables


@dataclass(eq=False)
class NodeResult(RunResult):
    """The outcome of a run, and the machine that made it (``bench.environment.describe``)."""

    environment: Mapping[str, Any] = field(default_factory=dict)


_shared_workers = cache(LocalWorkers)


def order_for_node(order: Order) -> Order:
    """The order with the sources that this machine has; its folders no longer depend on where it is read."""
    roots = tuple(str(Path(root).absolute()) for root in order.roots)
    source = fingerprint.of(order.spec).source
    return replace(order, roots=roots, source=source)


def attempt(
    execute: Execute, order: Order, log: Path | None, fresh: bool, timeout: float | None, keep: bool
) -> NodeResult | Lost:
    """Execute an order on this machine as a sweep on it would, within so many seconds.

    The run's process dies, hangs and runs out of memory alone. To ``keep`` it is to give it the
    next order, too, which then finds libraries and federation loaded.
    """
    workers = (_shared_workers if keep else LocalWorkers)(1, execute, timeout)
    try:
        with thread_variables(order.threads):
            result = workers.start(0, order, log, fresh).result()
    finally:
        if not keep:
            workers.stop()
    if isinstance(result, Lost):
        return result
    return NodeResult(**vars(result), environment=describe(order.device, order.threads))
