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

FLOOR = 1.0
"""Difference in points up to which a measured mean is always compatible."""

LEVEL = 0.95
"""Coverage of the interval in which a difference is compatible."""

EQUIVALENCE_LEVEL = 0.90
"""Coverage of the interval that must lie within the margin: two one-sided tests at 0.05."""

LEAST_RUNS = 3
"""Fewest measured runs for the verdict ``reproduced``."""

ROUNDING = 1e-9
"""Slack for binary fractions: 72.26 - 71.26 is a difference of one point."""

STATES = {
    name: name.replace("_", " ")
    for name in ("not_run", "no_data", "not_applicable", "failed", "oom", "diverged")
}
"""State of a run or cell without numbers -> its verdict."""

READ = ["n", "n_p", "mean", "std", "published_mean", "published_std"]
READ += ["s_d", "s_d_freedom", "draws", "control", "margin"]
"""Columns of numbers from which a grade is computed."""

GRADED = ["difference", "low_difference", "high_difference", "tolerance", "verdict", "rests_on_spread"]
"""Columns that ``graded`` gives."""


def graded(cells: pd.DataFrame) -> pd.DataFrame:
    """Grade cells that have a published mean and at least two measured values: the columns ``GRADED``, with
    the same index.

    ``s_d`` is missing if the spread between partitions is unknown, ``control`` if the control has no result,
    ``published_std`` if none is printed. ``published_std`` is over n (not n - 1) if ``population`` is True.

    ``low_difference`` to ``high_difference`` is the 90 % interval of the difference. ``rests_on_spread``: the
    cell is compatible, but would be above or below without the spread between partitions.
    """
    c = {name: cells[name].to_numpy(float) for name in READ}
    variance = c["std"] ** 2
    # If no deviation is printed, the measured one replaces it. A deviation printed for a single run cannot
    # be estimated from that run, and is taken as known.
    is_printed, has_several = ~np.isnan(c["published_std"]), c["n_p"] > 1
    is_over_n = cells["population"].to_numpy(bool) & has_several
    sample_factor = np.where(is_over_n, c["n_p"] / np.maximum(c["n_p"] - 1, 1), 1.0)
    ours = np.where(is_printed, variance / c["n"], variance * (1 / c["n"] + 1 / c["n_p"]))
    theirs = np.where(is_printed, c["published_std"] ** 2 * sample_factor / c["n_p"], 0.0)
    variances = [ours, theirs, c["draws"] * np.nan_to_num(c["s_d"]) ** 2]
    printed_freedom = np.where(has_several, c["n_p"] - 1, math.inf)
    freedoms = [c["n"] - 1, printed_freedom, np.nan_to_num(c["s_d_freedom"], nan=math.inf)]

    half = half_width(variances[:2], freedoms[:2], EQUIVALENCE_LEVEL)
    alone = np.maximum(FLOOR, half_width(variances[:2], freedoms[:2], LEVEL))
    tolerance = np.maximum(FLOOR, half_width(variances, freedoms, LEVEL))

    difference = c["mean"] - c["published_mean"]
    is_within = np.abs(difference) + half <= c["margin"] + ROUNDING
    verdict = np.select(
        [
            (c["n"] >= LEAST_RUNS) & is_within,
            np.abs(difference) > tolerance + ROUNDING,
            np.abs(c["control"] - c["published_mean"]) <= tolerance + ROUNDING,
        ],
        ["reproduced", np.where(difference > 0, "above", "below"), "uninformative"],
        "compatible",
    )
    rests_on_spread = (verdict == "compatible") & (np.abs(difference) > alone + ROUNDING)
    columns = (difference, difference - half, difference + half, tolerance, verdict, rests_on_spread)
    return pd.DataFrame(dict(zip(GRADED, columns, strict=True)), cells.index)


def half_width(variances: Sequence[Numbers], freedoms: Sequence[Numbers], level: float) -> Numbers:
    """Return half the width of a two-sided interval around 0 with coverage ``level``.

    It is for a sum of independent errors. Every error has a variance and the degrees of freedom of its
    estimate. Student's t uses the degrees of freedom of Welch and Satterthwaite.
    """
    total = np.sum(variances, axis=0)
    shares = [np.divide(part, total, out=np.zeros_like(total), where=total > 0) for part in variances]
    inverse = np.sum([share**2 / freedom for share, freedom in zip(shares, freedoms, strict=True)], axis=0)
    freedom = np.divide(1.0, inverse, out=np.full_like(total, math.inf), where=inverse > 0)
    width: Numbers = np.where(total > 0, np.sqrt(total) * stdtrit(freedom, (1 + level) / 2), 0.0)
    return width


def judged(cells: pd.DataFrame) -> pd.DataFrame:
    """Add the columns ``GRADED`` and ``reason`` to the cells.

    The cells have the columns that ``graded`` reads, the columns of their place (``state`` is "" if there are
    numbers) and the columns ``bench.frames.printed.PRINTED``.
    ``n_p``, ``margin``, ``population`` and ``draws`` are kept if there is a grade, and missing otherwise.
    """
    status = cells["status"].astype(object).fillna("")
    # The first row that applies: condition, verdict, reason.
    rows = [
        (cells["published_on"] != "", NOT_COMPARABLE, "published on " + cells["published_on"]),
        (cells["state"] != "", cells["state"].map(STATES), cells["state_reason"]),
        (cells["printed"].isna(), "not published", ""),
        (cells["published_mean"].isna(), NOT_COMPARABLE, "the paper reports " + status + " here"),
        (cells["bar"] != "", NOT_COMPARABLE, cells["bar"]),
        (cells["n"] < 2, NOT_COMPARABLE, "1 seed: a verdict needs at least two"),
    ]
    conditions, verdicts, reasons = zip(*rows, strict=True)
    is_graded = ~np.any(conditions, axis=0)
    judged = cells.assign(
        difference=cells["mean"] - cells["published_mean"],
        **dict.fromkeys(GRADED[1:4], np.nan),
        rests_on_spread=False,
        verdict=np.select(conditions, [np.asarray(verdict, object) for verdict in verdicts], ""),
        reason=np.select(conditions, [np.asarray(reason, object) for reason in reasons], ""),
    )
    judged.loc[is_graded, GRADED] = graded(cells[is_graded])
    is_unknown = judged["verdict"].eq("compatible") & cells["control"].isna()
    judged["reason"] = judged["reason"].mask(is_unknown, "what learning nothing reaches is not known here")
    for name in ("n_p", "margin", "population", "draws"):
        judged[name] = cells[name].where(is_graded)
    return judged


def agreed(readings: pd.DataFrame) -> pd.DataFrame:
    """Reduce the readings of each cell to one row with the numbers of the first reading.

    If the paper does not say at which stage it read a value, the cell has several readings. It keeps its
    grade only if all readings have the same one. Cells without a grade do not change. ``readings`` has one
    row per cell (``order``) and reading, the first reading first: columns order, stage, those of ``judged``.
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
