"""Two methods in one cell, compared on the same clients and seeds, or over several tasks.

The test was fixed before any numbers were seen: a two-sided paired t test over independent units. If all
runs of the cell share one partition, the units are its clients, and the claim is about clients of that
partition. If clients are samples of one part of the data (overlapping scenarios), they share test items, and
the unit is the part. If there are several partitions, the units are partitions: clients of one partition are
not independent of each other, and another user draws a new partition. Over tasks the unit is the task.

A frame of tests has one row per pair of methods:

first, second   the methods
difference      mean over units of first minus second, in points; missing without common seeds
low, high       its 95 % interval, uncorrected
p, p_holm       p value, without and with Holm's correction (1979) over the pairs compared. p values and
                interval are missing for fewer than two units or ``LEAST_RUNS_IN_COMMON`` runs in common
unit, units     the kind of unit, and the number of units
runs            number of runs in common; missing if the unit is a task or a data set
verdict         the claim about ``first``:
                ``better`` or ``worse``: p_holm is below ``ALPHA``, the difference more than ``REGION`` points
                ``equivalent``: low to high lies within ``REGION`` points, which excludes the two above
                ``undecided``: none of these; ``no test``: too few units or runs in common
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
"""Fewest runs in common for a test of two methods in a cell, because all clients of a run share its seed."""

COLUMNS = ["method", "partition", "seed", "client", "part", "value", "weight"]
"""Columns of the scores in a cell: one row per method, run and client. ``partition`` is a hash. ``part`` is
the number of the part of the data from which the client's items were drawn (each client has its own if
nothing is shared). ``value`` is in percent. ``weight`` is for the average over the partition's clients."""

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


def paired(
    rows: pd.DataFrame, methods: Sequence[str]
) -> Iterator[tuple[tuple[str, str], NDArray[np.float64], str, int]]:
    """Yield all pairs of a cell's methods, in their order, with first minus second ``[units]`` in points, the
    kind of unit, and the number of runs in common. Scores are paired by partition, seed and client.

    ``rows`` has the columns ``COLUMNS``; all rows together decide the unit. Unit ``client`` or ``part``: the
    mean over seeds, and over the clients of a part with equal weights. Unit ``partition``: the weighted
    average over clients, then the mean over the seeds of the partition.
    """
    method = rows["method"].map(list(methods).index).to_numpy(np.intp)
    partition, hashes = pd.factorize(rows["partition"], sort=True)
    run, runs = pd.factorize(partition + len(hashes) * pd.factorize(rows["seed"])[0])
    client, clients = pd.factorize(rows["client"], sort=True)
    parts = np.zeros(len(clients), np.int64)
    parts[client] = rows["part"]
    values = np.full((len(methods), len(runs), len(clients)), np.nan)
    values[method, run, client] = rows["value"]
    weights = np.zeros(values.shape[1:])
    weights[run, client] = rows["weight"]
    partitions = runs % len(hashes)
    unit = "partition" if len(hashes) > 1 else "part" if len(np.unique(parts)) < len(parts) else "client"

    for (first, first_values), (second, second_values) in combinations(zip(methods, values, strict=True), 2):
        difference = first_values - second_values
        is_shared = ~np.isnan(difference)
        difference = np.where(is_shared, difference, 0.0)
        is_common = is_shared.any(axis=1)
        units, totals, counts = parts, difference.sum(axis=0), is_shared.sum(axis=0)
        if unit == "partition":
            shared_weights = np.where(is_shared, weights, 0.0)[is_common]
            totals = (shared_weights * difference[is_common]).sum(axis=1) / shared_weights.sum(axis=1)
            units, counts = partitions[is_common], np.ones(len(totals), np.int64)
        total, count = (np.bincount(units, weights=each) for each in (totals, counts))
        yield (first, second), total[count > 0] / count[count > 0], unit, int(is_common.sum())


def compare(rows: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Test all pairs of methods of one cell, in their order, with Holm's correction over these pairs.
    ``rows`` has the columns ``COLUMNS``.
    """
    tests = [_test(*pair) for pair in paired(rows, methods)]
    return with_verdicts(pd.DataFrame(tests, columns=list(TESTS)))


def compare_tasks(scores: pd.DataFrame, unit: str = "task") -> pd.DataFrame:
    """Test all pairs of methods of ``scores`` [tasks, methods] in percent, over the tasks that both methods
    have, with Holm's correction over all pairs. ``unit`` is the kind of a row.

    The tests use scores, not ranks: differences of ranks are often all equal.
    """
    tests = [
        _test(pair, (scores[pair[0]] - scores[pair[1]]).dropna().to_numpy(np.float64), unit)
        for pair in combinations(map(str, scores), 2)
    ]
    return with_verdicts(pd.DataFrame(tests, columns=list(TESTS)))


def _test(
    pair: tuple[str, str], units: NDArray[np.float64], unit: str, runs: int | None = None
) -> dict[str, Any]:
    """Return a row of a frame of tests from the differences ``[units]``."""
    mean = units.mean() if len(units) else np.nan
    names = {"first": pair[0], "second": pair[1], "unit": unit, "units": len(units), "runs": runs}
    test = {**names, "difference": mean}
    interval = t_interval(units)
    if interval and (runs is None or runs >= LEAST_RUNS_IN_COMMON):
        test["low"], test["high"] = interval
        # Equal differences have no spread: p is 1 if they are zero, else 0, which are limits of the test.
        test["p"] = float(mean == 0.0)
        if np.ptp(units) > 0.0:
            statistic = mean / (units.std(ddof=1) / np.sqrt(len(units)))
            test["p"] = 2 * stdtr(len(units) - 1, -abs(statistic))
    return test


def with_verdicts(tests: pd.DataFrame) -> pd.DataFrame:
    """Add Holm's correction over these tests (the same as in statsmodels), and the verdicts."""
    ordered = tests["p"].astype(float).dropna().sort_values(kind="stable")
    products = ordered * np.arange(len(ordered), 0, -1)
    tests = tests.assign(p_holm=products.cummax().clip(upper=1.0).reindex(tests.index))
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


def of_one(method: str, tests: pd.DataFrame) -> pd.DataFrame:
    """Return the tests of one method, always as ``first``, with Holm's correction over these tests alone."""
    as_second = tests[tests["second"] == method]
    turned = as_second.assign(
        first=as_second["second"],
        second=as_second["first"],
        difference=-as_second["difference"],
        low=-as_second["high"],
        high=-as_second["low"],
    )
    return with_verdicts(pd.concat([tests[tests["first"] == method], turned]).sort_index())


def tie_groups(order: Sequence[str], tests: pd.DataFrame) -> dict[str, int]:
    """Return the group of each method of ``order`` (best first), from tests of all pairs.

    Group 1 has the best method and all methods that are not significantly worse, by the best method's tests
    alone. The next group is formed in the same way from the methods left. This shows which methods may be the
    best, not how any two compare (multiple comparisons with the best; Hsu, Annals of Statistics 12, 1984).
    """
    groups: dict[str, int] = {}
    left, number = list(order), 0
    while left:
        number += 1
        among = tests[tests["first"].isin(left) & tests["second"].isin(left)]
        of_best = of_one(left[0], among)
        worse_methods = set(of_best.loc[of_best["verdict"] == "better", "second"])
        groups |= {name: number for name in left if name not in worse_methods}
        left = [name for name in left if name in worse_methods]
    return groups
