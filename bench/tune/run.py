"""Runs studies until their budgets are used up: one process decides, workers train."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.engine.result import RunResult
from bench.errors import NoDataError, RequestError
from bench.sweep import pool, worker
from bench.sweep.devices import Slots
from bench.sweep.federations import Build, build_all
from bench.sweep.interrupts import Interrupts
from bench.sweep.packing import Demand, place
from bench.sweep.pool import Lost, Workers
from bench.sweep.retries import Attempt, after_loss, after_memory, noted, out_of_memory
from bench.sweep.run import default_build
from bench.sweep.schedule import TICK
from bench.sweep.worker import Execute
from bench.tune import record, trial
from bench.tune.journal import journal, lock
from bench.tune.ledger import Begun, Ledger, check_totals
from bench.tune.record import Record, Trial
from bench.tune.trial import TrialOrder
from bench.tune.tuning import Tuning

Said = Callable[[str], None]
Heard = Callable[[Ledger, Trial], None]
"""Hears of every trial that has ended."""


@dataclass
class Tuned:
    """What a request came to: records of finished studies with their files, and why others have none."""

    records: list[tuple[Record, Path]] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """1 if a study has no winner, else 0."""
        return int(bool(self.failed))


@dataclass(frozen=True, eq=False)
class Running:
    """A trial in a worker. ``kills`` is how often the system had killed for memory when it began."""

    ledger: Ledger
    begun: Begun
    slot: int
    since: float
    attempt: Attempt
    kills: int


def tune(
    tunings: Sequence[Tuning],
    home: Path,
    roots: tuple[Path, ...],
    slots: Slots,
    said: Said,
    heard: Heard,
    execute: Execute = trial.execute,
    build: Build | None = None,
) -> Tuned:
    """Run every study to the end of its budget, and write the record of each as it ends.

    With as many studies as slots or more, each has one trial at a time, so what comes out is the same
    whatever the number of slots; fewer studies share the slots. A study's first trial has none of its own
    beside it.

    Raises:
        RequestError: a federation cannot be what was asked for, no data set is to be had, another
            process tunes one of the studies, more trials are done than are asked for, or a study's were
            made on other clients; nothing is run then. Or the journal or a record cannot be written: the
            same request goes on.
        KeyboardInterrupt: after one interrupt when what runs has ended, after two, or a request to
            terminate, when the workers are stopped. The same request goes on.
    """
    prepared = build_all((each.spec for each in tunings), roots, build or default_build())
    lacking = {each.title: prepared.lacking.get(each.spec.dataset) for each in tunings}
    at_hand = [each for each in tunings if lacking[each.title] is None]
    errors = [error for error in lacking.values() if error is not None]
    if not at_hand:
        raise NoDataError(str(errors[0]))
    tuned = Tuned(failed={title: str(error) for title, error in lacking.items() if error is not None})
    check_totals(home / "tuning", at_hand)
    width = width_of(len(slots.devices), len(at_hand))
    with ExitStack() as stack:
        for each in at_hand:
            stack.callback(lock(home / "tuning", each).release)
        storage = journal(home / "tuning")
        ledgers = [
            Ledger(each, prepared.hashes[each.spec.federation_key], storage, width) for each in at_hand
        ]
        interrupts = stack.enter_context(Interrupts(said))
        stack.enter_context(worker.thread_variables(slots.threads))
        tuner = Tuner(ledgers, home / "tuned", tuple(map(str, roots)), slots, execute, said, heard, tuned)
        stack.callback(tuner.stop)
        tuner.run(interrupts)
    return tuned


def width_of(slots: int, studies: int) -> int:
    """Slots that each of so many studies has."""
    return max(1, slots // studies)


class Tuner:
    """Gives trials to workers and takes their results, for some studies at once."""

    def __init__(
        self,
        ledgers: Sequence[Ledger],
        folder: Path,
        roots: tuple[str, ...],
        slots: Slots,
        execute: Execute,
        said: Said,
        heard: Heard,
        tuned: Tuned,
    ) -> None:
        self._open = list(ledgers)
        self._folder = folder
        self._roots = roots
        self._slots = slots
        self._workers = Workers(len(slots.devices), execute, None)
        # How much memory trials need is not known: slots alone decide how many share a device.
        self._devices = {device.name: replace(device, memory=None) for device in slots.shared}
        self._free = list(range(len(slots.devices)))[::-1]
        self._again: list[tuple[Ledger, Begun, Attempt]] = []
        self._running: dict[Future[RunResult], Running] = {}
        self._said = said
        self._heard = heard
        self._tuned = tuned

    def run(self, interrupts: Interrupts) -> None:
        """Everything there is to do; raises ``KeyboardInterrupt`` as ``tune`` does."""
        self._close()
        while True:
            if not interrupts.finish:
                self._start()
            if not self._running:
                break
            for future in wait(self._running, TICK, FIRST_COMPLETED).done:
                self._ended(future)
            if interrupts.finish:
                interrupts.announce(len(self._running))
            if interrupts.now:
                raise KeyboardInterrupt
        if interrupts.finish:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """End the workers; what they were at is run again next time."""
        self._workers.stop()

    def _start(self) -> None:
        """Give the free slots trials: first what waits for a device of its own, then the studies' in their
        order, as many of each as it may have.
        """
        while self._free:
            ready = [ledger for ledger in self._open if ledger.ready][:1]
            demands = [Demand(alone=True) for _ in self._again] + [Demand() for _ in ready]
            choice = place(demands, self._at_work(), list(self._devices.values()))
            if choice is None:
                return
            position, device = choice
            if position < len(self._again):
                ledger, begun, attempt = self._again.pop(position)
            else:
                ledger, attempt = ready[0], Attempt(alone=self._devices[device].slots == 1)
                begun = ledger.begin()
            slot = next(slot for slot in reversed(self._free) if self._slots.devices[slot] == device)
            self._free.remove(slot)
            self._begin(ledger, begun, slot, attempt)

    def _at_work(self) -> dict[str, list[Demand]]:
        """What runs on each device."""
        found: dict[str, list[Demand]] = {name: [] for name in self._devices}
        for running in self._running.values():
            found[self._slots.devices[running.slot]].append(Demand(alone=running.attempt.alone))
        return found

    def _begin(self, ledger: Ledger, begun: Begun, slot: int, attempt: Attempt) -> None:
        tuning = ledger.tuning
        first, *others = (spec.canonical() for spec in tuning.specs(begun.parameters))
        order = TrialOrder(
            spec=first,
            roots=self._roots,
            device=self._slots.devices[slot],
            threads=self._slots.threads,
            others=tuple(others),
            thresholds=begun.thresholds,
            allowance=begun.allowance,
        )
        kills = pool.kills_for_memory()
        future = self._workers.start(slot, order, None, fresh=True)
        self._running[future] = Running(ledger, begun, slot, time.monotonic(), attempt, kills)

    def _ended(self, future: Future[RunResult]) -> None:
        running = self._running.pop(future)
        ended = self._workers.ended(running.slot, future, self._slots.devices[running.slot])
        result = pool.judged(ended, running.kills)
        if isinstance(result, Lost):
            again = after_loss(running.attempt)
            if again is not None:
                self._said(f"{running.ledger.tuning.title}: {result.how}; trying again")
                self._begin(running.ledger, running.begun, running.slot, again)
                return
            result = RunResult("failed", f"{result.how}, {running.attempt.number} times")
        self._free.append(running.slot)
        if result.state == "oom":
            self._workers.replace(running.slot)  # the next trial finds nothing left of this one
            attempt = noted(running.attempt, result)
            again = after_memory(attempt, 1)  # a trial is not made in smaller blocks of clients
            if again is not None:
                self._said(f"{running.ledger.tuning.title}: {result.reason}; trying again {again.how}")
                self._again.append((running.ledger, running.begun, again))
                return
            result = out_of_memory(attempt, result)
        if result.state in ("not_applicable", "no_data"):
            self._abandon(running, result.reason)
            return
        seconds = time.monotonic() - running.since
        self._heard(running.ledger, running.ledger.end(running.begun, result, seconds))
        self._close()

    def _abandon(self, running: Running, reason: str) -> None:
        """Leave a study that can have no number."""
        running.ledger.give_up(running.begun)
        self._tuned.failed[running.ledger.tuning.title] = reason
        if running.ledger in self._open:
            self._open.remove(running.ledger)

    def _close(self) -> None:
        """Write the records of the studies whose budget is used up."""
        for ledger in [each for each in self._open if each.ended]:
            self._open.remove(ledger)
            try:
                finished = record.record(ledger.tuning, ledger.clients, ledger.trials)
            except RequestError as error:
                self._tuned.failed[ledger.tuning.title] = str(error)
                continue
            self._tuned.records.append((finished, record.write(self._folder, finished)))
