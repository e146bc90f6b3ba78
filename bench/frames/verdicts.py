"""Published against measured: the grade of every cell, on columns. ``docs/protocol.md`` explains the rule."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

Numbers = NDArray[np.float64]

GRADES = ("reproduced", "compatible", "uninformative", "above", "below")
"""Verdicts of cells that have numbers and a target."""

AGREEING = GRADES[:2]
"""Grades of cells whose numbers agree with the published ones."""

NOT_COMPARABLE = "not comparable"
NOT_PUBLISHED = "not published"

FLOOR = 1.0
"""Points by which a measured mean may always differ and be compatible."""

LEVEL = 0.95
"""Coverage of the interval in which a difference is compatible."""

EQUIVALENCE_LEVEL = 0.90
"""Coverage of the interval that must lie within the margin: two one-sided tests at 0.05."""

LEAST_RUNS = 3
"""Measured runs that a reproduction takes."""

LEAST_GRADED = 2
"""Measured runs that any grade takes: one run has no standard deviation."""

ROUNDING = 1e-9
"""Slack for binary fractions: 72.26 - 71.26 is a difference of one point."""

STATES = {
    name: name.replace("_", " ")
    for name in ("not_run", "no_data", "not_applicable", "failed", "oom", "diverged")
}
"""State of a run or cell without numbers -> its verdict."""

GRADED = ["difference", "low_difference", "high_difference", "tolerance", "verdict", "rests_on_spread"]
"""Columns that ``graded`` gives."""


def graded(cells: pd.DataFrame) -> pd.DataFrame:
    """The grades of cells with a published mean and at least ``LEAST_GRADED`` measured values: the columns
    ``GRADED``, with the same index.

    Reads the columns
        n, mean, std                   measured values: number, mean, sample standard deviation
        published_mean, published_std  as printed; the deviation may be missing
        n_p, population                runs behind the published mean; its deviation is over n, not n - 1
        s_d, s_d_freedom, draws        spread between partitions, missing where unknown; its degrees of
                                       freedom; how often its square counts
        control                        mean of the method that learns nothing; missing where unknown
        margin                         points by which a reproduction may be off

    ``low_difference`` to ``high_difference`` is the 90 % interval of the difference. A cell
    ``rests_on_spread`` if it is compatible, and above or below without the spread between partitions.
    """
    number, number_printed = cells["n"].to_numpy(float), cells["n_p"].to_numpy(float)
    variances, freedoms = _errors(cells, number, number_printed)
    spread = cells["draws"].to_numpy(float) * cells["s_d"].fillna(0.0).to_numpy(float) ** 2
    spread_freedom = cells["s_d_freedom"].fillna(math.inf).to_numpy(float)

    half = half_width(variances, freedoms, EQUIVALENCE_LEVEL)
    alone = np.maximum(FLOOR, half_width(variances, freedoms, LEVEL))
    tolerance = np.maximum(FLOOR, half_width([*variances, spread], [*freedoms, spread_freedom], LEVEL))

    published = cells["published_mean"].to_numpy(float)
    difference = cells["mean"].to_numpy(float) - published
    margin = cells["margin"].to_numpy(float) + ROUNDING
    is_within = (difference - half >= -margin) & (difference + half <= margin)
    is_control_within = np.abs(cells["control"].to_numpy(float) - published) <= tolerance + ROUNDING
    verdict = np.select(
        [
            (number >= LEAST_RUNS) & is_within,
            np.abs(difference) > tolerance + ROUNDING,
            is_control_within,  # False where the control is missing
        ],
        ["reproduced", np.where(difference > 0, "above", "below"), "uninformative"],
        "compatible",
    )
    rests_on_spread = (verdict == "compatible") & (np.abs(difference) > alone + ROUNDING)
    columns = (difference, difference - half, difference + half, tolerance, verdict, rests_on_spread)
    return pd.DataFrame(dict(zip(GRADED, columns, strict=True)), cells.index)


def _errors(
    cells: pd.DataFrame, number: Numbers, number_printed: Numbers
) -> tuple[list[Numbers], list[Numbers]]:
    """Variances of the measured and the published mean, and their degrees of freedom.

    Where no deviation is printed the measured one stands for it. The deviation of a single published run
    cannot have been estimated from that run, and is taken as known.
    """
    variance = cells["std"].to_numpy(float) ** 2
    printed = cells["published_std"].to_numpy(float)
    is_printed = ~np.isnan(printed)
    has_several = number_printed > 1
    is_over_n = cells["population"].to_numpy(bool) & has_several
    sample_factor = np.where(is_over_n, number_printed / np.maximum(number_printed - 1, 1), 1.0)
    ours = np.where(is_printed, variance / number, variance * (1 / number + 1 / number_printed))
    theirs = np.where(is_printed, printed**2 * sample_factor / number_printed, 0.0)
    return [ours, theirs], [number - 1, np.where(has_several, number_printed - 1, math.inf)]


def half_width(variances: Sequence[Numbers], freedoms: Sequence[Numbers], level: float) -> Numbers:
    """Half of a two-sided interval around 0 of that coverage, for sums of independent errors.

    Every error has a variance and the degrees of freedom that it was estimated with; Student's t has Welch's
    and Satterthwaite's degrees of freedom.
    """
    total = np.sum(variances, axis=0)
    shares = [np.divide(part, total, out=np.zeros_like(total), where=total > 0) for part in variances]
    inverse = np.sum([share**2 / freedom for share, freedom in zip(shares, freedoms, strict=True)], axis=0)
    freedom = np.divide(1.0, inverse, out=np.full_like(total, math.inf), where=inverse > 0)
    width: Numbers = np.where(total > 0, np.sqrt(total) * stdtrit(freedom, (1 + level) / 2), 0.0)
    return width


def judged(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells with the columns ``GRADED`` and ``reason``.

    Reads the columns of ``graded``, and
        state, state_reason   of a cell without numbers: why it has none; "": it has some
        printed, status       number of the published row, missing without one; what it has in place of a mean
        bar                   why the published value is no target for these runs; "": it is one
        published_on          titles of the only data sets on which the value is published; "": not asked
    ``n_p`` and ``margin`` are left where there is a grade, and are missing elsewhere.
    """
    is_printed = cells["printed"].notna()
    status = cells["status"].astype(object).fillna("")
    reasons = [
        (cells["state"].ne("") & cells["published_on"].eq(""), cells["state_reason"]),
        (cells["published_on"].ne(""), "published on " + cells["published_on"]),
        (~is_printed, ""),
        (cells["published_mean"].isna(), "the paper reports " + status + " here"),
        (cells["bar"].ne(""), cells["bar"]),
        (cells["n"] < LEAST_GRADED, cells["n"].astype(str) + " seed: a verdict needs at least two"),
    ]
    verdicts = [cells["state"].map(STATES), NOT_COMPARABLE, NOT_PUBLISHED, *[NOT_COMPARABLE] * 3]
    conditions = [condition for condition, _ in reasons]
    is_graded = ~np.any(conditions, axis=0)
    judged = cells.assign(
        **dict.fromkeys(GRADED[:4], np.nan),
        rests_on_spread=False,
        verdict=np.select(conditions, [np.asarray(name, object) for name in verdicts], ""),
        reason=np.select(conditions, [np.asarray(reason, object) for _, reason in reasons], ""),
    )
    grades = graded(cells[is_graded])
    judged.loc[is_graded, GRADED] = grades
    has_mean = is_printed & cells["published_mean"].notna() & cells["mean"].notna()
    judged["difference"] = (cells["mean"] - cells["published_mean"]).where(has_mean)
    is_unknown = judged["verdict"].eq("compatible") & cells["control"].isna()
    judged["reason"] = judged["reason"].mask(is_unknown, "what learning nothing reaches is not known here")
    for name in ("n_p", "margin", "population", "draws"):
        judged[name] = cells[name].where(is_graded)
    return judged


def agreed(readings: pd.DataFrame) -> pd.DataFrame:
    """One row a cell: of a value of which the paper does not say at which stage it was read, the grade on
    which all the stages agree, with the numbers of the first; none is judged alone.

    ``readings`` has a row a cell (its ``order``) and reading, the first reading of each first: columns order,
    stage and what ``judged`` gives. Cells of one reading, and those without a grade, are left as they are.
    """
    first = readings.drop_duplicates("order").set_index("order", drop=False)
    several = readings[readings["order"].duplicated(keep=False)]
    differ = several.groupby("order")["verdict"].nunique().gt(1)
    is_open = differ.reindex(first.index, fill_value=False) & first["low_difference"].notna()
    texts = (several["stage"] + " " + several["verdict"]).groupby(several["order"]).agg(", ".join)
    return first.assign(
        verdict=first["verdict"].mask(is_open, NOT_COMPARABLE),
        reason=first["reason"].mask(is_open, "the paper does not say which model it reads: " + texts),
        rests_on_spread=first["rests_on_spread"] & ~is_open,
    ).reset_index(drop=True)
