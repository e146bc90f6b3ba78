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
from bench.sweep.workers import LocalPool, Lost, thread_variables


@dataclass(eq=False)
class NodeResult(RunResult):
    """The outcome of a run, and the machine that made it (``bench.environment.describe``)."""

    environment: Mapping[str, Any] = field(default_factory=dict)


_shared_pool = cache(LocalPool)


def order_for_node(order: Order) -> Order:
    """The order with the sources that this machine has; its folders no longer depend on where it is read."""
    roots = tuple(str(Path(root).absolute()) for root in order.roots)
    source = fingerprint.of(order.spec).source
    return replace(order, roots=roots, source=source)


def attempt(execute: Execute, order: Order, timeout: float | None, keep: bool) -> NodeResult | Lost:
    """Execute an order on this machine as a sweep on it would, within so many seconds.

    The run's process dies, hangs and runs out of memory alone. To ``keep`` it is to give it the
    next order, too, which then finds libraries and federation loaded.
    """
    with thread_variables(order.threads):
        pool = (_shared_pool if keep else LocalPool)(1, execute, timeout)
        try:
            result = pool.start(0, order).result()
        finally:
            if not keep:
                pool.stop()
    if isinstance(result, Lost):
        return result
    return NodeResult(**vars(result), environment=describe(order.device, order.threads))
