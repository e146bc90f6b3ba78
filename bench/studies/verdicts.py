"""Published against measured: the grade of a cell, and the numbers that it rests on."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev, variance

from scipy.special import stdtrit

from bench.errors import RequestError
from bench.studies.published import Published

GRADES = ("reproduced", "compatible", "uninformative", "above", "below")
"""Verdicts of cells that have numbers and a target."""

AGREEING = GRADES[:2]
"""Grades of cells whose numbers agree with the published ones."""

NOT_COMPARABLE = "not comparable"

FLOOR = 1.0
"""Points by which a measured mean may always differ and be compatible."""

LEVEL = 0.95
"""Coverage of the interval in which a difference is compatible."""

EQUIVALENCE_LEVEL = 0.90
"""Coverage of the interval that must lie within the margin: two one-sided tests at 0.05."""

LEAST_RUNS = 3
"""Measured runs that a reproduction takes."""

LEAST_PARTITIONS = 3
"""Partitions that an estimate of the spread between them takes."""

ROUNDING = 1e-9
"""Slack for binary fractions: 72.26 - 71.26 is a difference of one point."""

STATES = {
    "not_run": "not run",
    "no_data": "no data",
    "not_applicable": "not applicable",
    "failed": "failed",
    "oom": "oom",
    "diverged": "diverged",
}
"""State of a run or cell without numbers -> its verdict."""

OWN, POOLED, UNKNOWN, SAME_CLIENTS, REDRAWN = "own", "pooled", "none", "same clients", "redrawn"
"""Where the spread between partitions of a cell comes from: its own runs, other cells of the study, nowhere
(it counts as 0); or why there is none: the clients are the paper's, or both sides redraw them in every run.
"""

SPLIT = "split"
"""The parts are the paper's and the roles are drawn: the spread is that between draws of the split alone."""


@dataclass(frozen=True)
class PublishedRuns:
    """So many runs ``n`` stand behind a published mean; ``redrawn``: each on clients of its own.

    ``population``: the printed deviation is the root of a mean over n, as NumPy's ``std`` is, and not over
    n - 1.

    Raises:
        RequestError: ``n`` is no whole number of at least 1.
    """

    n: int
    redrawn: bool = False
    population: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, int) or self.n < 1:
            raise RequestError(f"published runs: expected a whole number of at least 1, got {self.n!r}")

    def sample_std(self, printed: float) -> float:
        """The sample standard deviation of the runs behind a printed one."""
        return printed * math.sqrt(self.n / (self.n - 1)) if self.population and self.n > 1 else printed


@dataclass(frozen=True)
class PartitionSpread:
    """How much a cell's mean differs between partitions, training apart.

    ``std`` is the standard deviation in points, None where it is not known or not needed; ``source`` is one
    of ``OWN``, ``POOLED``, ``UNKNOWN``, ``SAME_CLIENTS``, ``REDRAWN`` and ``SPLIT``. ``partitions`` counts
    those that were run, ``freedom`` the degrees of freedom of ``std``. ``draws`` is how many of the two
    means, published and measured, rest on one draw of clients. ``pooled_over`` are the data sets of the cells
    that a pooled ``std`` is from.
    """

    std: float | None = None
    partitions: int = 0
    source: str = UNKNOWN
    draws: int = 0
    freedom: float = math.inf
    pooled_over: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Evidence:
    """The numbers of a grade, in points. ``low`` and ``high`` are the 90 % interval of measured minus
    published mean; within ``margin`` points around 0 it is a reproduction. Differences up to ``tolerance``
    are compatible. ``runs`` stand behind the published mean; ``control`` is the mean of the method that
    learns nothing, on the same clients.
    """

    difference: float
    margin: float
    low: float
    high: float
    tolerance: float
    runs: PublishedRuns
    control: float | None = None


@dataclass(frozen=True)
class Verdict:
    """One of ``GRADES`` with its evidence, ``not comparable``, ``not published``, or a state's verdict."""

    name: str
    reason: str = ""
    evidence: Evidence | None = None


def checked_margin(margin: object) -> float:
    """An equivalence margin in points.

    Raises:
        RequestError: it is no positive finite number.
    """
    number = isinstance(margin, int | float) and not isinstance(margin, bool)
    if not number or not math.isfinite(margin) or margin <= 0:  # type: ignore[operator, arg-type]
        raise RequestError(f"equivalence margin: expected a positive number of points, got {margin!r}")
    return float(margin)  # type: ignore[arg-type]


def _error_terms(
    s_m: float, n_m: int, printed_std: float | None, runs: PublishedRuns
) -> list[tuple[float, float]]:
    """Variances that make up that of the difference of two means, with their degrees of freedom."""
    n_p = runs.n
    if printed_std is None:  # ours stands for it
        return [(s_m**2 * (1 / n_m + 1 / n_p), n_m - 1)]
    # The deviation of a single published run cannot have been estimated from it, and is taken as known.
    s_p = runs.sample_std(printed_std)
    return [(s_m**2 / n_m, n_m - 1), (s_p**2 / n_p, n_p - 1 if n_p > 1 else math.inf)]


