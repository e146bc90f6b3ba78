"""All cells as one tidy frame: a row a cell beside one comparison. Every table is a part of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from bench.statistics.summary import t_interval
from bench.studies.cells import Cell

COLUMNS: dict[str, tuple[str, Callable[[Cell], Any]]] = {
    "study": ("string", lambda cell: cell.study),
    "table": ("string", lambda cell: cell.table),
    "dataset": ("string", lambda cell: cell.column.dataset),
    "scenario": ("string", lambda cell: cell.column.scenario),
    "clients": ("int64", lambda cell: cell.column.clients),
    "method": ("string", lambda cell: cell.method),
    "setting": ("string", lambda cell: cell.setting),
    "stage": ("string", lambda cell: cell.stage),
    "rule": ("string", lambda cell: cell.rule),
    "n": ("int64", lambda cell: cell.measured.n if cell.measured else 0),
    "mean": ("float64", lambda cell: cell.measured and cell.measured.mean),
    "std": ("float64", lambda cell: cell.measured and cell.measured.std),
    "s_d": ("float64", lambda cell: cell.spread.std),
    "s_d_source": ("string", lambda cell: cell.measured and cell.spread.source),
    "draws": ("Int64", lambda cell: cell.evidence and cell.spread.draws),
    "partitions": ("Int64", lambda cell: cell.spread.partitions or None),
    "published_mean": ("float64", lambda cell: cell.target and cell.target.mean),
    "published_std": ("float64", lambda cell: cell.target and cell.target.std),
    "n_p": ("Int64", lambda cell: cell.evidence and cell.evidence.runs.n),
    "difference": ("float64", lambda cell: cell.difference),
    "low_difference": ("float64", lambda cell: cell.evidence and cell.evidence.low),
    "high_difference": ("float64", lambda cell: cell.evidence and cell.evidence.high),
    "margin": ("float64", lambda cell: cell.evidence and cell.evidence.margin),
    "tolerance": ("float64", lambda cell: cell.evidence and cell.evidence.tolerance),
    "control": ("float64", lambda cell: cell.control and cell.control.mean),
    "verdict": ("string", lambda cell: cell.verdict),
    "reason": ("string", lambda cell: cell.reason),
    "document": ("string", lambda cell: cell.document),
    "line": ("string", lambda cell: cell.title),
    "point": ("string", lambda cell: cell.point.label),
    "measure": ("string", lambda cell: cell.measure.name),
    "low": ("float64", lambda cell: _interval(cell)[0]),
    "high": ("float64", lambda cell: _interval(cell)[1]),
    "planned": ("int64", lambda cell: cell.planned_seeds),
    "lost": ("int64", lambda cell: cell.lost_runs),
    "tuning": ("string", lambda cell: cell.tuning),
    "seconds": ("float64", lambda cell: cell.measured and cell.group and cell.group.seconds),
    "megabytes": ("float64", lambda cell: cell.measured and cell.group and cell.group.megabytes),
    "peak_mib": ("float64", lambda cell: cell.measured and cell.group and cell.group.peak_mib),
    "s_d_freedom": (
        "float64",
        lambda cell: cell.spread.freedom if cell.spread.std is not None and cell.measured else None,
    ),
    "origin": ("string", lambda cell: cell.group.origin if cell.group else ""),
}
"""Columns of the frame: type, and what a cell has there. Accuracies are in percent, differences in points.

``n`` seeds with numbers of the ``planned`` ones, ``lost`` runs without; ``mean`` and sample ``std`` over
seeds, ``low`` and ``high`` Student's 95 % interval of the mean. ``s_d`` is the standard deviation between
partitions, of which ``partitions`` were run; ``s_d_source`` says where it is from (see ``verdicts.OWN``),
``s_d_freedom`` how many degrees of freedom it has, and ``draws`` how often its square counts in the
``tolerance``. ``n_p`` runs stand behind the published mean.
``low_difference`` and ``high_difference`` are the 90 % interval of that, which ``margin`` is compared to;
differences up to ``tolerance`` are compatible. ``control`` is what learning nothing reaches on these clients.
``seconds`` (median), ``megabytes`` in both directions and ``peak_mib`` of memory (means) are those of a run.
``document`` is the experiment, ``line``, ``point`` and ``measure`` its place there.
"""

TYPES = {name: kind for name, (kind, _) in COLUMNS.items()}


def frame(cells: Iterable[Cell]) -> pd.DataFrame:
    """The cells as rows, in their order, with the columns ``COLUMNS``; no number is a missing value."""
    rows = list(cells)
    return pd.DataFrame(
        {name: [value_of(cell) for cell in rows] for name, (_, value_of) in COLUMNS.items()}
    ).astype(TYPES)


def write(path: Path, table: pd.DataFrame) -> None:
    """Write a frame as CSV, fractions with four decimals; equal frames give equal bytes."""
    table.to_csv(path, index=False, float_format="%.4f", lineterminator="\n")


def _interval(cell: Cell) -> tuple[float, float] | tuple[None, None]:
    return (cell.measured and t_interval(cell.measured.values)) or (None, None)
