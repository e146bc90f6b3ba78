"""Studies in this process, without workers."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tune_fakes import FakeFederation, answer

from bench.tune.journal import journal
from bench.tune.ledger import Begun, Ledger
from bench.tune.record import Record, Trial, record, write
from bench.tune.trial import TrialOrder
from bench.tune.tuning import Tuning


def order(study: Tuning, begun: Begun) -> TrialOrder:
    first, *others = (spec.canonical() for spec in study.specs(begun.parameters))
    return TrialOrder(
        first, (), "cpu", 1, others=tuple(others), thresholds=begun.thresholds, allowance=begun.allowance
    )


def opened(folder: Path, study: Tuning, slots: int = 1, clients: str = FakeFederation.hash) -> Ledger:
    """The study as a tuner opens it."""
    return Ledger(study, clients, journal(folder), slots)


def go_on(
    folder: Path, study: Tuning, most: int = 1000, execute: Any = answer, slots: int = 1
) -> list[Trial]:
    """Trials one after the other, as a tuner with one worker runs them."""
    ledger = opened(folder, study, slots)
    while ledger.ready and most:
        begun = ledger.begin()
        ledger.end(begun, execute(order(study, begun)), 1.0)
        most -= 1
    return ledger.trials


@contextmanager
def room(size: int) -> Iterator[None]:
    """No file grows beyond so many bytes meanwhile: a write ends in the middle, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def finished(home: Path, study: Tuning, execute: Any = answer) -> Record:
    """A finished study; its record lies where the user's own do."""
    made = record(study, FakeFederation.hash, go_on(home / "tuning", study, execute=execute))
    write(home / "tuned", made)
    return made
