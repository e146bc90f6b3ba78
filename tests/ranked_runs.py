"""Runs of good and bad methods on the tasks of Cora, and their ranking."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

import numpy as np
from stored_runs import MemoryStore
from toy_study import ToyStudy

from bench.frames.graded_cells import collect
from bench.frames.ranking import Ranking, rank
from bench.studies.study import Study

NON, OVER = "non-overlapping", "overlapping"
CORA_TASKS = ((NON, 10), (NON, 20), (OVER, 30), (OVER, 50))

LEVELS = {"local": 80, "fedavg": 60, "fedper": 60, "fedsheafhn": 80}
"""Correct of 100 before the draws of ``drawn``: two good methods, two bad ones."""


def filled(where: tuple[tuple[str, int], ...] = CORA_TASKS) -> MemoryStore:
    """The runs of ``drawn``, to which a test may add."""
    return drawn(where).copy()


@cache
def drawn(where: tuple[tuple[str, int], ...]) -> MemoryStore:
    """Two seeds of four methods and the majority: differences of 20 points with little noise.

    With overlap five clients are samples of one part: six parts, whose samples score the same.
    """
    database = MemoryStore()
    draw = np.random.default_rng(0)
    for scenario, clients in where:
        for method, level in {**LEVELS, "majority": 90}.items():
            for seed in (0, 1):
                drawn = [level + int(noise) for noise in draw.integers(-2, 3, 6)]
                correct = [value for value in drawn for _ in range(5 if scenario == OVER else 1)]
                database.add(method, seed, correct, scenario=scenario, clients=clients)
    return database


def beside_print() -> MemoryStore:
    """Cora, 10 clients: local and flow as printed, fedavg above, fggp below."""
    database = MemoryStore()
    for seed in (0, 1, 2):
        database.add("local", seed, [71, 71 + seed % 2])  # 71.17
        database.add("fedavg", seed, [90, 92])
        database.add("fggp", seed, [10, 12])
        database.add("flow", seed, [82, 81 + seed % 2])  # 81.67
    return database


def ranking_of(
    database: MemoryStore, study: Study | None = None, guests: Collection[str] = ()
) -> Ranking | None:
    study = study or ToyStudy()
    return rank(study, collect(database, [study]), guests=guests)
