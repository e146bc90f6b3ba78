"""Two methods in one cell, compared on the same clients and seeds, or over several tasks.

The test is fixed here, before any numbers: a two-sided paired t test over independent units. Where
all runs of the cell share one partition, the units are its clients, and the claim is about clients
of that partition; clients that are samples of one part of the data (overlapping scenarios) share test
items, so their part is the unit. Where there are several partitions, they are the units: clients of
one partition are not independent of each other, and the partition is what another user draws anew. Over
tasks the unit is the task.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Literal, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtr

from bench.statistics.summary import Interval, t_interval

ALPHA = 0.05
"""Level that a corrected p value must stay below."""

REGION = 0.5
"""Points within which two methods are practically equivalent."""

LEAST_RUNS_IN_COMMON = 2
"""Fewest runs that two methods of a cell must both have for a test. All clients of a run share its seed, so
that of one run nobody knows how much of a difference is the methods' and how much the seed's."""

COLUMNS = ("partition", "seed", "client", "part", "value", "weight")
"""Columns of a method's scores in a cell, one row a client of a run. ``partition`` is a hash,
``part`` the number of what the client's items were drawn from (another one for every client where
clients share nothing), ``value`` in percent, ``weight`` the client's in the average over its
partition."""

KEYS = ["partition", "seed", "client"]

Unit = Literal["client", "part", "partition", "task", "data set"]
Verdict = Literal["better", "worse", "equivalent", "undecided", "no test"]

Test = TypeVar("Test", bound=Hashable)


@dataclass(frozen=True)
class PairedTest:
    """Method ``first`` against method ``second``: the mean over units of first minus second, in points.

    ``difference`` is None without common seeds; ``interval`` (95 %, uncorrected) and the p values are
    None for fewer than two units or ``LEAST_RUNS_IN_COMMON``. ``corrected`` is Holm's p value among the
    pairs compared. ``runs`` counts those that both have, and is None where the unit is no part of a run.
    """

    first: str
    second: str
    unit: Unit
    units: int
    difference: float | None
    interval: Interval | None
    p: float | None
    corrected: float | None
    runs: int | None = None

    @property
    def verdict(self) -> Verdict:
        """What is claimed about ``first``.

        ``better`` or ``worse``: the corrected p value is below 0.05 and the mean difference exceeds
        0.5 points. ``equivalent``: the 95 % interval lies within -0.5 to 0.5 points. ``undecided``:
        neither. ``no test``: too little in common. The first three exclude each other: an interval
        inside the region has its mean inside, too.
        """
        if self.difference is None or self.interval is None or self.corrected is None:
            return "no test"
        low, high = self.interval
        if low >= -REGION and high <= REGION:
            return "equivalent"
        if self.corrected < ALPHA and abs(self.difference) > REGION:
            return "better" if self.difference > 0 else "worse"
        return "undecided"

    @property
    def common_ground(self) -> str:
        """What there is of both: where it is too little, the reason why there is no test."""
        if not self.units:
            return "no common seeds and partitions"
        if self.runs is not None and self.runs < LEAST_RUNS_IN_COMMON:
            return f"{self.runs} common run"
        return f"{self.units} {self.unit}{'s' if self.units > 1 else ''}"

    def opposite(self) -> PairedTest:
        """The second method against the first."""
        return replace(
            self,
            first=self.second,
            second=self.first,
            difference=None if self.difference is None else -self.difference,
            interval=self.interval and (-self.interval[1], -self.interval[0]),
        )


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of the methods of one cell, side by side: ``values`` in percent and ``weights``, both
    ``[runs, clients]`` by method and NaN where it has none, with the same runs and clients for all.

    ``partitions`` ``[runs]`` numbers the partition of a run, ``parts`` ``[clients]`` the part of a client;
    runs come in the order of the frames they are from, clients by number.
    """

    values: Mapping[str, NDArray[np.float64]]
    weights: Mapping[str, NDArray[np.float64]]
    partitions: NDArray[np.int64]
    parts: NDArray[np.int64]

    @cached_property
    def unit(self) -> Unit:
        """The unit of the cell, from all its methods' scores."""
        if len(np.unique(self.partitions)) > 1:
            return "partition"
        return "part" if len(np.unique(self.parts)) < len(self.parts) else "client"

    def common_runs(self, first: str, second: str) -> int:
        """The number of runs in which both have a client."""
        return int((~np.isnan(self.values[first] - self.values[second])).any(axis=1).sum())

    def differences(self, first: str, second: str) -> NDArray[np.float64]:
        """First minus second ``[units]`` in points, over what both have: partition, seed and client.

        Unit ``client`` or ``part``: its mean over seeds, and over the clients of a part, every client
        counting once. Unit ``partition``: the weighted average over clients, then the mean over the seeds
        of that partition.
        """
        difference = self.values[first] - self.values[second]
        is_shared = ~np.isnan(difference)
        difference = np.where(is_shared, difference, 0.0)
        if self.unit == "partition":
            weights = np.where(is_shared, self.weights[first], 0.0)
            runs = is_shared.any(axis=1)
            by_run = (weights * difference).sum(axis=1)[runs] / weights.sum(axis=1)[runs]
            return _means(self.partitions[runs], by_run, np.ones(len(by_run)))
        return _means(self.parts, difference.sum(axis=0), is_shared.sum(axis=0))


