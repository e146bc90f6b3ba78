"""Stopping a trial whose curve lies below those of the others."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

STARTUP_TRIALS = 5
"""Completed trials before any is stopped."""

STARTUP_SHARE = 3
"""A trial is left alone for one in so many of its rounds."""


def thresholds(curves: Sequence[Sequence[float]], rounds: int) -> tuple[float, ...]:
    """What a trial must have reached after every round not to be stopped, 0 where nothing is asked.

    ``curves`` are those of completed trials, the best validation accuracy so far ``[rounds]`` each: a
    trial is measured by their median at the same round. Curves never fall, so a trial that is stopped
    could not have been told from the winner by a later round of a completed one.
    """
    if len(curves) < STARTUP_TRIALS:
        return (0.0,) * rounds
    return tuple(
        median(curve[round] for curve in curves)
        if (round + 1) * STARTUP_SHARE >= rounds and round + 1 < rounds
        else 0.0
        for round in range(rounds)
    )
