"""Two methods in one cell, compared on the same clients and seeds.

The test is fixed here, before any numbers: a two-sided paired t test over independent units. Where
all runs of the cell share one partition, the units are its clients, and the claim is about clients
of that partition; clients that are samples of one part of the data (overlapping scenarios) share test
items, so their part is the unit. Where there are several partitions, they are the units: clients of
one partition are not independent of each other, and the partition is what another user draws anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.multitest import multipletests

from bench.statistics.summary import Interval, t_interval

ALPHA = 0.05
"""Level that a corrected p value must stay below."""

REGION = 0.5
"""Points within which two methods are practically equivalent."""

COLUMNS = ("partition", "seed", "client", "part", "value", "weight")
"""Columns of a method's scores in a cell, one row a client of a run. ``partition`` is a hash,
``part`` the number of what the client's items were drawn from (another one for every client where
clients share nothing), ``value`` in percent, ``weight`` the client's in the average over its
partition."""

KEYS = ["partition", "seed", "client"]

Unit = Literal["client", "part", "partition"]
Verdict = Literal["better", "worse", "equivalent", "undecided", "no test"]


@dataclass(frozen=True)
class Comparison:
    """Method ``first`` against method ``second``: the mean over units of first minus second, in points.

    ``difference`` is None without common seeds; ``interval`` (95 %, uncorrected) and the p values are
    None for fewer than two units. ``corrected`` is Holm's p value among the pairs compared.
    """

    first: str
    second: str
    unit: Unit
    units: int
    difference: float | None
    interval: Interval | None
    p: float | None
    corrected: float | None

    @property
    def verdict(self) -> Verdict:
        """What is claimed about ``first``.

        ``better`` or ``worse``: the corrected p value is below 0.05 and the mean difference exceeds
        0.5 points. ``equivalent``: the 95 % interval lies within -0.5 to 0.5 points. ``undecided``:
        neither. ``no test``: fewer than two units. The first three exclude each other: an interval
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
    def points(self) -> float | None:
        """Share of a win: 1 better, 0.5 a tie (equivalent or undecided), 0 worse; None without a test."""
        return {"better": 1.0, "worse": 0.0, "no test": None}.get(self.verdict, 0.5)


def unit_of(scores: Iterable[pd.DataFrame]) -> Unit:
    """The unit of a cell, from all its methods' scores."""
    frames = list(scores)
    if len({digest for frame in frames for digest in frame["partition"]}) > 1:
        return "partition"
    shared = any((frame.groupby("part")["client"].nunique() > 1).any() for frame in frames)
    return "part" if shared else "client"


def differences(first: pd.DataFrame, second: pd.DataFrame, unit: Unit) -> NDArray[np.float64]:
    """First minus second ``[units]`` in points, over what both have: partition, seed and client.

    Unit ``client`` or ``part``: its mean over seeds, and over the clients of a part, every client
    counting once. Unit ``partition``: the weighted average over clients, then the mean over the seeds
    of that partition.
    """
    if len(first) == len(second) and all(np.array_equal(first[key], second[key]) for key in KEYS):
        both = first.assign(value_second=second["value"].to_numpy())  # the usual case, without a merge
    else:
        both = first.merge(second, on=KEYS, suffixes=("", "_second"))
    both = both.assign(difference=both["value"] - both["value_second"])
    if unit != "partition":
        return both.groupby(unit)["difference"].mean().to_numpy(np.float64)
    both = both.assign(weighted=both["weight"] * both["difference"])
    runs = both.groupby(["partition", "seed"])[["weighted", "weight"]].sum()
    by_run = runs["weighted"] / runs["weight"]
    return by_run.groupby(level="partition").mean().to_numpy(np.float64)


def t_test(values: NDArray[np.float64]) -> float:
    """Two-sided p value of the mean of at least two ``values`` being zero.

    Equal values have no spread to test against: 1 where they are zero, else 0, the limits of the test.
    """
    if np.ptp(values) == 0.0:
        return 1.0 if values[0] == 0.0 else 0.0
    return float(stats.ttest_1samp(values, 0.0).pvalue)


def compare(
    scores: Mapping[str, pd.DataFrame], pairs: Collection[tuple[str, str]] | None = None
) -> list[Comparison]:
    """Pairs of the methods of one cell, all of them in their order or those named, with Holm's correction
    over these pairs.

    ``scores`` has the columns ``COLUMNS`` for each method. Holm (1979), by statsmodels.
    """
    unit = unit_of(scores.values())
    pairs = list(combinations(scores, 2)) if pairs is None else pairs
    found = [differences(scores[first], scores[second], unit) for first, second in pairs]
    tests = [t_test(values) if len(values) > 1 else None for values in found]
    made = [p for p in tests if p is not None]
    corrected = iter(multipletests(made, method="holm")[1].tolist() if made else ())
    return [
        Comparison(
            first,
            second,
            unit,
            len(values),
            float(values.mean()) if len(values) else None,
            t_interval(values),
            p,
            None if p is None else next(corrected),
        )
        for (first, second), values, p in zip(pairs, found, tests, strict=True)
    ]
