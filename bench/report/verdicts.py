"""Published against measured: one verdict a cell."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bench.report.published import Published

FLOOR = 1.0
"""Points by which a measured mean may always differ."""

SPREADS = 2.0
"""Combined standard deviations by which a measured mean may differ."""

LEAST_PARTITIONS = 3
"""Partitions that a spread between their means needs to widen what a mean may differ by."""

ROUNDING = 1e-9
"""Slack for binary fractions: 72.26 - 71.26 is a difference of one point."""

STATES = {
    "not_run": "not run",
    "no_data": "no data",
    "not_implemented": "not implemented",
    "not_applicable": "not applicable",
    "failed": "failed",
    "oom": "oom",
    "diverged": "diverged",
}
"""State of a run or cell without numbers -> its verdict."""


@dataclass(frozen=True)
class Verdict:
    """``reproduced``, ``above``, ``below``, ``not comparable``, ``not published``, or a state's verdict."""

    name: str
    reason: str = ""


def tolerance(s_p: float | None, s_m: float, s_d: float = 0.0) -> float:
    """Points by which published and measured mean may differ: ``max(1, 2 sqrt(s_p² + s_m² + s_d²))``.

    ``s_p`` published std (None counts as 0), ``s_m`` sample std over seeds, ``s_d`` spread over
    partitions and splits; all in points.
    """
    return max(FLOOR, SPREADS * math.hypot(s_p or 0.0, s_m, s_d))


def judge(
    target: Published | None,
    mean: float,
    std: float | None,
    n: int,
    s_d: float = 0.0,
    barred: str = "",
) -> Verdict:
    """Verdict on a measured cell (percent), by design section 6.

    ``std`` is the sample standard deviation over ``n`` seeds (None for one seed). ``barred`` says
    why the published value is no target for this cell, empty where it is one.
    """
    if target is None:
        return Verdict("not published")
    if target.mean is None:
        return Verdict("not comparable", f"the paper reports {target.status} here")
    if barred:
        return Verdict("not comparable", barred)
    if n < 2 or std is None:
        return Verdict("not comparable", f"{n} seed: a verdict needs at least two")
    allowed = tolerance(target.std, std, s_d)
    difference = mean - target.mean
    if abs(difference) <= allowed + ROUNDING:
        return Verdict("reproduced")
    return Verdict("above" if difference > 0 else "below")


def missing(state: str, reason: str = "") -> Verdict:
    """Verdict on a cell without numbers."""
    return Verdict(STATES[state], reason)
