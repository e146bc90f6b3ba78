"""Searches run to the end of their budgets: what to run next is asked of each, the sweep runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from bench.errors import NoDataError
from bench.federation.build import build as build_federation
from bench.store import Store
from bench.store.store import Stored
from bench.sweep.display import Display
from bench.sweep.execution import Build, build_all
from bench.sweep.order import Execute
from bench.sweep.plan import Estimator, Step
from bench.sweep.run import Sweep
from bench.sweep.workers import Pool
from bench.tune import record, trial
from bench.tune.record import Record, Trial
from bench.tune.search import Search, opened_searches, read
from bench.tune.tuning import Tuning

OnTrial = Callable[[Search, Trial], None]
"""Hears of every trial that has ended."""


@dataclass
class Searches:
    """The searches of a request: those that go on, the records of those that have ended with their files, and
    why others have none. Whenever a run has ended they say which trials that ends, write the record of a
    search that has ended, and have the next runs.
    """

    going: list[Search]
    failed: dict[str, str]
    home: Path
    on_trial: OnTrial
    records: list[tuple[Record, Path]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._hashes: set[str] = set()

    def __call__(self, store: Store, states: Mapping[str, str]) -> list[Step]:
        """What else is to run."""
        new_hashes = states.keys() - self._hashes
        self._hashes |= new_hashes
        searches = [search for search in self.going if search.asked & new_hashes]
        if searches:
            read(store, searches, new_hashes)
        for search in searches:
            for new_trial in search.look():
                self.on_trial(search, new_trial)
        return self.next_steps(searches)

    def next_steps(self, searches: Iterable[Search]) -> list[Step]:
        """What is to run of some searches; those that have ended go on no more."""
        steps = []
        for search in searches:
            title, trials = search.tuning.title, search.trials
            if not search.hopeless and not search.ended:
                steps += search.steps()
                continue
            self.going.remove(search)
            if search.hopeless:
                self.failed[title] = search.hopeless
            elif record.best_of(trials) is None:
                self.failed[title] = f"none of {len(trials)} trials gave a number: {trials[-1].reason}"
            else:
                result = record.record(search.tuning, search.federation_hash, trials)
                self.records.append((result, record.write(self.home / "tuned", result)))
        return steps


def tune(
    tunings: Sequence[Tuning],
    database: str,
    home: Path,
    roots: tuple[Path, ...],
    pool: Pool,
    width: int,
    display: Display,
    on_trial: OnTrial,
    history: Iterable[Stored] = (),
    execute: Execute = trial.execute,
    build: Build = build_federation,
) -> Searches:
    """Run every search to the end of its budget, and write the record of each as it ends.

    ``width`` trials of each are made side by side. ``history`` says what runs take, beside those of the
    ``database``.

    Raises:
        RequestError: as ``opened_searches``; a federation cannot be what was asked for, no data set is to be
            had; nothing is run then. Or the database or a record cannot be written: the same request goes on.
        KeyboardInterrupt: as ``bench.sweep.run.Sweep``. The same request goes on.
    """
    build_once = cache(build)
    federations, missing_data = build_all((tuning.spec for tuning in tunings), roots, build_once)
    failures = {
        tuning.title: str(error) for tuning in tunings if (error := missing_data.get(tuning.spec.dataset))
    }
    at_hand = [tuning for tuning in tunings if tuning.title not in failures]
    if not at_hand:
        raise NoDataError(next(iter(failures.values())))
    hashes = {key: shared.hash for key, shared in federations.items()}
    searches, timings = opened_searches(database, at_hand, width, hashes)
    follow_up = Searches(searches, failures, home, on_trial)
    outcome = Sweep(
        follow_up.next_steps([*searches]),
        database,
        roots,
        pool,
        display,
        Estimator([*history, *timings], pool.devices[0]),
        execute,
        build_once,
        home=home,
        follow_up=follow_up,
    ).run()
    reason = "; ".join(outcome.left) or "its runs were lost"
    for search in follow_up.going:
        failures[search.tuning.title] = f"{reason}; the same command goes on"
    return follow_up
