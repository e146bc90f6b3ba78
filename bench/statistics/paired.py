"""Two methods in one cell, compared on the same clients and seeds, or over several tasks.

The test is fixed here, before any numbers: a two-sided paired t test over independent units. Where
all runs of the cell share one partition, the units are its clients, and the claim is about clients
of that partition; clients that are samples of one part of the data (overlapping scenarios) share test
items, so their part is the unit. Where there are several partitions, they are the units: clients of
one partition are not independent of each other, and the partition is what another user draws anew. Over
tasks the unit is the task.

A frame of tests has a row a pair of methods:

first, second   the methods
difference      mean over units of first minus second, in points; missing without common seeds
low, high       its 95 % interval, uncorrected
p, p_holm       p value, and Holm's among the pairs compared; these and the interval are missing for fewer
                than two units or ``LEAST_RUNS_IN_COMMON``
unit, units     what a unit is, and how many there are
runs            runs that both have; missing where the unit is no part of a run
verdict         what is claimed about ``first``: see ``with_verdicts``
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtr

from bench.statistics.summary import t_interval

ALPHA = 0.05
"""Level that a corrected p value must stay below."""

REGION = 0.5
"""Points within which two methods are practically equivalent."""

LEAST_RUNS_IN_COMMON = 2
"""Fewest runs that two methods of a cell must both have for a test. All clients of a run share its seed, so
that of one run nobody knows how much of a difference is the methods' and how much the seed's."""

COLUMNS = ["method", "partition", "seed", "client", "part", "value", "weight"]
"""Columns of the scores in a cell, one row a method and client of a run. ``partition`` is a hash,
``part`` the number of what the client's items were drawn from (another one for every client where
clients share nothing), ``value`` in percent, ``weight`` the client's in the average over its
partition."""

TESTS = {
    "first": "object",
    "second": "object",
    "difference": "float64",
    "low": "float64",
    "high": "float64",
    "p": "float64",
    "p_holm": "float64",
    "unit": "object",
    "units": "int64",
    "runs": "float64",
    "verdict": "object",
}
"""Columns of a frame of tests and their types."""


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of the methods of one cell, side by side: ``values`` in percent and ``weights``, both
    ``[runs, clients]`` by method and NaN where it has none. ``partitions`` ``[runs]`` numbers the partition
    of a run, ``parts`` ``[clients]`` the part of a client.
    """

    values: Mapping[str, NDArray[np.float64]]
    weights: Mapping[str, NDArray[np.float64]]
    partitions: NDArray[np.int64]
    parts: NDArray[np.int64]

    @cached_property
    def unit(self) -> str:
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


def side_by_side(rows: pd.DataFrame, methods: Sequence[str]) -> Scores:
    """The scores of these methods, from rows with the columns ``COLUMNS``."""
    method = rows["method"].map(list(methods).index).to_numpy(np.intp)
    run, runs = pd.factorize(pd.MultiIndex.from_frame(rows[["partition", "seed"]]))
    client, clients = pd.factorize(rows["client"], sort=True)
    parts = np.zeros(len(clients), np.int64)
    parts[client] = rows["part"]
    tables = {}
    for name in ("value", "weight"):
        table = np.full((len(methods), len(runs), len(clients)), np.nan)
        table[method, run, client] = rows[name]
        tables[name] = dict(zip(methods, table, strict=True))
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


