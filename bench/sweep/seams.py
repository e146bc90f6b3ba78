"""What a scheduler needs of others: who makes the runs, and who shares them with other sweeps."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

from bench.engine.result import RunResult
from bench.sweep.packing import Demand
from bench.sweep.plan import Step
from bench.sweep.pool import Lost
from bench.sweep.worker import Execute, Order


class Sharing(Protocol):
    """How sweeps on one database share their runs."""

    def take(self, step: Step) -> bool:
        """Claim a run until the sweep ends; False where another sweep holds it."""

    def elsewhere(self, step: Step) -> str | None:
        """The state in which another sweep has stored a run meanwhile."""

    def renew(self) -> Collection[str]:
        """Keep the claims; returns the spec hashes of those that are lost."""


class Workers(Protocol):
    """What makes the runs, one at a time in each slot: processes here, or machines of a cluster."""

    def start(
        self, slot: int, order: Order, log: Path | None, fresh: bool, demand: Demand | None = None
    ) -> Future[RunResult]:
        """Begin a run that needs so much of its device."""

    def ended(self, slot: int, future: Future[RunResult], device: str) -> RunResult | Lost:
        """What came of a run whose future is done."""

    def replace(self, slot: int) -> None:
        """Leave nothing of a slot's last run to its next one."""

    def stop(self) -> None:
        """End everything, also in the middle of a run."""


MakeWorkers = Callable[[int, Execute, float | None], Workers]
"""Workers for so many slots that execute orders with a function, each within so many seconds."""