def half_width(terms: Sequence[tuple[float, float]], level: float) -> float:
    """Half of a two-sided interval around 0 of that coverage, for a sum of independent errors.

    ``terms`` are their variances, each with the degrees of freedom that it was estimated with; Student's t
    has Welch's and Satterthwaite's degrees of freedom.
    """
    total = math.fsum(part for part, _ in terms)
    if total == 0:
        return 0.0
    share_sum = math.fsum((part / total) ** 2 / freedom for part, freedom in terms)
    return math.sqrt(total) * float(stdtrit(1 / share_sum if share_sum else math.inf, (1 + level) / 2))


def weigh(
    p: float,
    printed_std: float | None,
    runs: PublishedRuns,
    values: Sequence[float],
    spread: PartitionSpread,
    margin: float,
    control: float | None = None,
) -> Evidence:
    """What a published mean ``p`` (with its printed deviation) and at least two measured values say."""
    error = _error_terms(stdev(values), len(values), printed_std, runs)
    draws = (spread.draws * (spread.std or 0.0) ** 2, spread.freedom)
    half, difference = half_width(error, EQUIVALENCE_LEVEL), fmean(values) - p
    tolerance = max(FLOOR, half_width([*error, draws], LEVEL))
    return Evidence(difference, margin, difference - half, difference + half, tolerance, runs, control)


def grade(evidence: Evidence, p: float, n: int) -> str:
    """The grade of a mean over ``n`` measured runs beside a published mean ``p``."""
    margin = evidence.margin + ROUNDING
    if n >= LEAST_RUNS and -margin <= evidence.low and evidence.high <= margin:
        return "reproduced"
    tolerance = evidence.tolerance + ROUNDING
    if abs(evidence.difference) > tolerance:
        return "above" if evidence.difference > 0 else "below"
    control = evidence.control
    return "uninformative" if control is not None and abs(control - p) <= tolerance else "compatible"


def judge(
    target: Published | None,
    runs: PublishedRuns,
    values: Sequence[float],
    spread: PartitionSpread,
    margin: float,
    control: float | None = None,
    not_comparable_reason: str = "",
) -> Verdict:
    """Verdict on a cell's measured values (one a seed, in the target's unit).

    ``control`` is the mean of the method that learns nothing, None where it was not run.
    ``not_comparable_reason`` says why the published value is no target for this cell, empty where it is one.
    """
    if target is None:
        return Verdict("not published")
    if target.mean is None:
        return Verdict(NOT_COMPARABLE, f"the paper reports {target.status} here")
    if not_comparable_reason:
        return Verdict(NOT_COMPARABLE, not_comparable_reason)
    if len(values) < 2:
        return Verdict(NOT_COMPARABLE, f"{len(values)} seed: a verdict needs at least two")
    evidence = weigh(target.mean, target.std, runs, values, spread, margin, control)
    name = grade(evidence, target.mean, len(values))
    is_unknown = name == "compatible" and control is None
    return Verdict(name, "what learning nothing reaches is not known here" if is_unknown else "", evidence)


def agreed_verdict(verdicts: dict[str, Verdict], first_stage: str) -> Verdict:
    """The verdict on a value of which the paper does not say at which stage it was read: that of all the
    stages where they agree, with the evidence of the ``first_stage``; none is judged alone.
    """
    names = {verdict.name for verdict in verdicts.values()}
    if len(names) == 1:
        return verdicts[first_stage]
    readings = ", ".join(f"{stage} {verdict.name}" for stage, verdict in verdicts.items())
    reason = f"the paper does not say which model it reads: {readings}"
    return Verdict(NOT_COMPARABLE, reason, verdicts[first_stage].evidence)


def between_partitions(partitions: Collection[Sequence[float]]) -> float | None:
    """Standard deviation of a mean between partitions, training apart, from the runs on each.

    The variance of the partitions' means less the share that the runs' own variance has in it (pooled over
    partitions with several runs); 0 where nothing is left. None for fewer than ``LEAST_PARTITIONS``, or where
    no partition has two runs, so that the two cannot be told apart.
    """
    freedom = sum(len(values) - 1 for values in partitions)
    if len(partitions) < LEAST_PARTITIONS or not freedom:
        return None
    noise = sum((len(values) - 1) * variance(values) for values in partitions if len(values) > 1) / freedom
    means = variance([fmean(values) for values in partitions])
    return math.sqrt(max(0.0, means - noise * fmean(1 / len(values) for values in partitions)))


def missing_verdict(state: str, reason: str = "") -> Verdict:
    """Verdict on a cell without numbers."""
    return Verdict(STATES[state], reason)