def compare(rows: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """The tests of all pairs of the methods of one cell, in their order, with Holm's correction over these
    pairs. ``rows`` has the columns ``COLUMNS``.
    """
    table = side_by_side(rows, methods)
    tests = [
        _test(first, second, table.differences(first, second), table.unit, table.common_runs(first, second))
        for first, second in combinations(methods, 2)
    ]
    return with_verdicts(pd.DataFrame(tests, columns=list(TESTS)))


def compare_tasks(scores: pd.DataFrame, unit: str = "task") -> pd.DataFrame:
    """The tests of all pairs of the methods of ``scores`` [tasks, methods] in percent, over the tasks that
    both have, with Holm's correction over all pairs; ``unit`` says what a row is where it is no task.

    Of scores, not of their ranks, whose differences are often all equal.
    """
    tests = [
        _test(first, second, (scores[first] - scores[second]).dropna().to_numpy(np.float64), unit)
        for first, second in combinations(map(str, scores), 2)
    ]
    return with_verdicts(pd.DataFrame(tests, columns=list(TESTS)))


def _test(
    first: str, second: str, units: NDArray[np.float64], unit: str, runs: int | None = None
) -> dict[str, Any]:
    """A row of a frame of tests, from the differences ``[units]``."""
    is_tested = len(units) > 1 and (runs is None or runs >= LEAST_RUNS_IN_COMMON)
    low, high = (t_interval(units) if is_tested else None) or (np.nan, np.nan)
    return {
        "first": first,
        "second": second,
        "difference": units.mean() if len(units) else np.nan,
        "low": low,
        "high": high,
        "p": p_value(units) if is_tested else np.nan,
        "unit": unit,
        "units": len(units),
        "runs": runs,
    }


def holm(p_values: pd.Series[float]) -> pd.Series[float]:
    """Holm's (1979) corrected p values, as those of statsmodels; a missing one is that of no test."""
    ordered = p_values.dropna().sort_values(kind="stable")
    products = ordered * np.arange(len(ordered), 0, -1)
    return products.cummax().clip(upper=1.0).reindex(p_values.index)


def with_verdicts(tests: pd.DataFrame) -> pd.DataFrame:
    """The tests with Holm's correction over them, and what is claimed about ``first``.

    ``better`` or ``worse``: the corrected p value is below 0.05 and the mean difference exceeds
    0.5 points. ``equivalent``: the 95 % interval lies within -0.5 to 0.5 points. ``undecided``:
    neither. ``no test``: too little in common. The first three exclude each other: an interval
    inside the region has its mean inside, too.
    """
    tests = tests.assign(p_holm=holm(tests["p"].astype(float)))
    is_apart = (tests["p_holm"] < ALPHA) & (tests["difference"].abs() > REGION)
    verdicts = np.select(
        [
            tests["p_holm"].isna(),
            (tests["low"] >= -REGION) & (tests["high"] <= REGION),
            is_apart & (tests["difference"] > 0),
            is_apart,
        ],
        ["no test", "equivalent", "better", "worse"],
        "undecided",
    )
    return tests.assign(verdict=verdicts).astype(TESTS)


def opposite(tests: pd.DataFrame) -> pd.DataFrame:
    """The second methods against the first."""
    turned = {"better": "worse", "worse": "better"}
    return tests.assign(
        first=tests["second"],
        second=tests["first"],
        difference=-tests["difference"],
        low=-tests["high"],
        high=-tests["low"],
        verdict=tests["verdict"].replace(turned),
    )


def of_one(method: str, tests: pd.DataFrame, others: Collection[str] | None = None) -> pd.DataFrame:
    """The tests of one method, itself first, with the ``others`` (None: all), with Holm's correction
    over these alone: how two of the others compare is not asked.
    """
    turned = opposite(tests[tests["second"] == method])
    own = pd.concat([tests[tests["first"] == method], turned]).sort_index()
    return with_verdicts(own if others is None else own[own["second"].isin(others)])


def worse_than(leader: str, others: Collection[str], tests: pd.DataFrame) -> set[str]:
    """The methods among ``others`` that are significantly worse than ``leader``, by its tests with them
    alone: the question is which methods may be the best, not how any two compare (multiple comparisons with
    the best; Hsu, Annals of Statistics 12, 1984).
    """
    own = of_one(leader, tests, others)
    return set(own.loc[own["verdict"] == "better", "second"])


def tie_groups(order: Sequence[str], tests: pd.DataFrame) -> dict[str, int]:
    """Group of each method of ``order`` (best first), by tests of any two.

    Group 1 is the best method and all that are not significantly worse than it; the next group is
    made alike of those that are left.
    """
    groups: dict[str, int] = {}
    left = list(order)
    while left:
        worse_methods = worse_than(left[0], left[1:], tests)
        number = max(groups.values(), default=0) + 1
        groups |= {name: number for name in left if name not in worse_methods}
        left = [name for name in left if name in worse_methods]
    return groups
