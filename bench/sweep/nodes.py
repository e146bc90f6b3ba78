"""A run on another machine: made there in a process of its own, and stored with what made it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import wait
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from bench.engine.result import RunResult
from bench.environment import describe
from bench.errors import RequestError
from bench.spec import RunSpec
from bench.sweep import fingerprint, worker
from bench.sweep.pool import Lost, Workers, judged, kills_for_memory
from bench.sweep.worker import Execute, Order
from bench.sweep.writer import Writer


@dataclass(eq=False)
class NodeResult(RunResult):
    """The outcome of a run, and the machine that made it (``bench.environment.describe``)."""

    environment: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeOrder(Order):
    """An order for another machine, and the hash over the sources that are to make it."""

    source: str = ""


@dataclass(frozen=True)
class WithSameSources:
    """Executes orders, unless the machine has other sources than the sweep: its numbers would be
    stored as made by code that did not make them.
    """

    execute: Execute

    def __call__(self, order: Order) -> RunResult:
        """The order's outcome.

        Raises:
            RequestError: the sources differ.
        """
        assert isinstance(order, NodeOrder)
        if _source(order) != order.source:
            raise RequestError("expected the sweep's sources of bench on every machine, this one has others")
        return self.execute(order)


def order_for_node(order: Order) -> NodeOrder:
    """The order with the sources that this machine has; its folders no longer depend on where it is read."""
    roots = tuple(str(Path(root).absolute()) for root in order.roots)
    return NodeOrder(**vars(order) | {"roots": roots}, source=_source(order))


def _source(order: Order) -> str:
    """The sources by which this machine would make the order's run."""
    spec = RunSpec.model_validate_json(order.spec)
    return fingerprint.code(spec.method, spec.client.model).source


def attempt(
    execute: Execute, order: NodeOrder, log: Path | None, fresh: bool, timeout: float | None, keep: bool
) -> NodeResult | Lost:
    """Execute an order on this machine as a sweep on it would, within so many seconds.

    The run's process dies, hangs and runs out of memory alone. To ``keep`` it is to give it the
    next order, too, which then finds libraries and federation loaded.
    """
    make = _kept if keep else Workers
    workers = make(1, WithSameSources(execute), timeout)
    kills = kills_for_memory()
    try:
        with worker.thread_variables(order.threads):
            future = workers.start(0, order, log, fresh)
        wait([future])
        ended = judged(workers.ended(0, future, order.device), kills)
    finally:
        if not keep:
            workers.stop()
    if isinstance(ended, Lost):
        return replace(ended, sigkill=False)  # judged here, where it was killed
    if ended.state == "oom":
        workers.replace(0)
    return NodeResult(**vars(ended), environment=describe(order.device, order.threads))


@cache
def _kept(slots: int, execute: Execute, timeout: float | None) -> Workers:
    return Workers(slots, execute, timeout)


class NodeWriter(Writer):
    """Stores with each run the machine that made it; where that is lost, nothing is said of it."""

    def made_on(self, result: RunResult) -> Mapping[str, Any]:
        """What came with the result."""
        return result.environment if isinstance(result, NodeResult) else {}
