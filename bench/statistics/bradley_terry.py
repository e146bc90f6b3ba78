"""One number a method from who beats whom: Bradley and Terry's model, every task of equal weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.statistics.paired import Comparison
from bench.statistics.summary import LEVEL, Interval

DRAWS = 2000
"""Bootstrap draws of tasks."""

SEED = 0
"""Seed of the draws: unchanged results give unchanged intervals."""

PRIOR = 0.1
"""Weight, in tasks, of an added task in which all methods tie: without it a method that wins every
comparison would be infinitely strong."""

TOLERANCE = 1e-10
STEPS = 500

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Strength:
    """Log odds against the mean of all methods, with its bootstrap interval (None for one task)."""

    value: float
    interval: Interval | None


def task_wins(comparisons: Sequence[Comparison], methods: Sequence[str]) -> Array:
    """Wins of row over column ``[methods, methods]`` in one task, a tie half a win each; they sum to 1.

    All zeros where no pair was tested.
    """
    place = {method: number for number, method in enumerate(methods)}
    wins = np.zeros((len(methods), len(methods)))
    tested = [pair for pair in comparisons if pair.points is not None]
    for pair in tested:
        first, second = place[pair.first], place[pair.second]
        wins[first, second] = pair.points
        wins[second, first] = 1 - wins[first, second]
    return wins / max(1, len(tested))


def fit(wins: Array) -> Array:
    """Log strengths ``[draws, methods]`` of greatest likelihood for ``wins`` ``[draws, methods, methods]``.

    ``P(i beats j) = 1 / (1 + exp(s_j - s_i))``; ``PRIOR`` is added. A method without any comparison
    is NaN; the mean of the others is zero. Newton's method with bounded steps: the likelihood is
    concave.

    Raises:
        ArithmeticError: no convergence.
    """
    draws, methods, _ = wins.shape
    compared = (wins + wins.transpose(0, 2, 1)).sum(axis=2) > 0
    wins = wins + PRIOR / (methods * (methods - 1)) * (1 - np.eye(methods))
    games = wins + wins.transpose(0, 2, 1)
    strengths = np.zeros((draws, methods))
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(strengths[:, None, :] - strengths[:, :, None]))
        gradient = (wins - games * chance).sum(axis=2)
        if np.abs(gradient).max() < TOLERANCE:
            break
        curvature = games * chance * (1 - chance)
        # Strengths are fixed up to a constant; the added 1 / methods holds their sum.
        hessian = np.eye(methods) * curvature.sum(axis=2)[:, :, None] - curvature + 1 / methods
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        strengths += step / np.maximum(1.0, np.abs(step).max(axis=1, keepdims=True))
    else:
        raise ArithmeticError(f"strengths did not converge in {STEPS} steps")
    strengths[~compared] = np.nan
    centred: Array = (
        strengths - np.nanmean(np.where(compared.any(axis=1)[:, None], strengths, 0.0), 1)[:, None]
    )
    return centred


def strengths(tasks: Sequence[Sequence[Comparison]], methods: Sequence[str]) -> dict[str, Strength]:
    """Strengths of the ``methods`` with a tested pair, from all pairs of each task, at least two methods.

    The interval holds the middle 95 % of strengths over draws of as many tasks, with replacement,
    from a fixed seed; draws without a comparison of the method do not count for it.
    """
    wins = np.stack([task_wins(comparisons, methods) for comparisons in tasks])
    values = fit(wins.sum(axis=0, keepdims=True))[0]
    generator = np.random.default_rng(SEED)
    drawn = generator.integers(len(tasks), size=(DRAWS, len(tasks)))
    counts = np.stack([np.bincount(draw, minlength=len(tasks)) for draw in drawn])
    # Few tasks give few distinct draws: each is fitted once.
    distinct, inverse = np.unique(counts, axis=0, return_inverse=True)
    samples = fit(np.einsum("dt,tij->dij", distinct.astype(float), wins))[inverse.ravel()]
    tail = 100 * (1 - LEVEL) / 2
    made = {}
    for number, method in enumerate(methods):
        if np.isnan(values[number]):
            continue
        own = samples[:, number]
        low, high = np.percentile(own[~np.isnan(own)], [tail, 100 - tail])
        made[method] = Strength(float(values[number]), (float(low), float(high)) if len(tasks) > 1 else None)
    return made
