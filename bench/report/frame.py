"""All cells as one tidy frame: a row a cell beside one comparison. Every table is a part of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from bench.report.cells import Cell
from bench.statistics.summary import t_interval

TYPES = {
    "study": "string",
    "table": "string",
    "dataset": "string",
    "scenario": "string",
    "clients": "int64",
    "method": "string",
    "setting": "string",
    "stage": "string",
    "rule": "string",
    "n": "int64",
    "mean": "float64",
    "std": "float64",
    "s_d": "float64",
    "s_d_source": "string",
    "draws": "Int64",
    "partitions": "Int64",
    "published_mean": "float64",
    "published_std": "float64",
    "n_p": "Int64",
    "difference": "float64",
    "low_difference": "float64",
    "high_difference": "float64",
    "margin": "float64",
    "tolerance": "float64",
    "control": "float64",
    "verdict": "string",
    "reason": "string",
    "document": "string",
    "line": "string",
    "point": "string",
    "measure": "string",
    "low": "float64",
    "high": "float64",
    "planned": "int64",
    "lost": "int64",
    "tuning": "string",
    "seconds": "float64",
    "megabytes": "float64",
    "peak_mib": "float64",
    "origin": "string",
}
"""Columns of the frame and their types. Accuracies are in percent, differences in points.

``n`` seeds with numbers of the ``planned`` ones, ``lost`` runs without; ``mean`` and sample ``std`` over
seeds, ``low`` and ``high`` Student's 95 % interval of the mean. ``s_d`` is the standard deviation between
partitions, of which ``partitions`` were run; ``s_d_source`` says where it is from (see ``verdicts.OWN``), and
``draws`` how often its square counts in the ``tolerance``. ``n_p`` runs stand behind the published mean.
``low_difference`` and ``high_difference`` are the 90 % interval of that, which ``margin`` is compared to;
differences up to ``tolerance`` are compatible. ``control`` is what learning nothing reaches on these clients.
``seconds`` (median), ``megabytes`` in both directions and ``peak_mib`` of memory (means) are those of a run.
``document`` is the experiment, ``line``, ``point`` and ``measure`` its place there.
"""


def frame(cells: Iterable[Cell]) -> pd.DataFrame:
    """The cells as rows, in their order, with the columns ``TYPES``; no number is a missing value."""
    return pd.DataFrame([_row(cell) for cell in cells], columns=list(TYPES)).astype(TYPES)


def write(path: Path, table: pd.DataFrame) -> None:
    """Write a frame as CSV, fractions with four decimals; equal frames give equal bytes."""
    table.to_csv(path, index=False, float_format="%.4f", lineterminator="\n")


def _row(cell: Cell) -> dict[str, Any]:
    measured, target, group, evidence = cell.measured, cell.target, cell.group, cell.evidence
    low, high = (measured and t_interval(measured.values)) or (None, None)
    with_numbers = group is not None and measured is not None
    return {
        "study": cell.study,
        "table": cell.table,
        "dataset": cell.column.dataset,
        "scenario": cell.column.scenario,
        "clients": cell.column.clients,
        "method": cell.method,
        "setting": cell.setting,
        "stage": cell.stage,
        "rule": cell.rule,
        "n": measured.n if measured else 0,
        "mean": measured.mean if measured else None,
        "std": measured.std if measured else None,
        "s_d": cell.spread.std,
        "s_d_source": cell.spread.source if cell.measured else None,
        "draws": cell.spread.draws if evidence else None,
        "partitions": cell.spread.partitions or None,
        "published_mean": target.mean if target else None,
        "published_std": target.std if target else None,
        "n_p": evidence.n_p if evidence else None,
        "difference": cell.difference,
        "low_difference": evidence.low if evidence else None,
        "high_difference": evidence.high if evidence else None,
        "margin": evidence.margin if evidence else None,
        "tolerance": evidence.tolerance if evidence else None,
        "control": cell.control.mean if cell.control else None,
        "verdict": cell.verdict,
        "reason": cell.reason,
        "document": cell.document,
        "line": cell.title,
        "point": cell.point.label,
        "measure": cell.measure.name,
        "low": low,
        "high": high,
        "planned": cell.planned,
        "lost": cell.lost,
        "tuning": cell.tuning,
        "seconds": group.seconds if group and with_numbers else None,
        "megabytes": group.megabytes if group and with_numbers else None,
        "peak_mib": group.peak_mib if group and with_numbers else None,
        "origin": group.origin if group else "",
    }