def side_by_side(scores: Mapping[str, pd.DataFrame]) -> Scores:
    """The scores of methods by name, each a frame with the columns ``COLUMNS``."""
    rows = pd.concat(list(scores.values()), ignore_index=True)
    method = np.repeat(np.arange(len(scores)), [len(frame) for frame in scores.values()])
    run, runs = pd.factorize(pd.MultiIndex.from_frame(rows[["partition", "seed"]]))
    client, clients = pd.factorize(rows["client"], sort=True)
    parts = np.zeros(len(clients), np.int64)
    parts[client] = rows["part"]
    tables = {}
    for name in ("value", "weight"):
        table = np.full((len(scores), len(runs), len(clients)), np.nan)
        table[method, run, client] = rows[name]
        tables[name] = dict(zip(scores, table, strict=True))
    partitions, _ = pd.factorize(runs.get_level_values(0), sort=True)
    return Scores(tables["value"], tables["weight"], partitions, parts)


def _means(
    units: NDArray[np.int64], totals: NDArray[np.float64], counts: NDArray[np.float64] | NDArray[np.int64]
) -> NDArray[np.float64]:
    """Totals over counts by unit, in the order of the units, of those that count anything."""
    total, count = (np.bincount(units, weights=weights) for weights in (totals, counts))
    return total[count > 0] / count[count > 0]


def p_value(units: NDArray[np.float64]) -> float:
    """Two-sided p value of the mean of at least two ``units`` being zero, by Student's t test.

    Equal values have no spread to test against: 1 where they are zero, else 0, the limits of the test.
    """
    if np.ptp(units) == 0.0:
        return float(units[0] == 0.0)
    statistic = units.mean() / (units.std(ddof=1) / np.sqrt(len(units)))
    return float(2 * stdtr(len(units) - 1, -abs(statistic)))


def holm(p_values: Mapping[Test, float]) -> dict[Test, float]:
    """Holm's (1979) corrected p values by test.

    Those of statsmodels; its ``multipletests`` collects garbage on every call, which takes a report longer
    than all of its tests.
    """
    tests = sorted(p_values, key=p_values.__getitem__)
    factors = np.arange(len(tests), 0, -1)
    products = np.array([p_values[test] for test in tests], np.float64) * factors
    return dict(zip(tests, np.minimum(np.maximum.accumulate(products), 1.0).tolist(), strict=True))


