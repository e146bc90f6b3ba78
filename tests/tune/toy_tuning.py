"""Searches without training: what a configuration reaches follows from its settings alone."""

from __future__ import annotations

import json
import random
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stored_runs import FakeFederation, result_of

from bench.engine.result import RunResult
from bench.resolve import resolve
from bench.runner.execution import without_test_items
from bench.runner.workers import Order
from bench.spec import RunSpec
from bench.tune.record import Record, Winner, record, winner_of, write
from bench.tune.search import Search, TrialRun
from bench.tune.tuning import Space, Tuning, search_space

ROUNDS = 6
EPOCHS = 2
PLAIN = ROUNDS * EPOCHS * 2
"""Client epochs of a trial on two seeds."""


def tuning(method: str = "local", trials: int = 8, space: Space | None = None, **names: Any) -> Tuning:
    """A search of few rounds on embedded data."""
    settings = {"protocol.rounds": ROUNDS, "protocol.local_epochs": EPOCHS}
    dataset, clients = names.get("dataset", "cora"), names.get("clients", 3)
    spec = resolve(dataset, "non-overlapping", clients, method, 1000, settings)
    return Tuning(spec, search_space(spec) if space is None else space, (1000, 1001), trials)


def final(spec: RunSpec) -> float:
    """What a configuration reaches, on every seed."""
    settings = json.dumps([spec.tree()["client"], spec.tree()["hyper"]], sort_keys=True)
    return 0.3 + 0.6 * random.Random(settings).random()


def plain(spec: RunSpec) -> TrialRun:
    """A run of a method that trains what the protocol says."""
    return TrialRun(0, "searched", "", final(spec), float(ROUNDS * EPOCHS), 0.25)


def warm(spec: RunSpec) -> TrialRun:
    """A run of a method with a warm-up of half a plain run."""
    return TrialRun(0, "searched", "", final(spec), 1.5 * ROUNDS * EPOCHS, 0.25)


Play = Callable[[RunSpec], TrialRun]


def go_on(
    search: Tuning,
    play: Play = plain,
    stored: dict[int, dict[int, TrialRun]] | None = None,
    most: int = 10_000,
    order: random.Random | None = None,
) -> Search:
    """A search driven on, at most so many runs further; side by side, runs end in any ``order``."""
    where = Search(search)
    where.runs = {} if stored is None else stored
    where.look()
    while where.to_run and most:
        spec = order.choice(where.to_run) if order else where.to_run[0]
        most -= 1
        place = search.place_of(spec)
        assert place is not None
        assert spec.seed not in where.runs.get(place, {}), "no run is made twice"
        where.take(spec, play(spec)._replace(id=sum(map(len, where.runs.values()))), "")
        where.look()
    return where


def best_of(search: Search) -> Winner:
    winner = winner_of(search.trials)
    assert winner is not None
    return winner


def finished(home: Path, search: Tuning, play: Play = plain) -> Record:
    """A finished search; its record lies where the user's own do."""
    where = go_on(search, play=play)
    result = record(search, FakeFederation().hash, best_of(where), where.trials)
    write(home / "tuned", result)
    return result


def answer(order: Order) -> RunResult:
    """What a worker would hand back of a run like ``plain``."""
    spec = order.spec
    rows = [[round(10_000 * final(spec) * (row + 1) / ROUNDS)] for row in range(spec.protocol.rounds)]
    result = result_of(
        rows,
        validation=rows,
        samples=10_000,
        seconds={"total": 0.25},
        client_epochs=float(spec.protocol.rounds * EPOCHS),
        partition_hash=FakeFederation().hash,
    )
    return without_test_items(result)


@contextmanager
def room(size: int) -> Iterator[None]:
    """No file grows beyond so many bytes meanwhile: a write ends in the middle, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