def compare(
    scores: Mapping[str, pd.DataFrame], pairs: Collection[tuple[str, str]] | None = None
) -> list[PairedTest]:
    """Pairs of the methods of one cell, all of them in their order or those named, with Holm's correction
    over these pairs.

    ``scores`` has the columns ``COLUMNS`` for each method.
    """
    pairs = list(combinations(scores, 2)) if pairs is None else pairs
    if not pairs:
        return []
    table = side_by_side(scores)
    return _comparisons(
        {pair: table.differences(*pair) for pair in pairs},
        table.unit,
        {pair: table.common_runs(*pair) for pair in pairs},
    )


def compare_tasks(scores: pd.DataFrame, unit: Unit = "task") -> list[PairedTest]:
    """All pairs of the methods of ``scores`` [tasks, methods] in percent, over the tasks that both have, with
    Holm's correction over all pairs; ``unit`` says what a row is where it is no task.

    Of scores, not of their ranks: rank differences are so few numbers that they are often all equal, and a
    method that is one place ahead in each of three tasks would be better beyond all doubt.
    """
    values = {
        (first, second): (scores[first] - scores[second]).dropna().to_numpy(np.float64)
        for first, second in combinations(map(str, scores), 2)
    }
    return _comparisons(values, unit)


def _comparisons(
    values: Mapping[tuple[str, str], NDArray[np.float64]],
    unit: Unit,
    runs: Mapping[tuple[str, str], int] | None = None,
) -> list[PairedTest]:
    """The comparison of each pair from its differences ``[units]``; ``runs`` are those that both have, where
    units are parts of runs.
    """
    p_values = {
        pair: p_value(units)
        for pair, units in values.items()
        if len(units) > 1 and (runs is None or runs[pair] >= LEAST_RUNS_IN_COMMON)
    }
    corrected = holm(p_values)
    return [
        PairedTest(
            *pair,
            unit=unit,
            units=len(units),
            difference=float(units.mean()) if len(units) else None,
            interval=t_interval(units) if pair in p_values else None,
            p=p_values.get(pair),
            corrected=corrected.get(pair),
            runs=runs[pair] if runs else None,
        )
        for pair, units in values.items()
    ]


def of_one(
    method: str, comparisons: Iterable[PairedTest], others: Collection[str] | None = None
) -> list[PairedTest]:
    """The comparisons of one method, itself first, with the ``others`` (None: all), with Holm's correction
    over these alone: how two of the others compare is not asked.
    """
    pairs = [
        pair if pair.first == method else pair.opposite()
        for pair in comparisons
        if method in (pair.first, pair.second)
    ]
    pairs = [pair for pair in pairs if others is None or pair.second in others]
    corrected = holm({pair.second: pair.p for pair in pairs if pair.p is not None})
    return [replace(pair, corrected=corrected.get(pair.second)) for pair in pairs]


def worse_than(leader: str, others: Collection[str], comparisons: Iterable[PairedTest]) -> set[str]:
    """The methods among ``others`` that are significantly worse than ``leader``, by its comparisons with them
    alone.

    The question is which methods may be the best, not how any two compare, so that these are all its tests
    (multiple comparisons with the best; Hsu, Annals of Statistics 12, 1984): a method that none surpasses is
    to be called worse than the leader in at most 5 % of repetitions, whichever method leads.
    """
    return {pair.second for pair in of_one(leader, comparisons, others) if pair.verdict == "better"}


def tie_groups(order: Sequence[str], comparisons: Collection[PairedTest]) -> dict[str, int]:
    """Group of each method of ``order`` (best first), by comparisons of any two.

    Group 1 is the best method and all that are not significantly worse than it; the next group is
    made alike of those that are left.
    """
    groups: dict[str, int] = {}
    candidates = list(order)
    number = 0
    while candidates:
        number += 1
        leader, *others = candidates
        worse_methods = worse_than(leader, others, comparisons)
        groups |= {name: number for name in candidates if name not in worse_methods}
        candidates = [name for name in others if name in worse_methods]
    return groups
